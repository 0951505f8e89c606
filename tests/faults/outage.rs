//! The database is away behind the shipped proxy configuration (`deploy/haproxy.cfg`): duels go on.

use serde_json::{Value, json};

use crate::cluster::{Cluster, End};
use crate::support::client::{Client, steady, until};
use crate::support::haproxy::Haproxy;
use crate::support::server::{Process, rankduel_on};

/// The state of the database according to a server, which is ready.
async fn database_of(client: &Client) -> Value {
    client.get("/readyz").await.json(200)["checks"]["database"]["status"].clone()
}

/// The value of a metric whose line begins with `series`.
async fn metric(client: &Client, series: &str) -> u64 {
    let text = client.get("/metrics").await.text();
    let value = text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
    value.unwrap_or_default()
}

/// The number of answers to the proxy's checks.
async fn checks(client: &Client) -> u64 {
    metric(client, "rankduel_http_requests_total{method=\"GET\",route=\"/readyz\",status=\"200\"}")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_keeps_servers_whose_database_is_away() {
    let mut cluster = Cluster::start().await;
    let url = cluster.database("rankduel").await;
    let start = || {
        // The proxy's checks name another host than the local one.
        let flags = ["serve", "--listen", "127.0.0.1:0", "--log", "error", "--insecure"];
        Process::start(rankduel_on(&url, &flags))
    };
    let servers = [start(), start()];
    let clients = servers.each_ref().map(|server| Client::new(&server.url));
    let addresses = servers.each_ref().map(|server| server.url.trim_start_matches("http://"));
    let proxy = Haproxy::start(&addresses).await;
    let client = Client::new(&format!("http://{}", proxy.address()));
    clients[0].create(&steady("search", &["a", "b"])).await;
    for own in &clients {
        own.pair("search").await;
        assert_eq!(database_of(own).await, "ok");
        assert_eq!(metric(own, "rankduel_database_up").await, 1);
    }

    cluster.end(End::Kill);
    for own in &clients {
        until("the server to notice", async || database_of(own).await == "unavailable").await;
        assert_eq!(metric(own, "rankduel_database_up").await, 0);
        let before = checks(own).await;
        until("the proxy to check thrice", async || {
            client.pair("search").await;
            checks(own).await >= before + 3
        })
        .await;
    }
    assert!(proxy.has_ready_server().await);
    let duel = client.pair("search").await;
    let body = json!({"duel_id": duel["duel_id"], "outcome": "left"});
    assert_eq!(client.feedback("search", &body).await.status, 503);

    cluster.start_again().await;
    for own in &clients {
        until("the database to be back", async || database_of(own).await == "ok").await;
    }
    until("feedback to be recorded", async || client.feedback("search", &body).await.status == 200)
        .await;
}
