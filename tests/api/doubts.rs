//! Verdicts that may be wrong more often than they say, and answers that are missing unevenly.

use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, steady, until, with};
use crate::support::service::{Server, Settings};

on_both_databases! {
    a_verdict_that_does_not_withstand_the_loss_concludes_nothing
}

on_sqlite! {
    random_clicks_conclude_nothing
    pages_without_a_click_need_not_be_reported
    silence_about_interleaved_pages_is_no_loss
    a_verdict_says_that_it_withstands_no_loss
}

async fn status(server: &Client, name: &str) -> Value {
    server.experiment(name).await["status"].clone()
}

/// Interleave a duel's two lists of four documents, and click on one position.
async fn click(server: &Client, name: &str, position: usize) {
    let duel = server.next_duel(name).await;
    let of = |side: &str| if duel[side] == "a" { "abcd" } else { "bcda" };
    let of = |side: &str| of(side).chars().map(String::from).collect::<Vec<_>>();
    let body = json!({
        "duel_id": duel["duel_id"], "left": of("left"), "right": of("right"), "length": 4,
    });
    let path = format!("/v1/experiments/{name}/interleave");
    let page = server.post(&path, &body).await.json(200);
    let clicks = json!([{"position": position}]);
    let body = json!({"duel_id": page["duel_id"], "clicks": clicks, "final": true});
    server.feedback(name, &body).await.json(200);
}

async fn random_clicks_conclude_nothing(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let unfair = "random clicks favour a side with this method";
    for (name, method, is_fair) in [
        ("published", json!({"kind": "balanced"}), false),
        ("uncut", json!({"kind": "team-draft", "depth_policy": "uncut"}), false),
        ("sign", json!({"kind": "optimized", "verdict": "sign"}), false),
        ("debiased", json!({"kind": "balanced", "credit": "debiased"}), true),
        ("default", json!({"kind": "team-draft"}), true),
    ] {
        let body = with(
            steady(name, &["a", "b"]),
            json!({"interleaving": method, "conclude_at": {"confidence": 0.9, "max_duels": 100}}),
        );
        server.create(&body).await;
        assert_eq!(server.verdict(name).await["rests_on"]["doubts"], json!([]), "{name}");
        for page in 0..100 {
            click(&server, name, page % 4).await;
        }
        if is_fair {
            server.concluded(name).await;
        }
        let found = server.verdict(name).await;
        let doubts = &found["rests_on"]["doubts"];
        assert_eq!(doubts.as_array().expect("a list").is_empty(), is_fair, "{name}: {doubts}");
        let sentence = found["sentence"].as_str().expect("a sentence");
        assert_eq!(sentence.contains(unfair), !is_fair, "{name}: {sentence}");
        if name == "published" {
            assert_eq!(found["winners"], json!(["b"]), "noise has a winner: {found}");
        }
    }
    for name in ["published", "uncut", "sign"] {
        assert_eq!(status(&server, name).await, "running", "{name}");
        assert_eq!(server.verdict(name).await["concludes_by_itself"], false, "{name}");
        let page = server.get(&format!("/experiments/{name}")).await.text();
        assert!(page.contains(unfair), "{page}");
    }
    server.patch("published", &json!({"status": "concluded"})).await.json(200);
}

async fn a_verdict_that_does_not_withstand_the_loss_concludes_nothing(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    // `a` wins 31 of 50, which is enough for a verdict, and withstands the loss of a few
    for name in ["lossy", "complete"] {
        let body = with(
            steady(name, &["a", "b"]),
            json!({"answer_window_seconds": 60, "conclude_at": {"confidence": 0.95}}),
        );
        server.create(&body).await;
        for number in 0..180 {
            let duel = server.pair(name).await;
            let winner = if number * 31 % 50 < 31 { "a" } else { "b" };
            server.wins(name, &duel, winner).await;
            if name == "lossy" && number % 9 == 0 {
                server.pair(name).await;
            }
        }
    }
    server.clock.advance_ms(3_700_000);
    server.concluded("complete").await;
    let lossy = eventually("the verdict", async || {
        let found = server.verdict("lossy").await;
        (found["state"] == "decided").then_some(found)
    })
    .await;
    let (rests_on, sentence) = (&lossy["rests_on"], lossy["sentence"].as_str().expect("text"));
    assert_eq!(rests_on["unanswered"], 20.0 / 200.0, "{rests_on}");
    assert!(rests_on["holds_unless_lost"].as_f64() < Some(0.1), "{rests_on}");
    assert!(sentence.contains("10 % of the duels in its cohorts were not answered"), "{sentence}");
    assert!(sentence.ends_with("does not conclude by itself."), "{sentence}");
    assert_eq!(
        (status(&server, "lossy").await, &lossy["concludes_by_itself"]),
        (json!("running"), &json!(false))
    );
    // a server that issued none of the duels knows of the loss, and does not conclude either
    let second = Server::start(database.connect().await).await;
    second.clock.advance_ms(3_700_000);
    let read = second.verdict("lossy").await;
    assert_eq!((&read["sentence"], &read["rests_on"]), (&lossy["sentence"], rests_on));
    // its winner goes on to meet the rival, until the verdict withstands the loss
    let mut met = 0;
    for round in 0.. {
        if status(&server, "lossy").await == "concluded" {
            break;
        }
        for number in 0..100 {
            let duel = server.next_duel("lossy").await;
            if duel["self_duel"] == false {
                let winner = if number * 31 % 50 < 31 { "a" } else { "b" };
                server.wins("lossy", &duel, winner).await;
                met += 1;
            }
        }
        server.clock.advance_ms(3_700_000);
        until("the cohort", async || {
            let waiting = &server.verdict("lossy").await["rests_on"]["waiting"];
            *waiting == 0
        })
        .await;
        assert!(round < 50, "{}", server.verdict("lossy").await);
    }
    assert!(met > 50, "it went on: {met}");
    let complete = server.verdict("complete").await;
    assert_eq!(complete["rests_on"]["doubts"], json!([]));
    let unanswered = complete["rests_on"]["unanswered"].as_f64();
    assert_eq!(unanswered, Some(0.0), "{complete}");
}

