//! Signing keys rotate while two servers are busy, and no server refuses a duel that the other has
//! signed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rankduel::http::ProblemKind;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::serve;
use crate::support::TestDatabase;
use crate::support::client::{eventually, steady, until};
use crate::support::server::{outcome, rankduel_on};

on_postgres! {
    no_duel_is_refused_during_key_rotation
}

/// The key that a duel is signed with.
fn key_of(duel: &Value) -> u32 {
    let bytes =
        URL_SAFE_NO_PAD.decode(duel["duel_id"].as_str().expect("an id")).expect("base64url");
    u32::from_be_bytes(bytes[1..5].try_into().expect("four bytes"))
}

fn signing_keys(database: &TestDatabase, arguments: &[&str]) -> (Option<i32>, String, String) {
    outcome(rankduel_on(&database.url, &[&["signing-keys"], arguments].concat()))
}

async fn no_duel_is_refused_during_key_rotation(database: TestDatabase) {
    let flags = ["--log", "warn"];
    let ((_one, one), (_other, other)) = (serve(&database, &flags), serve(&database, &flags));
    one.create(&steady("search", &["a", "b", "c"])).await;
    let old_duel = one.next_duel("search").await;
    let old_key = key_of(&old_duel);
    let wanted = Arc::new(AtomicU32::new(0));
    let mut callers = JoinSet::new();
    for caller in 0..4 {
        let (from, to) = if caller % 2 == 0 {
            (one.clone(), other.clone())
        } else {
            (other.clone(), one.clone())
        };
        let wanted = Arc::clone(&wanted);
        callers.spawn(async move {
            let mut keys = BTreeSet::new();
            while !keys.contains(&wanted.load(Ordering::SeqCst)) {
                let duel = from.next_duel("search").await;
                to.answer("search", &duel, "left").await; // panics unless recorded
                keys.insert(key_of(&duel));
            }
            keys
        });
    }
    let (code, printed, error) = signing_keys(&database, &["rotate", "--after-seconds", "5"]);
    assert_eq!(code, Some(0), "{error}");
    let new_key: u32 =
        printed.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    assert_ne!(old_key, new_key);
    let (_, list, _) = signing_keys(&database, &["list"]);
    assert!(list.contains("will sign") && list.contains("signs "), "{list}");
    for client in [&one, &other] {
        until("a duel of the new key", async || {
            key_of(&client.next_duel("search").await) == new_key
        })
        .await;
    }
    // Wait until each caller has had a duel of the new key.
    wanted.store(new_key, Ordering::SeqCst);
    let signed_with: BTreeSet<u32> = callers.join_all().await.into_iter().flatten().collect();
    assert_eq!(signed_with, BTreeSet::from([old_key, new_key]));
    // A duel that the old key signed is still valid.
    one.answer("search", &old_duel, "right").await;

    // The newest key cannot be retired, and the older one only by its id.
    let (code, _, error) = signing_keys(&database, &["retire", &new_key.to_string()]);
    assert_eq!(code, Some(1));
    assert!(error.contains("signs now"), "{error}");
    let (code, printed, _) = signing_keys(&database, &["retire"]);
    assert_eq!((code, printed.as_str()), (Some(0), "no key was superseded long enough ago\n"));
    let (code, printed, _) = signing_keys(&database, &["retire", &old_key.to_string()]);
    assert_eq!((code, printed), (Some(0), format!("key {old_key} is retired\n")));
    let body = json!({"duel_id": old_duel["duel_id"], "outcome": "right"});
    eventually("the refusal of duels that it signed", async || {
        let answer = one.feedback("search", &body).await;
        (answer.status != 200).then(|| answer.problem(ProblemKind::InvalidDuel))
    })
    .await;
}
