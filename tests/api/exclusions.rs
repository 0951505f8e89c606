//! Units that are excluded afterwards: the log is folded anew without their answers.

use rankduel::http::ProblemKind;
use rankduel::service::transfer::{Import, export, import};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::client::{Answer, Client, assert_has, assert_verifies, steady, until, with};
use crate::support::service::Server;
use crate::support::{TestDatabase, fresh_database_beside};

on_both_databases! {
    every_server_and_every_copy_excludes_the_same_units
    a_conclusion_stays
}

on_sqlite! {
    an_excluded_unit_does_not_count
    a_policy_that_runs_in_batches_goes_on
    an_invalid_exclusion_is_refused
}

const REASON: &str = "clicks on everything";

async fn exclude(server: &Client, name: &str, units: Value, hashes: Value) -> Answer {
    let exclude = json!({"units": units, "hashes": hashes, "reason": REASON});
    server.patch(name, &json!({"exclude": exclude})).await
}

/// A duel that is shown to `unit`, and that `winner` wins.
async fn wins(server: &Client, name: &str, unit: &str, winner: &str) {
    let path = format!("/v1/experiments/{name}/next-duel");
    let duel = server.post(&path, &json!({"unit": unit})).await.json(200);
    server.wins(name, &duel, winner).await;
}

/// The verdict's own statements, the same at every server.
async fn found(server: &Client) -> [Value; 5] {
    let verdict = server.verdict("search").await;
    ["duels", "state", "winners", "decided_after_duels", "rests_on"]
        .map(|member| verdict[member].clone())
}

async fn an_excluded_unit_does_not_count(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    // half of the answers come from machines, which change their id from page to page
    for number in 0..40 {
        wins(&server, "search", &format!("person-{number}"), "a").await;
        wins(&server, "search", &format!("machine-{}", number % 10), "b").await;
    }
    let before = server.verdict("search").await;
    assert_eq!((&before["rests_on"]["answers"], &before["duels"]), (&json!(50), &json!(80)));
    let units = before["rests_on"]["heaviest_units"].as_array().expect("units");
    let hash = units[0]["unit"].clone();
    assert_eq!(units[0]["answers"], 4);

    let changed = exclude(&server, "search", json!([]), json!([hash])).await;
    assert_eq!(changed.header("etag"), Some("\"2\""));
    assert_eq!(changed.json(200)["exclusions"], json!([{"units": 1, "reason": REASON}]));
    let one = server.verdict("search").await;
    assert_eq!((&one["rests_on"]["answers"], &one["duels"]), (&json!(49), &json!(76)));
    assert_eq!(one["rests_on"]["left_out_excluded"], 4);

    let machines: Vec<_> = (0..10).map(|number| format!("machine-{number}")).collect();
    let changed = exclude(&server, "search", json!(machines), json!([])).await.json(200);
    let units = [&changed["exclusions"][0]["units"], &changed["exclusions"][1]["units"]];
    assert_eq!(units, [1, 9], "one was excluded before");
    let after = server.verdict("search").await;
    let rests_on = &after["rests_on"];
    assert_eq!((&rests_on["answers"], &after["duels"]), (&json!(40), &json!(40)));
    assert_has(rests_on, json!({"left_out_excluded": 40, "excluded_units": 10}));
    assert_eq!(rests_on["heaviest_units"][0]["answers"], 1);
    assert!(rests_on["assumptions"].to_string().contains("Which units were excluded"));
    assert_eq!((&after["winners"], &after["state"]), (&json!(["a"]), &json!("decided")));
    let standings = server.standings("search").await;
    assert_eq!(
        standings["wins"],
        json!([[0, 40], [0, 0]]),
        "the policy has learnt from the others"
    );

    // later answers do not count either
    wins(&server, "search", "machine-3", "b").await;
    assert_eq!(server.verdict("search").await["rests_on"]["left_out_excluded"], 41);
    assert_eq!(server.standings("search").await["wins"], json!([[0, 40], [0, 0]]));
    // the same exclusion again is none
    let again = exclude(&server, "search", json!(machines), json!([])).await.json(200);
    assert_eq!(again["version"], 3);
    let audit = server.get("/v1/audit?experiment=search").await.text();
    assert!(audit.contains(REASON) && audit.contains(hash.as_str().expect("a hash")), "{audit}");
    assert!(!audit.contains("machine-3"), "{audit}");
    let page = server.get("/experiments/search").await.text().replace('\u{a0}', " ");
    assert!(page.contains("10 excluded units had 41 answers"), "{page}");
}

