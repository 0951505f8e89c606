//! The best ranker, the confidence in it, and experiments that conclude automatically.

use std::time::Duration;

use rankduel::http::ProblemKind;
use rankduel::service::ServiceSettings;
use serde_json::{Value, json};

use crate::support::client::{Client, JSON, assert_has, eventually, steady, with};
use crate::support::service::{Server, Settings};
use crate::support::{Kind, TestDatabase};

on_both_databases! {
    an_experiment_concludes_automatically_once
    a_conclusion_does_not_wait_for_the_maintenance_round
    a_failed_conclusion_does_not_block_others
}

on_sqlite! {
    a_verdict_goes_from_unknown_to_decided
    the_pages_until_the_verdict_are_estimated
    a_confidence_out_of_range_is_refused
    a_stricter_reading_does_not_deny_the_verdict
    an_experiment_concludes_at_its_limits
    winners_are_reported_for_every_notion
    at_most_fifty_deciding_pairs_are_listed
    a_conclusion_elsewhere_is_read_with_its_author
}

/// Answer `duels` duels; the first ranker in alphabetical order always wins.
async fn play(server: &Client, name: &str, duels: usize) {
    for _ in 0..duels {
        server.first_wins(name, &server.pair(name).await).await;
    }
}

async fn the_pages_until_the_verdict_are_estimated(database: TestDatabase) {
    let server = Server::running(&database, &steady("close", &["a", "b"])).await;
    for number in 0..90 {
        let duel = server.pair("close").await;
        let winner = if number % 5 < 3 { "a" } else { "b" };
        server.wins("close", &duel, winner).await;
    }
    let open = server.verdict("close").await;
    let end = |end: &str| open["duels_to_go"][end].as_u64();
    let (low, estimate) = (end("low").expect("a number"), end("estimate").expect("a number"));
    // where pairs are drawn nearly even, the longest simulations do not end
    let high = end("high").unwrap_or(u64::MAX);
    assert!(0 < low && low <= estimate && estimate <= high, "{open}");
    let sentence = open["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains(" more pages."), "{sentence}");
}

async fn a_verdict_goes_from_unknown_to_decided(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b", "c"])).await;
    let before = server.verdict("search").await;
    assert_eq!((&before["state"], &before["confidence"]), (&json!("nothing-known"), &json!(0.95)));
    assert_eq!((&before["winners"], &before["possible"]), (&json!([]), &json!(["a", "b", "c"])));
    assert_eq!((&before["margin"], &before["condorcet"]), (&json!(0.01), &json!(false)));
    assert_eq!((&before["duels_to_go"], &before["concluded"]), (&json!(null), &json!(null)));
    assert!(before["duels_to_go_reason"].as_str().is_some_and(|why| why.contains("0 pages")));
    assert_eq!(before["deciding_pairs"][0]["win_rate"], json!(null));
    let page = server.get("/experiments/search").await.text();
    assert!(!page.contains("leads"), "no ranker leads before the first duel: {page}");
    assert_has(&before["deciding_pairs"][0], json!({"low": 0.0, "high": 1.0}));

    play(&server, "search", 15).await;
    let open = server.verdict("search").await;
    assert_has(&open, json!({"state": "open", "leader": "a", "duels": 15}));
    assert_eq!(open["deciding_pairs"][0]["left"], "a", "it has to win its pairs: {open}");
    assert!(open["deciding_pairs"][0]["duels_missing"].as_u64() > Some(0), "{open}");
    let needed = open["evidence_needed"].as_f64().expect("a number");
    assert!((20.0..25.0).contains(&needed), "{open}");
    assert_eq!(open["rankers"][0]["evidence_against"], json!(null), "the leader");
    for rival in [1, 2] {
        let evidence = open["rankers"][rival]["evidence_against"].as_f64().expect("a number");
        let possible = open["rankers"][rival]["possible"].as_bool().expect("a flag");
        assert_eq!(possible, evidence < needed, "{open}");
    }
    let reason = "15 pages have a winner, and an estimate needs 120";
    // so few duels say little about close pairs
    assert_has(&open, json!({"duels_to_go": null, "duels_to_go_reason": reason}));
    let chances: f64 =
        (0..3).map(|i| open["rankers"][i]["condorcet_probability"].as_f64().unwrap()).sum();
    assert!(
        chances <= 1.0 + 1e-9 && open["rankers"][0]["condorcet_probability"].as_f64() > Some(0.4),
        "{open}"
    );
    assert!(open["sentence"].as_str().is_some_and(|text| text.contains("`a` leads")), "{open}");

    // with fewer, a pair may by chance have too few for "beats all others"
    play(&server, "search", 120).await;
    let answer = server.get("/v1/experiments/search/verdict").await;
    let tag = answer.header("etag").expect("an ETag").to_owned();
    let decided = answer.json(200);
    assert_eq!((&decided["state"], &decided["winners"]), (&json!("decided"), &json!(["a"])));
    assert_eq!(
        (&decided["rankers"][0]["certain"], &decided["condorcet"]),
        (&json!(true), &json!(true))
    );
    assert!(decided["decided_after_duels"].as_u64().is_some_and(|duels| (16..75).contains(&duels)));
    assert_eq!(
        (&decided["deciding_pairs"], &decided["duels_to_go"]["estimate"]),
        (&json!([]), &json!(0))
    );
    assert_eq!(
        decided["sentence"],
        "Ship `a`. `a` is the best ranker: it beats both others, or is less than 1 point behind. A wrong verdict comes up in at most 5 % of experiments; counting the claim that it beats both others, in at most 10 %."
    );
    let effects = decided["effects"].as_array().expect("a list");
    assert_eq!(effects.len(), 2, "{decided}");
    for effect in effects {
        let value = |name: &str| effect[name].as_f64().expect("a number");
        assert!(
            value("low") < value("estimate") && value("estimate") < value("win_rate"),
            "{effect}"
        );
        assert!(value("win_rate") <= value("high") && value("low") > 0.3, "{effect}");
    }
    assert!(effects[0]["estimate"].as_f64() <= effects[1]["estimate"].as_f64(), "{decided}");
    for effect in open["effects"].as_array().expect("a list") {
        let is_right = effect["low"].as_f64().expect("a number") >= 0.49;
        assert_eq!((&effect["ruled_out"], &effect["estimate"]), (&json!(is_right), &json!(null)));
    }
    let known = |tag: &str| vec![("if-none-match".to_owned(), tag.to_owned())];
    let headers = known(&tag);
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    let path = "/v1/experiments/search/verdict";
    assert_eq!(server.send("GET", path, &headers, Vec::new()).await.status, 304);
    let other = format!("{path}?confidence=0.999");
    assert_eq!(
        server.send("GET", &other, &headers, Vec::new()).await.json(200)["confidence"],
        0.999
    );

    // The verdict shows the concluded winner, although the answers in the log are the same.
    server.patch("search", &json!({"status": "concluded", "winner": "b"})).await.json(200);
    let concluded = server.verdict("search").await;
    assert_eq!(concluded["concluded"], json!({"winner": "b", "automatic": false, "reason": null}));
    let sentence = concluded["sentence"].as_str().expect("a sentence");
    let headline = "The experiment ended on `b`, but the result is `a`. `a` is the best ranker";
    assert!(sentence.starts_with(headline), "{sentence}");
    let page = server.get("/experiments/search").await.text();
    assert!(page.contains("but the result is "), "{page}");
    server.get("/v1/experiments/nobody/verdict").await.problem(ProblemKind::ExperimentNotFound);
    server.get("/v1/experiments/nobody/winners").await.problem(ProblemKind::ExperimentNotFound);
}

async fn a_confidence_out_of_range_is_refused(database: TestDatabase) {
    let body = with(steady("search", &["a", "b"]), json!({"conclude_at": {"confidence": 0.9}}));
    let server = Server::start(database.store().await).await;
    let created = server.create(&body).await;
    assert_eq!(created["conclude_at"], json!({"confidence": 0.9, "margin": 0.01}));
    assert_eq!(server.verdict("search").await["confidence"], 0.9, "the experiment's own");
    for confidence in ["0.4", "1", "NaN", "inf", "x", ""] {
        let path = format!("/v1/experiments/search/verdict?confidence={confidence}");
        let problem = server.get(&path).await.problem(ProblemKind::InvalidRequest);
        assert_eq!(problem["errors"][0]["in"], "query", "{problem}");
    }
}

/// An experiment that concludes automatically at 0.95, and certainly does after these answers.
async fn decided(server: &Client, name: &str) {
    let body =
        with(steady(name, &["a", "b"]), json!({"conclude_at": {"confidence": 0.95}, "watch": 0}));
    server.create(&body).await;
    // The answers are sent in one request: the experiment may conclude after some of them and then
    // issue no more duels.
    let mut answers = Vec::new();
    for _ in 0..25 {
        let duel = server.pair(name).await;
        let outcome = if duel["left"] == "a" { "left" } else { "right" };
        answers.push(json!({"duel_id": duel["duel_id"], "outcome": outcome}));
    }
    server.feedback(name, &json!({"feedback": answers})).await.json(200);
}

async fn an_experiment_concludes_automatically_once(database: TestDatabase) {
    let [server, second] = Server::two(&database).await;
    decided(&server, "search").await;
    // Both servers have it in memory, and both check it.
    second.standings("search").await;
    let experiment = server.concluded("search").await;
    assert_eq!((&experiment["winner"], &experiment["version"]), (&json!("a"), &json!(2)));
    second.concluded("search").await;
    // The record may be read before the log entry with the reason.
    let found = eventually("the reason", async || {
        let found = second.verdict("search").await;
        (found["concluded"]["automatic"] == true).then_some(found)
    })
    .await;
    assert_eq!(found["concluded"]["winner"], "a");
    let reason = found["concluded"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("confidence 0.95") && reason.contains("position"), "{reason}");
    let duel = server.next_duel("search").await;
    assert_eq!((&duel["left"], &duel["right"]), (&json!("a"), &json!("a")));
    assert_eq!(
        database
            .count("select count(*) from log where kind = 1 and detail like '%concluded%'")
            .await,
        1,
        "one event"
    );
    // somebody decides otherwise
    server.patch("search", &json!({"status": "running"})).await.json(200);
    let open = server.verdict("search").await;
    assert_eq!((&open["concludes_by_itself"], &open["concluded"]), (&json!(false), &Value::Null));
    server.patch("search", &json!({"status": "concluded", "winner": "b"})).await.json(200);
    let concluded = server.verdict("search").await["concluded"].clone();
    let by_hand = json!({"winner": "b", "automatic": false, "reason": null});
    assert_eq!(concluded, by_hand);
}

async fn a_stricter_reading_does_not_deny_the_verdict(database: TestDatabase) {
    let body = with(steady("search", &["a", "b"]), json!({"conclude_at": {"confidence": 0.5}}));
    let server = Server::running(&database, &body).await;
    play_until_concluded(&server, "search").await;
    let path = "/v1/experiments/search/verdict?confidence=0.9999";
    let strict = server.get(path).await.json(200);
    let sentence = strict["sentence"].as_str().expect("a sentence");
    assert_eq!(strict["winners"], json!([]), "{strict}");
    assert!(sentence.starts_with("The evidence is not enough for a verdict"), "{sentence}");
}

/// The servers run a maintenance round when they start and then one an hour, so that only the fold
/// itself can bring the conclusion.
async fn a_conclusion_does_not_wait_for_the_maintenance_round(database: TestDatabase) {
    let hourly = || {
        let hour = Duration::from_secs(3600);
        let service = ServiceSettings { maintain_every: hour, ..ServiceSettings::default() };
        Settings { service, ..Settings::default() }
    };
    let server = Server::with(database.store().await, hourly()).await;
    let second = Server::with(database.connect().await, hourly()).await;

    // a verdict, which both servers fold
    let body = with(steady("search", &["a", "b"]), json!({"conclude_at": {"confidence": 0.95}}));
    server.create(&body).await;
    second.standings("search").await;
    play_until_concluded(&server, "search").await;
    assert_eq!(second.concluded("search").await["version"], 2, "one of them concluded it, once");

    // a limit of duels
    let body = with(steady("few", &["a", "b", "c"]), json!({"conclude_at": {"max_duels": 4}}));
    server.create(&body).await;
    play(&server, "few", 4).await;
    let experiment = server.concluded("few").await;
    assert_eq!(experiment["version"], 2);

    // an experiment that is set running again after a conclusion keeps running
    server.patch("few", &json!({"status": "running"})).await.json(200);
    play(&server, "few", 3).await;
    let experiment = server.experiment("few").await;
    assert_eq!((&experiment["status"], &experiment["version"]), (&json!("running"), &json!(3)));
}

/// A server that reads that another one concluded the experiment knows by whom, also if no notice
/// has reached it.
async fn a_conclusion_elsewhere_is_read_with_its_author(database: TestDatabase) {
    let hour = Duration::from_secs(3600);
    let service = ServiceSettings { poll_every: hour, listen: false, ..ServiceSettings::default() };
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let second =
        Server::with(database.connect().await, Settings { service, ..Settings::default() });
    let second = second.await;
    second.standings("search").await;
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    let body = json!({"description": "another"}).to_string().into_bytes();
    let headers = [JSON, ("if-match", "\"1\"")];
    second
        .send("PATCH", "/v1/experiments/search", &headers, body)
        .await
        .problem(ProblemKind::PreconditionFailed);
    assert_eq!(second.experiment("search").await["status"], "concluded");
    assert_eq!(second.verdict("search").await["concluded"]["automatic"], false);
}

/// Answer duels one by one, `a` always wins, until the experiment is concluded.
async fn play_until_concluded(server: &Client, name: &str) {
    eventually("the conclusion", async || {
        let experiment = server.experiment(name).await;
        if experiment["status"] == "concluded" {
            // whoever reads the status finds in the verdict who concluded it
            assert_eq!(server.verdict(name).await["concluded"]["automatic"], true);
            return Some(());
        }
        let duel = server.next_duel(name).await;
        if duel["self_duel"] == false {
            server.wins(name, &duel, "a").await;
        }
        None
    })
    .await;
}

const DAY_MS: i64 = 86_400_000;

async fn an_experiment_concludes_at_its_limits(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    // a limit of duels, before there is a verdict
    let body = with(steady("few", &["a", "b", "c"]), json!({"conclude_at": {"max_duels": 4}}));
    server.create(&body).await;
    play(&server, "few", 4).await;
    let experiment = server.concluded("few").await;
    // after so few duels any of them may lead
    let winner = experiment["winner"].as_str().expect("a winner").to_owned();
    let found = eventually("the reason", async || {
        let found = server.verdict("few").await;
        (found["concluded"]["automatic"] == true).then_some(found)
    })
    .await;
    let reason = found["concluded"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("`max_duels`") && reason.contains("4 duels"), "{reason}");
    assert_eq!((&found["state"], &found["winners"]), (&json!("open"), &json!([])));
    let sentence = found["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains(&format!("ended on `{winner}` without a result")), "{sentence}");
    assert_eq!(found["duels_to_go"], json!(null));

    // a verdict that has to wait for a day, and a limit of days
    let body = with(steady("search", &["a", "b"]), json!({"conclude_at": {"min_days": 1}}));
    server.create(&body).await;
    let body = with(steady("slow", &["a", "b", "c"]), json!({"conclude_at": {"max_days": 2}}));
    server.create(&body).await;
    play(&server, "search", 25).await;
    play(&server, "slow", 3).await;
    assert_eq!(server.verdict("search").await["state"], "decided");
    let page = server.get("/experiments/search").await.text();
    assert!(page.contains("The experiment goes on until it has run for "), "{page}");
    decided(&server, "other").await;
    server.concluded("other").await;
    let status = async |name: &str| server.experiment(name).await["status"].clone();
    assert_eq!(
        (status("search").await, status("slow").await),
        (json!("running"), json!("running"))
    );
    server.clock.advance_ms(DAY_MS);
    server.concluded("search").await;
    assert_eq!(status("slow").await, "running");
    server.clock.advance_ms(DAY_MS);
    server.concluded("slow").await;
}

async fn a_failed_conclusion_does_not_block_others(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let (refuse, allow) = match database.kind {
        Kind::Sqlite => (
            "create trigger stuck before update on experiment when new.status <> old.status and new.name like 'blocked%'
             begin select raise(abort, 'no'); end",
            "drop trigger stuck",
        ),
        Kind::Postgres => (
            "create function stuck() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
             create trigger stuck before update on experiment for each row
             when (new.status <> old.status and new.name like 'blocked%') execute function stuck()",
            "drop trigger stuck on experiment",
        ),
    };
    database.execute(refuse).await;
    let stuck = ["blocked-1", "blocked-2", "blocked-3", "blocked-4"];
    for name in stuck {
        decided(&server, name).await;
    }
    decided(&server, "search").await;
    server.concluded("search").await;
    for name in stuck {
        assert_eq!(server.experiment(name).await["status"], "running");
    }
    database.execute(allow).await;
    for name in stuck {
        server.concluded(name).await;
    }
}

async fn winners_are_reported_for_every_notion(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b", "c"])).await;
    let path = "/v1/experiments/search/winners";
    let before = server.get(path).await.json(200);
    assert_eq!((&before["pairs_compared"], &before["pairs"]), (&json!(0), &json!(3)));
    assert!(before["note"].as_str().is_some_and(|note| note.contains("No pair")), "{before}");

    // a always beats b, and c two times in three; b always beats c.
    let mut seen = std::collections::HashMap::new();
    while seen.len() < 3 || seen.values().any(|count| *count < 3) {
        let duel = server.pair("search").await;
        let (left, right) = (duel["left"].as_str().unwrap(), duel["right"].as_str().unwrap());
        let (low, high) = if left < right { (left, right) } else { (right, left) };
        let count = seen.entry((low.to_owned(), high.to_owned())).or_insert(0);
        if *count == 3 {
            continue;
        }
        *count += 1;
        let winner = if (low, high, *count) == ("a", "c", 3) { high } else { low };
        server.answer("search", &duel, if winner == left { "left" } else { "right" }).await;
    }
    let found = server.get(path).await.json(200);
    let notion = |name: &str| {
        found["notions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["notion"] == name)
            .unwrap()
            .clone()
    };
    for name in ["copeland", "condorcet", "borda", "random-walk", "von-neumann"] {
        assert_eq!(notion(name)["winners"], json!(["a"]), "{name}");
    }
    assert_eq!(notion("copeland")["scores"], json!([1.0, 0.5, 0.0]));
    let borda: Vec<f64> = serde_json::from_value(notion("borda")["scores"].clone()).unwrap();
    assert!((borda[0] - 5.0 / 6.0).abs() < 1e-9 && (borda[1] - 0.5).abs() < 1e-9, "{borda:?}");
    assert_has(&found, json!({"agree": true, "note": "Every notion that has a winner names `a`."}));
    assert_eq!(server.get(path).await.header("etag"), Some("\"10\""));
}

/// Finding them takes too long for a report.
async fn at_most_fifty_deciding_pairs_are_listed(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for (name, rankers) in [("few", 12), ("many", 60)] {
        let ids: Vec<String> = (0..rankers).map(|number| format!("r{number}")).collect();
        server.create(&steady(name, &ids.iter().map(String::as_str).collect::<Vec<_>>())).await;
        play(&server, name, 20).await;
        let open = server.verdict(name).await;
        assert_eq!(open["state"], "open");
        let pairs = open["deciding_pairs"].as_array().expect("pairs").len();
        let total = open["deciding_pairs_total"].as_u64().expect("a number") as usize;
        assert_eq!(pairs, total.min(50), "{name}");
        assert_eq!(total > 50, name == "many", "{total}");
    }
    server.get("/experiments/many").await.text();
}
