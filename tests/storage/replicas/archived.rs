//! What is archived at one server takes nothing at another, which has not heard of it.

use rankduel::http::ProblemKind;
use serde_json::json;

use super::{NEVER_LOOKS, serve};
use crate::support::TestDatabase;
use crate::support::client::steady;

on_both_databases! {
    an_archived_experiment_takes_no_feedback_anywhere
}

async fn an_archived_experiment_takes_no_feedback_anywhere(database: TestDatabase) {
    let without_notices = [&NEVER_LOOKS[..], &["--no-listen"]].concat();
    let ((_one, one), (_other, other)) =
        (serve(&database, &without_notices), serve(&database, &without_notices));
    one.create(&steady("search", &["a", "b"])).await;
    let (answered, open, late) =
        (other.pair("search").await, other.pair("search").await, other.pair("search").await);
    assert_eq!(other.answer("search", &answered, "left").await, 1);
    one.patch("search", &json!({"status": "concluded"})).await.json(200);
    // concluded: what is out still counts
    assert_eq!(other.answer("search", &open, "left").await, 3);
    assert_eq!(one.send("DELETE", "/v1/experiments/search", &[], Vec::new()).await.status, 204);
    // archived: nothing does, although the other does not know
    let body = json!({"duel_id": late["duel_id"], "outcome": "left"});
    other.feedback("search", &body).await.problem(ProblemKind::ExperimentArchived);
    assert_eq!(database.count("select count(*) from log").await, 4);
    assert_eq!(database.count("select head from experiment").await, 4);
}