async fn every_server_and_every_copy_excludes_the_same_units(database: TestDatabase) {
    let [first, second] = Server::two(&database).await;
    let experiment = json!({
        // D-TS can show one ranker alone before the excluded units have any answers
        "name": "search", "rankers": ["a", "b", "c"], "policy": {"kind": "uniform"}, "seed": 3,
        "conclude_at": "never",
    });
    first.create(&experiment).await;
    for number in 0..60 {
        let server = if number % 2 == 0 { &first } else { &second };
        let unit = format!("u-{}", number % 13);
        let path = "/v1/experiments/search/next-duel";
        let duel = server.post(path, &json!({"unit": unit})).await.json(200);
        if duel["self_duel"] == false {
            server.answer("search", &duel, if number % 3 == 0 { "left" } else { "right" }).await;
        }
    }
    // a duel that is in flight during the exclusion
    let path = "/v1/experiments/search/next-duel";
    let open = loop {
        let duel = second.post(path, &json!({"unit": "u-1"})).await.json(200);
        if duel["self_duel"] == false {
            break duel;
        }
    };
    exclude(&first, "search", json!(["u-1", "u-2"]), json!([])).await.json(200);
    until("the exclusion at the other server", async || {
        found(&second).await[4]["excluded_units"] == 2
    })
    .await;
    second.answer("search", &open, "left").await;
    for number in 0..10 {
        wins(&second, "search", &format!("v-{number}"), "a").await;
    }
    until("the servers to be level", async || {
        first.position("search").await == second.position("search").await
    })
    .await;
    let whole = found(&first).await;
    assert_eq!(found(&second).await, whole);
    assert!(whole[4]["left_out_excluded"].as_u64() > Some(1), "{whole:?}");
    first.stop().await;
    let third =
        second.same_after_restarts(&database, "search", async |server| found(server).await).await;
    third.stop().await;

    // a copy in a database of the other kind
    let store = database.connect().await;
    let mut file = Vec::new();
    export(&*store, "search", &mut file).await.expect("a file");
    let other = fresh_database_beside(&database).await;
    let copy = other.store().await;
    let imported = import(&*copy, &mut &file[..], None, None).await.expect("an import");
    assert!(matches!(imported, Import::New { .. }));
    assert_verifies(&*copy, "search").await;
    let fifth = Server::start(copy).await;
    assert_eq!(found(&fifth).await, whole, "from the copy");

    // a file whose record excludes another unit than its log
    let mut lines: Vec<Value> = String::from_utf8(file)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    lines[0]["spec"]["exclusions"][0]["hashes"][0] = json!("0000000000000001");
    let (end, lines) = lines.split_last_mut().expect("a last line");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let digest = Sha256::digest(&text);
    end["sha256"] = json!(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let text = format!("{text}{end}\n");
    let refused = import(&*store, &mut text.as_bytes(), Some("other"), None).await;
    let error = refused.expect_err("another unit than in the log").to_string();
    assert!(error.contains("differ in exclusions"), "{error}");
}

async fn a_policy_that_runs_in_batches_goes_on(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let policy = json!({"kind": "pcomp", "horizon": 100, "batches": 3});
    server.create(&with(steady("search", &["a", "b", "c"]), json!({"policy": policy}))).await;
    let batch = async || server.report("search", "batch").await;
    let mut number = 0;
    while batch().await["number"] == 1 {
        wins(&server, "search", &format!("u-{}", number % 5), "a").await;
        number += 1;
        assert!(number < 1000, "the first batch does not end");
    }
    exclude(&server, "search", json!(["u-0"]), json!([])).await.json(200);
    let open = batch().await;
    assert_eq!(open["number"], 1, "the excluded answers are missing again: {open}");
    // the batch ends once more, by results that were obtained elsewhere
    let missing = server.missing_results("search").await;
    let posted = server.post("/v1/experiments/search/batch/results", &missing).await.json(200);
    assert_eq!(posted["status"], "recorded");
    assert_ne!(batch().await["number"], 1);
    let store = database.connect().await;
    assert_verifies(&*store, "search").await;
}

async fn a_conclusion_stays(database: TestDatabase) {
    let body = with(steady("search", &["a", "b"]), json!({"conclude_at": {"confidence": 0.95}}));
    let server = Server::running(&database, &body).await;
    for number in 0..40 {
        wins(&server, "search", &format!("u-{number}"), "a").await;
    }
    server.concluded("search").await;
    let units: Vec<_> = (0..40).map(|number| format!("u-{number}")).collect();
    let experiment = exclude(&server, "search", json!(units), json!([])).await.json(200);
    assert_eq!((&experiment["status"], &experiment["winner"]), (&json!("concluded"), &json!("a")));
    let verdict = server.verdict("search").await;
    assert_eq!((&verdict["winners"], &verdict["duels"]), (&json!([]), &json!(0)));
    assert_eq!(verdict["concluded"]["automatic"], true);
    let sentence = verdict["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("Without the answers of the excluded units"), "{sentence}");
    // no limit of days or answers ended it
    let answer = server.get("/v1/experiments/search").await.json(200)["answer"].clone();
    let headline = "The experiment ended on `a`. Without the answers of the excluded units there is \
                    no result.";
    assert_eq!(answer["headline"], headline);
}

async fn an_invalid_exclusion_is_refused(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    wins(&server, "search", "u-1", "a").await;
    let many: Vec<_> = (0..4097).map(|number| format!("u-{number}")).collect();
    for (body, pointer) in [
        (json!({"reason": REASON}), "/exclude"),
        (json!([["u-1"], [], REASON]), "/exclude"),
        (json!({"units": [], "hashes": [], "reason": REASON}), "/exclude"),
        (json!({"units": ["u-1"]}), "/exclude"),
        (json!({"units": ["u-1"], "reason": ""}), "/exclude/reason"),
        (json!({"units": ["u-1"], "reason": "x".repeat(501)}), "/exclude/reason"),
        (json!({"units": ["u-1", ""], "reason": REASON}), "/exclude/units/1"),
        (json!({"hashes": ["7f3a"], "reason": REASON}), "/exclude/hashes/0"),
        (json!({"units": many, "reason": REASON}), "/exclude"),
    ] {
        let body = json!({"exclude": body});
        server.refuses_change("search", &body, pointer).await;
    }
    let path = "/v1/experiments/search";
    assert_eq!(server.get(path).await.json(200)["version"], 1);

    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    server.prune("search", 1).await;
    let refused = exclude(&server, "search", json!(["u-1"]), json!([])).await;
    refused.problem_saying(ProblemKind::LogPruned, "pruned");
    assert_eq!(server.send("DELETE", path, &[], Vec::new()).await.status, 204);
    let refused = exclude(&server, "search", json!(["u-1"]), json!([])).await;
    refused.problem(ProblemKind::ExperimentArchived);
}
