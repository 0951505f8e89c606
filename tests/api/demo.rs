//! `rankduel demo --letor` as a process: from judged documents to a winner, over HTTP.

use std::process::Command;

use crate::support::TestDatabase;

on_sqlite! {
    the_feature_that_knows_the_grades_wins
}

async fn the_feature_that_knows_the_grades_wins(database: TestDatabase) {
    let letor = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/small.letor");
    let url = database.url.clone();
    let run = move || {
        Command::new(env!("CARGO_BIN_EXE_rankduel"))
            .args([
                "demo", "--letor", letor, "--duels", "400", "--users", "8", "--clicks", "perfect",
            ])
            .args(["--method", "probabilistic", "--database-url", &url])
            .output()
            .expect("the program starts")
    };
    let output = tokio::task::spawn_blocking(run).await.expect("no panic");
    let printed = String::from_utf8_lossy(&output.stdout);
    // The command itself fails if the log differs from the acknowledged answers.
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let of = |label: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(label));
        line.unwrap_or_else(|| panic!("`{label}` is missing: {printed}")).trim().to_owned()
    };
    assert!(of("leader").starts_with("feature-1 (true best: feature-1;"), "{printed}");
    assert!(of("NDCG@10 of the champion").contains("place 1 of 5"), "{printed}");
    let pieces = of("clicks sent ahead");
    assert!(
        pieces
            .strip_suffix(" pieces")
            .and_then(|count| count.parse().ok())
            .is_some_and(|count: u32| count > 0)
    );
}
