//! The picture of win rates of many rankers.

use serde_json::json;

use crate::dashboard::scene::fill;
use crate::support::service::Server;
use crate::support::{Kind, fresh_database};

/// The picture of the section on win rates.
async fn picture(server: &Server, name: &str) -> String {
    let page = server.get(&format!("/experiments/{name}")).await.text();
    let section = page.split(r#"<section id="rates""#).nth(1).expect("win rates").to_owned();
    let figure = section.split("<figure").nth(1).expect("a picture").to_owned();
    figure.split("</figure>").next().expect("its content").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_square_is_a_pair_or_the_mean_of_neighbours() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = Server::start(database.store().await).await;
    fill(&server, "many", 30, json!({"kind": "uniform"}), 200).await;
    fill(&server, "more", 201, json!({"kind": "uniform"}), 2000).await;

    let many = picture(&server, "many").await;
    assert!(many.contains(r#"viewBox="0 0 30 30""#), "{many}");
    assert!(!many.contains("Each square"), "{many}");

    let more = picture(&server, "more").await;
    assert!(more.contains(r#"viewBox="0 0 101 101""#), "the head of {}", &more[..300]);
    assert!(
        more.contains("Each square is the mean of up to 2 rankers"),
        "the head of {}",
        &more[..300]
    );
    // some squares are clearly won and others clearly lost
    let squares = |class: &str| {
        let path = more.split(&format!(r#"class="cell {class}""#)).nth(1).expect("squares");
        path.split("</path>").next().expect("a path").matches('M').count()
    };
    assert!(squares("w1") > 0 && squares("w7") > 0);
}
