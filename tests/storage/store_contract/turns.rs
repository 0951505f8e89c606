//! Writes take turns.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;

use super::fixtures::*;
use crate::support::TestDatabase;

on_sqlite! {
    an_append_waits_behind_few_other_writes
}

/// One key can create many experiments at once, and an append has the feedback of every key.
async fn an_append_waits_behind_few_other_writes(database: TestDatabase) {
    let store = database.store().await;
    let one = create(&store, "one").await;
    let held = database.hold("begin immediate").await;
    let created = AtomicUsize::new(0);
    let creations = join_all((0..50).map(async |number| {
        create(&store, &format!("other-{number}")).await;
        created.fetch_add(1, Ordering::Relaxed);
    }));
    let append = async {
        store.append(&[(one.id, new_event(1, 1))], NOW).await.unwrap();
        created.load(Ordering::Relaxed)
    };
    // Futures are polled in this order, so all of them wait by then.
    let (_, before, ()) = tokio::join!(biased; creations, append, async { drop(held) });
    // One has the writer, one waits for it, and some may end while the append is noticed.
    assert!(before <= 10, "an append waited for {before} creations");
}
