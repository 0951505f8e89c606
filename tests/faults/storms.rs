//! Many clients at once, all about one pair.

use crate::rounds;
use crate::scene::Scene;
use crate::support::TestDatabase;
use crate::verify::verify;

on_both_databases! {
    all_clients_answer_about_one_pair
}

/// Hundreds of clients, and one experiment with two rankers.
async fn all_clients_answer_about_one_pair(database: TestDatabase) {
    let times = rounds(1);
    let scene = Scene::set(&database.url, 2).await;
    let callers = scene.office.open(300, &["pair"]);
    for _ in 0..times {
        scene.acknowledges(600).await;
    }
    scene.office.close();
    callers.join_all().await;
    verify(scene, &database.url, "300 clients on one pair", times).await;
}
