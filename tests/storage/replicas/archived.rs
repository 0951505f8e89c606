//! An experiment archived at one server is closed at another server that has not read the change.

use rankduel::http::ProblemKind;
use serde_json::json;

use super::{NEVER_LOOKS, serve};
use crate::support::TestDatabase;
use crate::support::client::steady;

on_postgres! {
    an_archived_experiment_accepts_no_feedback_at_any_server
}

async fn an_archived_experiment_accepts_no_feedback_at_any_server(database: TestDatabase) {
    let without_notices = [&NEVER_LOOKS[..], &["--no-listen"]].concat();
    let ((_one, one), (_other, other)) =
        (serve(&database, &without_notices), serve(&database, &without_notices));
    one.create(&steady("search", &["a", "b"])).await;
    let (answered, open, late) =
        (other.pair("search").await, other.pair("search").await, other.pair("search").await);
    assert_eq!(other.answer("search", &answered, "left").await, 2);
    one.patch("search", &json!({"status": "concluded"})).await.json(200);
    // Concluded: duels in flight still count.
    assert_eq!(other.answer("search", &open, "left").await, 4);
    assert_eq!(one.send("DELETE", "/v1/experiments/search", &[], Vec::new()).await.status, 204);
    // Archived: no answer counts, although the other server has not read the change.
    let body = json!({"duel_id": late["duel_id"], "outcome": "left"});
    other.feedback("search", &body).await.problem(ProblemKind::ExperimentArchived);
    assert_eq!(database.count("select count(*) from log").await, 5);
    assert_eq!(database.count("select head from experiment").await, 5);
}
