//! A stopping server continues to serve until load balancers have noticed.

use rankduel::http::ProblemKind;

use super::serve;
use crate::support::client::{Client, eventually, steady};
use crate::support::{Kind, fresh_database};

#[tokio::test(flavor = "multi_thread")]
async fn a_lame_duck_is_not_ready_and_serves() {
    let database = fresh_database(Kind::Sqlite).await;
    let (process, client) = serve(&database, &["--lame-duck-seconds", "3"]);
    client.create(&steady("search", &["a", "b"])).await;
    assert_eq!(client.get("/readyz").await.status, 200);
    process.signal("TERM");
    eventually("the server to be unready", async || {
        let answer = client.get("/readyz").await;
        (answer.status == 503).then(|| answer.problem(ProblemKind::Unavailable))
    })
    .await;
    // Over a new connection.
    let new_client = Client::new(&process.url);
    let duel = new_client.next_duel("search").await;
    assert_eq!(new_client.answer("search", &duel, "left").await, 2);
    eventually("new connections to be refused", async || {
        new_client.try_send("GET", "/livez", &[], Vec::new()).await.is_err().then_some(())
    })
    .await;
    let (code, log) = process.wait();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(database.count("select count(*) from log").await, 2);
}
