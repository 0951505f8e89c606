//! Notices that wait for a webhook.

use std::sync::Arc;

use rankduel_store::*;

use super::fixtures::*;
use crate::support::TestDatabase;

on_all_databases! {
    a_notice_is_queued_with_its_answer
    a_notice_is_taken_by_one_at_a_time
}

fn notice(id: &str, queued_at: i64) -> WebhookNotice {
    let (id, experiment, body) = (id.to_owned(), "one".into(), format!("{{\"id\": \"{id}\"}}"));
    WebhookNotice { id, experiment, body, queued_at, attempts: 0 }
}

async fn a_notice_is_queued_with_its_answer(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let save = async |position, before, answer, queued: &WebhookNotice| {
        let answer = new_answer(answer, "result", 1, None);
        store.save_answer(id, position, before, &answer, Some(queued)).await.unwrap()
    };
    let [first, other, second] = [("a", 5), ("b", 6), ("c", 7)].map(|(id, at)| notice(id, at));
    assert!(save(4, None, "first", &first).await);
    assert!(!save(4, None, "of one who has not seen the first", &other).await);
    assert!(!save(3, Some("first"), "of an earlier position", &other).await);
    assert!(save(4, Some("first"), "second", &second).await);
    assert_eq!(store.waiting_notices().await.unwrap(), 2);

    // the one that waits for longest, and once only
    let take = async |is_retry, now| store.take_notice(is_retry, now, now + 30).await.unwrap();
    assert_eq!(take(false, 4).await, None, "it is queued later");
    assert_eq!(take(false, 9).await, Some(WebhookNotice { attempts: 1, ..first.clone() }));
    assert_eq!(take(false, 9).await, Some(WebhookNotice { attempts: 1, ..second.clone() }));
    assert_eq!((take(false, 9).await, take(true, 38).await), (None, None), "both are taken");
    // after a failure, and if nothing is known of who took it
    store.postpone_notice("c", 20).await.unwrap();
    assert_eq!((take(false, 50).await, take(true, 19).await), (None, None));
    assert_eq!(take(true, 20).await, Some(WebhookNotice { attempts: 2, ..second }));
    assert_eq!(take(true, 39).await, Some(WebhookNotice { attempts: 2, ..first }));
    for _ in 0..2 {
        store.remove_notice("a").await.unwrap();
        assert_eq!(store.waiting_notices().await.unwrap(), 1);
    }
}

async fn a_notice_is_taken_by_one_at_a_time(database: TestDatabase) {
    const NOTICES: usize = 20;
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let mut before = None;
    for number in 0..NOTICES {
        let (answer, queued) = (format!("answer {number}"), notice(&number.to_string(), 0));
        let answer = new_answer(&answer, "result", 1, None);
        assert!(store.save_answer(id, 1, before.as_deref(), &answer, Some(&queued)).await.unwrap());
        before = Some(answer.text);
    }
    let mut takers = Vec::new();
    for _ in 0..4 {
        let store = Arc::clone(&store);
        takers.push(tokio::spawn(async move {
            let mut taken = Vec::new();
            while let Some(notice) = store.take_notice(false, 1, 31).await.unwrap() {
                taken.push(notice.id);
            }
            taken
        }));
    }
    let mut taken = Vec::new();
    for taker in takers {
        taken.extend(taker.await.unwrap());
    }
    taken.sort_by_key(|id| id.parse::<usize>().unwrap());
    let all: Vec<_> = (0..NOTICES).map(|number| number.to_string()).collect();
    assert_eq!(taken, all);
}
