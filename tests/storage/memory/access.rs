//! API keys and what they allow.

use rankduel_engine::access::{AccessKeys, ApiKeySet, ApiKeys, KeyError, NewKey, Scope, Scopes};

use crate::support::failing_store::{FailingStore, Mode};
use crate::support::{Kind, fresh_database};

/// Otherwise all but one of the callers with a new key would hear that it is no key.
#[tokio::test]
async fn all_who_wait_for_a_read_that_fails_hear_so() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = FailingStore::new(database.store().await);
    let keys = AccessKeys::load(store.clone()).await.expect("the keys");
    let three = async || {
        tokio::join!(
            keys.refresh_for_unknown(),
            keys.refresh_for_unknown(),
            keys.refresh_for_unknown()
        )
    };
    store.set(Mode::FailsBefore);
    let (one, other, third) = three().await;
    assert!(one.is_err() && other.is_err() && third.is_err(), "{one:?} {other:?} {third:?}");
    store.set(Mode::Fine);
    let (one, other, third) = three().await;
    assert!(one.is_ok() && other.is_ok() && third.is_ok(), "{one:?} {other:?} {third:?}");
}

#[test]
fn short_and_unsendable_keys_are_refused_and_not_repeated() {
    assert!(ApiKeys::parse("").unwrap().is_empty());
    assert!(ApiKeys::parse("  ").unwrap().is_empty());
    assert_eq!(
        ApiKeys::parse("0123456789abcdef, 0123456789abcde").unwrap_err(),
        KeyError::Short(2, 15)
    );
    assert_eq!(ApiKeys::parse("0123456789abcdef,").unwrap_err(), KeyError::Short(2, 0));
    assert_eq!(ApiKeys::parse("0123456789 abcdef").unwrap_err(), KeyError::Character(1));
    assert_eq!(ApiKeys::parse("0123456789abcdéf").unwrap_err(), KeyError::Character(1));
}

#[test]
fn a_generated_key_can_be_sent_and_is_named_by_its_digest() {
    let (one, other) = (NewKey::generate().unwrap(), NewKey::generate().unwrap());
    assert_ne!(one.text, other.text);
    assert_eq!(one.text.len(), "rankduel_".len() + 43);
    let given = ApiKeySet::of_given(&ApiKeys::parse(&one.text).unwrap());
    assert_eq!(given.find(&one.digest).unwrap().id(), &one.id);
    assert_eq!(one.id.as_str().len(), 8);
}

#[test]
fn a_scope_of_the_future_is_none_and_no_scope_allows_nothing() {
    assert_eq!(Scopes::from_names("decide of-the-future read").to_string(), "decide read");
    assert!(Scope::ALL.iter().all(|scope| !Scopes::default().allow(*scope)));
}
