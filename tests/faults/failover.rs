//! The primary dies, and its synchronous standby takes over.

use std::time::Duration;

use dueling_bandits::Answer;
use rankduel_store::events::{Event, OutcomeEvent};
use rankduel_store::{Appended, Created, NewEvent, NewExperiment, connect, entropy};

use crate::cluster::{Cluster, End};
use crate::proxy::{Mode, Proxy};
use crate::scene::Scene;
use crate::support::client::eventually;
use crate::verify::verify;
use crate::{rounds, some_moment};

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over() {
    let times = rounds(1);
    let mut primary = Cluster::start().await;
    primary.database("rankduel").await;
    let proxy = Proxy::to(primary.socket()).await;
    let mut scene = Scene::set(&proxy.url("rankduel"), 2).await;
    scene.open();
    for round in 0..times {
        scene.acknowledges(20).await;
        let standby = primary.standby().await;
        scene.acknowledges(40).await;
        some_moment(100).await;
        // Fence the old primary before the promotion, so that no process writes to both.
        if round % 2 == 0 {
            primary.end(End::Kill);
        } else {
            proxy.set(Mode::Cut);
            primary.end(End::Immediate);
        }
        standby.promote().await;
        proxy.switch_to(standby.socket());
        primary = standby;
    }
    scene.acknowledges(20).await;
    verify(scene, &primary.url("rankduel"), "failover to a synchronous standby", times).await;
}

/// A commit whose wait for the standby is cancelled is visible in the primary's log, and exists
/// nowhere else. A repeat must not be acknowledged, because the entry would be lost with the
/// primary.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_is_acknowledged_only_once_the_standby_has_it() {
    let mut primary = Cluster::start().await;
    let store = connect(&primary.database("rankduel").await).await.expect("a store");
    store.migrate().await.expect("a schema");
    let new = NewExperiment {
        id: entropy::experiment_id().expect("randomness"),
        name: "search".into(),
        spec: "{}".into(),
        seed: 1,
        created_at: 0,
        audit: None,
    };
    let Created::New(record) = store.create_experiment(&new).await.expect("a store") else {
        panic!("the experiment exists")
    };
    let outcome = OutcomeEvent {
        first: 0,
        second: 1,
        first_left: true,
        answer: Answer::First,
        batch: None,
        ticket: 0,
        chosen_at: 0,
        issued_at: 0,
        unit: None,
        segment: None,
    };
    let events = [(record.id, NewEvent::new(7, Event::Outcome(outcome)))];
    let mut standby = primary.standby().await;
    standby.end(End::Immediate);

    const PATIENCE: Duration = Duration::from_secs(1);
    assert!(
        tokio::time::timeout(PATIENCE, store.append(&events, 0)).await.is_err(),
        "the standby has not confirmed it"
    );
    primary
        .execute("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
        .await;
    let visible = eventually("the commit", async || {
        let log = store.read(record.id, 1, 10).await.expect("the log");
        (!log.is_empty()).then_some(log)
    })
    .await;
    assert_eq!(visible.len(), 1);
    assert!(
        tokio::time::timeout(PATIENCE, store.append(&events, 0)).await.is_err(),
        "a repeat was acknowledged"
    );
    assert!(
        tokio::time::timeout(PATIENCE, store.find(record.id, &[7])).await.is_err(),
        "a late answer was acknowledged"
    );

    standby.start_again().await;
    assert_eq!(store.append(&events, 0).await.expect("an answer"), [Appended::Duplicate(2)]);
    primary.end(End::Kill);
    standby.promote().await;
    let promoted = connect(&standby.url("rankduel")).await.expect("a store");
    assert_eq!(promoted.read(record.id, 1, 10).await.expect("the log"), visible);
}