/// Searchers click on a page of `c` more often than on others, and pages without a click are not
/// reported. With `fails`, every second page of `c` is not made.
async fn traffic(server: &Server, name: &str, makes_pages: bool, fails: bool) -> Vec<Value> {
    let body = with(steady(name, &["a", "b", "c"]), json!({"duel_ttl_seconds": 64}));
    server.create(&body).await;
    for number in 0..900 {
        let duel = server.pair(name).await;
        let has_c = duel["left"] == "c" || duel["right"] == "c";
        if makes_pages && !(fails && has_c && number % 2 == 0) {
            let body =
                json!({"duel_id": duel["duel_id"], "left": ["x"], "right": ["y"], "length": 2});
            server.post(&format!("/v1/experiments/{name}/interleave"), &body).await.json(200);
        }
        if has_c || number % 3 == 0 {
            server.answer(name, &duel, if number % 2 == 0 { "left" } else { "right" }).await;
        }
        if number % 30 == 0 {
            server.clock.advance_ms(1000);
        }
    }
    server.clock.advance_ms(200_000);
    let traffic = server.report(name, "traffic").await;
    let alarms = traffic["alarms"].as_array().expect("a list").iter();
    alarms.filter(|alarm| alarm["kind"] == "uneven-answers").cloned().collect()
}

async fn pages_without_a_click_need_not_be_reported(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    assert_eq!(traffic(&server, "clicks-only", true, false).await, [json!(null); 0]);
    let detail = |alarms: Vec<Value>| alarms[0]["detail"].as_str().expect("a text").to_owned();
    let failing = detail(traffic(&server, "failing", true, true).await);
    assert!(
        failing.contains("% interleaved here") && !failing.contains("without a click"),
        "{failing}"
    );
    let unknown = detail(traffic(&server, "unknown", false, false).await);
    assert!(unknown.contains("If pages without a click are not reported"), "{unknown}");
    // it is evidence, so it outlives the server that has seen it
    let is_stored = async || {
        let answer = server.experiment("unknown").await["answer"].clone();
        answer["alarms"][0]["kind"] == "uneven-answers"
    };
    until("the alarm in the answer", is_stored).await;
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    server.clock.advance_ms(86_400_000);
    let traffic = server.report("unknown", "traffic").await;
    let mut alarms = traffic["alarms"].as_array().expect("alarms").iter();
    let uneven = alarms.find(|alarm| alarm["kind"] == "uneven-answers").expect("it is still on");
    assert_eq!(uneven["detail"], unknown);
    let page = server.get("/experiments/unknown/traffic").await.text();
    assert!(!page.contains("no sign of a difference"), "{page}");
    assert_eq!(server.experiment("unknown").await["answer"]["state"], "alarm");
}

/// Half of the pages have no click. Where none of them is reported, silence is no click; where one
/// was, a missing answer may be a lost one.
async fn silence_about_interleaved_pages_is_no_loss(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    for name in ["clicks-only", "reported"] {
        let body = with(
            steady(name, &["a", "b"]),
            json!({"answer_window_seconds": 1800, "conclude_at": {"confidence": 0.95}}),
        );
        server.create(&body).await;
        let (path, feedback) = (format!("/v1/experiments/{name}/interleave"), "final");
        for number in 0..180 {
            for has_click in [true, false] {
                let duel = server.pair(name).await;
                let list =
                    |side: &str| json!([format!("{}1", duel[side].as_str().expect("an id"))]);
                let page = json!({"duel_id": duel["duel_id"], "left": list("left"),
                    "right": list("right"), "length": 2});
                let page = server.post(&path, &page).await.json(200);
                let winner = if number * 31 % 50 < 31 { "a1" } else { "b1" };
                let clicks = if has_click { json!([winner]) } else { json!([]) };
                let body = json!({"duel_id": page["duel_id"], "clicks": clicks, feedback: true});
                if has_click || (name == "reported" && number == 7) {
                    server.feedback(name, &body).await.json(200);
                }
            }
        }
    }
    server.clock.advance_ms(3_700_000);
    server.concluded("clicks-only").await;
    let rests_on = server.verdict("clicks-only").await["rests_on"].clone();
    assert_eq!((&rests_on["unanswered"], &rests_on["doubts"]), (&json!(0.5), &json!([])));
    assert!(rests_on["assumptions"].to_string().contains("had no click"), "{rests_on}");
    let doubts = server.verdict("reported").await["rests_on"]["doubts"].clone();
    assert!(doubts.to_string().contains("were not answered in time"), "{doubts}");
    assert_eq!(status(&server, "reported").await, "running");
}

async fn a_verdict_says_that_it_withstands_no_loss(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    for number in 0..45 {
        let duel = server.pair("search").await;
        let winner = if number < 25 { "a" } else { "b" };
        server.wins("search", &duel, winner).await;
    }
    let found = server.verdict("search").await;
    let holds = &found["rests_on"]["holds_unless_lost"];
    assert_eq!((&found["winners"], holds), (&json!(["a"]), &json!(0.0)), "it stays: {found}");
    let page = server.get("/experiments/search").await.text();
    let sentence = found["sentence"].as_str().expect("a sentence");
    for text in [sentence, &page] {
        assert!(text.contains("If answers can get lost"), "{text}");
    }
    assert!(!page.contains("It holds unless more than"), "{page}");
}
