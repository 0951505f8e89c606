//! Orders decide: what is refused, what is received, and what it counts for.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Answer, assert_has, eventually, with};
use crate::support::service::{START_MS, Server, Settings};

on_both_databases! {
    an_order_counts_once
    clicks_and_orders_become_a_verdict
}

on_sqlite! {
    what_cannot_go_with_orders_is_refused
    what_decides_is_fixed
    each_order_that_is_no_order_says_where
    orders_go_to_every_experiment_that_counts_them
    a_click_without_a_unit_links_nothing
    clicks_on_a_page_link_in_so_many_pieces
}

const LINES: (&str, &str) = ("content-type", "application/x-ndjson");

/// An experiment of two rankers that orders decide.
pub(crate) fn shop(name: &str) -> Value {
    json!({
        "name": name, "rankers": ["a", "b"], "seed": 7, "conclude_at": "never", "drift": "off",
        "policy": {"kind": "uniform"},
        "decide_by": {"event": "order", "window_seconds": 600, "arrival_seconds": 60},
    })
}

/// A policy whose log has no entries but those of a test: the numbers of self-duels are some.
fn no_self_duels() -> Value {
    json!({"policy": {"kind": "savage"}})
}

async fn create(server: &Server, body: &Value) -> Value {
    server.post("/v1/experiments", body).await.json(201)
}

fn at(seconds: i64) -> String {
    rankduel_engine::clock::rfc3339(START_MS + 1000 * seconds)
}

pub(crate) fn order(id: &str, unit: &str, documents: &[&str]) -> Value {
    let lines: Vec<_> = documents.iter().map(|it| json!({"document": it, "value": 5.0})).collect();
    json!({"order_id": id, "unit": unit, "at": at(0), "lines": lines})
}

pub(crate) async fn send(server: &Server, name: &str, orders: &[Value]) -> Vec<Value> {
    let answer = send_to(server, &format!("/v1/experiments/{name}/orders"), orders).await;
    answer.json(200)["results"].as_array().expect("results").clone()
}

async fn send_to(server: &Server, path: &str, orders: &[Value]) -> Answer {
    server.post(path, &json!({"orders": orders})).await
}

pub(crate) fn statuses(results: &[Value]) -> Vec<&str> {
    results.iter().map(|it| it["status"].as_str().expect("a status")).collect()
}

/// A page for this unit, made of documents that one ranker alone has, and then its clicks on the
/// documents of one ranker.
async fn visit(server: &Server, name: &str, unit: &str, clicked: &str) -> Value {
    let path = |end| format!("/v1/experiments/{name}/{end}");
    let of = |id: &str| (0..4).map(|place| format!("{id}{place}")).collect::<Vec<_>>();
    let body = json!({"unit": unit, "rankings": {"a": of("a"), "b": of("b")}, "length": 4});
    let page = loop {
        let page = server.post(&path("next-duel"), &body).await.json(200);
        if page["self_duel"] == false {
            break page;
        }
    };
    let slots = page["slots"].as_array().expect("slots");
    let own = |slot: &&Value| slot["document"].as_str().is_some_and(|it| it.starts_with(clicked));
    let documents: Vec<_> = slots.iter().filter(own).map(|slot| slot["document"].clone()).collect();
    let clicks: Vec<_> = documents.iter().map(|it| json!({"document": it})).collect();
    let body = json!({"duel_id": page["duel_id"], "clicks": clicks});
    let receipt = server.post(&path("feedback"), &body).await.json(200);
    assert_eq!(receipt["status"], "recorded");
    documents[0].clone()
}

async fn what_cannot_go_with_orders_is_refused(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let decide_by = |members| json!({"decide_by": with(shop("x")["decide_by"].clone(), members)});
    let method = |method: Value| json!({"interleaving": method});
    for (pointer, members) in [
        ("/decide_by/window_seconds", decide_by(json!({"window_seconds": 59}))),
        ("/decide_by/window_seconds", decide_by(json!({"window_seconds": 2_419_201}))),
        ("/decide_by/arrival_seconds", decide_by(json!({"arrival_seconds": 604_801}))),
        ("/decide_by/event", decide_by(json!({"event": ""}))),
        ("/decide_by/cap", decide_by(json!({"by": "money"}))),
        ("/decide_by/cap", decide_by(json!({"by": "money", "cap": 0}))),
        ("/decide_by/cap", decide_by(json!({"cap": 5}))),
        ("/decide_by/by", decide_by(json!({"by": "visits"}))),
        ("/answer_window_seconds", json!({"answer_window_seconds": 600})),
        ("/event_weights", json!({"event_weights": {"click": 1}})),
        ("/settle_after_seconds", json!({"settle_after_seconds": 60})),
        ("/canary", json!({"canary": ["a", "b"]})),
        ("/policy/kind", json!({"policy": {"kind": "pcomp", "horizon": 20_000}})),
        ("/interleaving/credit", method(json!({"kind": "balanced"}))),
        ("/interleaving/credit", method(json!({"kind": "probabilistic"}))),
        (
            "/interleaving/shared",
            method(json!({"kind": "team-draft", "shared": "ignore-same-rank"})),
        ),
        (
            "/interleaving/depth_policy",
            method(json!({"kind": "team-draft", "depth_policy": "uncut"})),
        ),
        (
            "/interleaving/click_weights",
            method(json!({"kind": "team-draft", "click_weights": {"position": [1.0]}})),
        ),
    ] {
        let refused = server.post("/v1/experiments", &with(shop("x"), members)).await;
        refused.problem_at(ProblemKind::InvalidRequest, pointer);
    }
    for (name, members) in [
        ("shared", method(json!({"kind": "team-draft", "shared": "credit-all"}))),
        ("expected", method(json!({"kind": "probabilistic", "credit": "expected-clicks"}))),
        ("optimized", method(json!({"kind": "optimized"}))),
        ("money", decide_by(json!({"by": "money", "cap": 80.0}))),
    ] {
        create(&server, &with(shop(name), members)).await;
    }
    let mut short = shop("week");
    short["decide_by"] = json!({"event": "order", "window_seconds": 604_800});
    let made = create(&server, &short).await;
    assert_eq!(made["decide_by"]["arrival_seconds"], 75_600);
    assert_eq!(made["answer_window_seconds"], 604_800 + 75_600);
    assert_eq!(made["decide_by"]["by"], "orders");
    assert!(made.get("settle_after_seconds").is_none() && made.get("event_weights").is_none());
    // a repeat creates nothing
    server.post("/v1/experiments", &short).await.json(200);
}

async fn what_decides_is_fixed(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    create(&server, &shop("search")).await;
    for change in [
        json!({"answer_window_seconds": 3600}),
        json!({"decide_by": {"event": "order", "window_seconds": 3600}}),
    ] {
        server.patch("search", &change).await.problem(ProblemKind::SettingFixed);
    }
    let method = json!({"interleaving": {"kind": "balanced"}});
    server.refuses_change("search", &method, "/interleaving/credit").await;
    let method = json!({"interleaving": {"kind": "balanced", "credit": "debiased"}});
    server.patch("search", &method).await.json(200);
}

async fn each_order_that_is_no_order_says_where(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    create(&server, &shop("search")).await;
    let mut money = shop("money");
    money["decide_by"] = with(money["decide_by"].clone(), json!({"by": "money", "cap": 80.0}));
    create(&server, &money).await;
    let good = || order("A-1", "u", &["d"]);
    let line = |members| {
        let line = with(json!({"document": "d", "value": 1.0}), members);
        with(good(), json!({"lines": [line]}))
    };
    let without = |name: &str| {
        let mut order = good();
        order.as_object_mut().expect("an object").remove(name);
        order
    };
    let many: Vec<_> = (0..101).map(|_| json!({"document": "d", "value": 1.0})).collect();
    let wrong = [
        ("/unit", without("unit")),
        ("/unit", with(good(), json!({"unit": ""}))),
        ("/unit", with(good(), json!({"unit": "u".repeat(257)}))),
        ("/at", without("at")),
        ("/at", with(good(), json!({"at": "yesterday"}))),
        ("/at", with(good(), json!({"at": "2026-11-21T18:03:11"}))),
        ("/at", with(good(), json!({"at": at(6)}))),
        ("/lines", without("lines")),
        ("/lines", with(good(), json!({"lines": []}))),
        ("/lines", with(good(), json!({"lines": many}))),
        ("/lines/0/value", line(json!({"value": -1}))),
        ("/lines/0/value", line(json!({"value": 2e12}))),
        ("/lines/0/value", line(json!({"value": null}))),
        ("/lines/0/value", line(json!({"value": "5"}))),
        ("/lines/0/quantity", line(json!({"quantity": 0}))),
        ("/lines/0/quantity", line(json!({"quantity": 10_001}))),
        ("/lines/0/quantity", line(json!({"quantity": 1.5}))),
        ("/lines/0/document", line(json!({"document": ""}))),
        ("/order_id", with(good(), json!({"order_id": ""}))),
        ("/order_id", with(good(), json!({"order_id": "o".repeat(257)}))),
        ("/colour", with(good(), json!({"colour": "red"}))),
    ];
    let orders: Vec<_> = wrong.iter().map(|(_, order)| order.clone()).collect();
    for (result, (pointer, order)) in send(&server, "money", &orders).await.iter().zip(&wrong) {
        assert_eq!((&result["status"], &result["pointer"]), (&json!("invalid"), &json!(pointer)));
        assert!(result["detail"].as_str().is_some_and(|it| !it.is_empty()), "{order}");
    }
    assert_eq!(server.position("money").await, 1, "none of them is kept");
    // without money, a value may be missing; a time may be a little ahead
    let free = with(line(json!({"value": null, "quantity": 2.0})), json!({"at": at(5)}));
    assert_eq!(statuses(&send(&server, "search", &[free]).await), ["recorded"]);

    let many: Vec<_> = (0..1001).map(|id| order(&format!("B-{id}"), "u", &["d"])).collect();
    let path = "/v1/experiments/search/orders";
    for orders in [&many[..], &[]] {
        send_to(&server, path, orders).await.problem_at(ProblemKind::InvalidRequest, "/orders");
    }
    let lines: String = many.iter().map(|order| format!("{order}\r\n\n")).collect();
    let answer = server.send("POST", path, &[LINES], lines.into_bytes()).await.json(200);
    let results = answer["results"].as_array().expect("results");
    assert_eq!(results.len(), 1001);
    assert!(results.iter().all(|it| it["status"] == "recorded"));
    let two = b"{\"order_id\": \n{\"order_id\": \"B-0\", \"cancelled\": true}".to_vec();
    let answer = server.send("POST", path, &[LINES], two).await.json(200);
    let results = answer["results"].as_array().expect("results");
    assert_eq!(statuses(results), ["invalid", "recorded"]);
    let empty = server.send("POST", path, &[LINES], b"\n".to_vec()).await;
    empty.problem(ProblemKind::InvalidRequest);
    let text = ("content-type", "text/plain");
    let other = server.send("POST", path, &[text], b"{}".to_vec()).await;
    other.problem(ProblemKind::UnsupportedMediaType);
}

async fn an_order_counts_once(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    create(&server, &shop("search")).await;
    let document = visit(&server, "search", "u", "a").await;
    let bought = order("A-1", "u", &[document.as_str().expect("an id")]);
    for expected in ["recorded", "duplicate", "duplicate"] {
        let results = send(&server, "search", std::slice::from_ref(&bought)).await;
        assert_eq!(results, [json!({"status": expected, "experiments": 1})]);
    }
    let results = send(&server, "search", &[order("A-1", "v", &["d"])]).await;
    assert_eq!(statuses(&results), ["conflict"]);
    assert!(results[0]["detail"].as_str().is_some_and(|it| it.contains("cancellation")));
    // cancelled before it comes, and after it came
    let cancelled = |id: &str| json!({"order_id": id, "cancelled": true});
    let several = [cancelled("A-2"), order("A-2", "u", &["a0"]), order("A-3", "u", &["a0"])];
    assert_eq!(statuses(&send(&server, "search", &several).await), ["recorded"; 3]);
    assert_eq!(statuses(&send(&server, "search", &[cancelled("A-3")]).await), ["recorded"]);
    assert_eq!(statuses(&send(&server, "search", &[cancelled("A-3")]).await), ["duplicate"]);

    // once the basket is closed
    server.clock.advance_ms(3_600_000);
    eventually("the basket closes", async || {
        (server.verdict("search").await["rests_on"]["answers"] == 1).then_some(())
    })
    .await;
    let later = [
        bought,
        cancelled("A-1"),
        order("A-9", "u", &["a0"]),
        with(order("A-1", "v", &["d"]), json!({"at": at(1)})),
    ];
    let results = send(&server, "search", &later).await;
    assert_eq!(statuses(&results), ["duplicate", "late", "late", "conflict"]);
    let position = server.position("search").await;

    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    assert_eq!(server.position("search").await, position + 1);
    let now = with(order("B-1", "w", &["d"]), json!({"at": at(3600)}));
    assert_eq!(statuses(&send(&server, "search", std::slice::from_ref(&now)).await), ["recorded"]);
    assert_eq!(server.send("DELETE", "/v1/experiments/search", &[], Vec::new()).await.status, 204);
    let archived = send_to(&server, "/v1/experiments/search/orders", &[now]).await;
    archived.problem(ProblemKind::ExperimentArchived);
}

async fn orders_go_to_every_experiment_that_counts_them(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let all =
        async |order: &Value| send_to(&server, "/v1/orders", std::slice::from_ref(order)).await;
    let one = order("A-1", "u", &["d"]);
    all(&one).await.problem(ProblemKind::NoOrders);
    let clicks = json!({"name": "clicks", "rankers": ["a", "b"]});
    create(&server, &clicks).await;
    all(&one).await.problem(ProblemKind::NoOrders);
    let of_clicks =
        send_to(&server, "/v1/experiments/clicks/orders", std::slice::from_ref(&one)).await;
    of_clicks.problem(ProblemKind::NoOrders);
    send_to(&server, "/v1/experiments/nobody/orders", std::slice::from_ref(&one))
        .await
        .problem(ProblemKind::ExperimentNotFound);

    create(&server, &shop("one")).await;
    let result = |answer: Answer| answer.json(200)["results"][0].clone();
    assert_eq!(result(all(&one).await), json!({"status": "recorded", "experiments": 1}));
    create(&server, &shop("two")).await;
    assert_eq!(result(all(&one).await), json!({"status": "recorded", "experiments": 2}));
    assert_eq!(result(all(&one).await), json!({"status": "duplicate", "experiments": 2}));
    // another content is kept by whoever knows none yet
    create(&server, &shop("three")).await;
    let other = order("A-1", "v", &["d"]);
    assert_eq!(result(all(&other).await), json!({"status": "recorded", "experiments": 1}));
    // one that money decides takes those with a value, and costs the others nothing
    let by_money = json!({"event": "order", "window_seconds": 600, "by": "money", "cap": 100.0});
    create(&server, &with(shop("four"), json!({"decide_by": by_money}))).await;
    let mut without = order("A-5", "u", &["d"]);
    without["lines"] = json!([{"document": "d"}]);
    let result_of = result(all(&without).await);
    assert_eq!(result_of, json!({"status": "recorded", "experiments": 3}));
    let of_four = send(&server, "four", std::slice::from_ref(&without)).await;
    assert_eq!(
        (&of_four[0]["status"], &of_four[0]["pointer"]),
        (&json!("invalid"), &json!("/lines/0/value"))
    );
    server.patch("four", &json!({"status": "concluded"})).await.json(200);
    let path = "/v1/experiments/four";
    assert_eq!(server.send("DELETE", path, &[], Vec::new()).await.status, 204);
    visit(&server, "three", "w", "a").await;
    for name in ["two", "three"] {
        server.patch(name, &json!({"status": "paused"})).await.json(200);
    }
    // clicks on the last pages before a pause may still come, and open baskets
    let mut late = order("A-2", "u", &["d"]);
    assert_eq!(result(all(&late).await), json!({"status": "recorded", "experiments": 3}));
    server.clock.advance_ms(700_000);
    eventually("the basket closes", async || {
        late = with(order("A-3", "u", &["d"]), json!({"at": at(600)}));
        let counted = result(all(&late).await)["experiments"].clone();
        (counted == 1).then_some(())
    })
    .await;
    // once all have ended, the nightly job has nothing to repair
    server.patch("one", &json!({"status": "paused"})).await.json(200);
    server.clock.advance_ms(700_000);
    let ended = result(all(&late).await);
    assert_eq!((&ended["status"], &ended["experiments"]), (&json!("late"), &Value::Null));
    let of_one = send(&server, "one", &[late.clone(), order("A-4", "u", &["d"])]).await;
    assert_eq!(statuses(&of_one), ["duplicate", "late"]);
    for name in ["one", "two", "three"] {
        server.patch(name, &json!({"status": "concluded"})).await.json(200);
        let path = format!("/v1/experiments/{name}");
        assert_eq!(server.send("DELETE", &path, &[], Vec::new()).await.status, 204);
    }
    all(&late).await.problem(ProblemKind::NoOrders);
}

async fn a_click_without_a_unit_links_nothing(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    create(&server, &with(shop("search"), no_self_duels())).await;
    create(&server, &shop("uniform")).await;
    let body = json!({"rankings": {"a": ["d1", "d2"], "b": ["d3", "d4"]}, "length": 2});
    let page = server.post("/v1/experiments/search/next-duel", &body).await.json(200);
    assert_eq!(page["self_duel"], false);
    let feedback = |members| with(json!({"duel_id": page["duel_id"]}), members);
    let receipt = server.feedback("search", &feedback(json!({"clicks": [0]}))).await.json(200);
    let detail = "no unit: an order could not be joined";
    assert_has(&receipt, json!({"status": "ignored", "detail": detail}));
    // a client that has sent all there is has nothing to repair
    let alone = loop {
        let page = server.post("/v1/experiments/uniform/next-duel", &body).await.json(200);
        if page["self_duel"] == true {
            break page;
        }
    };
    let alone = json!({"duel_id": alone["duel_id"], "clicks": [0], "unit": "u"});
    let nothing = feedback(json!({"clicks": [], "unit": "u"}));
    for (name, body) in [("search", nothing), ("uniform", alone)] {
        let receipt = server.feedback(name, &body).await.json(200);
        assert_eq!(receipt, json!({"status": "recorded"}));
    }
    let outcome = server.feedback("search", &feedback(json!({"outcome": "left"}))).await;
    outcome.problem_at(ProblemKind::InvalidRequest, "/outcome");
    assert_eq!(server.position("search").await, 1);
    for expected in ["recorded", "duplicate"] {
        // `final` changes nothing
        for last in [true, false] {
            let body = feedback(json!({"clicks": [1], "unit": "u", "final": last}));
            let receipt = server.feedback("search", &body).await.json(200);
            assert_eq!(receipt["status"], if last { expected } else { "duplicate" });
            assert_eq!(receipt["position"], 2);
        }
    }
    let wrong = feedback(json!({"clicks": [2], "unit": "u"}));
    server.feedback("search", &wrong).await.problem_at(ProblemKind::InvalidRequest, "/clicks/0");
}

/// Everybody clicks documents of both rankers and buys those of `a`.
async fn clicks_and_orders_become_a_verdict(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    create(&server, &shop("search")).await;
    for unit in 0..120 {
        let unit = format!("u{unit}");
        let bought = visit(&server, "search", &unit, "a").await;
        visit(&server, "search", &unit, "b").await;
        let order = order(&unit, &unit, &[bought.as_str().expect("an id")]);
        assert_eq!(statuses(&send(&server, "search", &[order]).await), ["recorded"]);
    }
    let before = server.verdict("search").await;
    assert_eq!((&before["winners"], &before["rests_on"]["answers"]), (&json!([]), &json!(0)));
    server.clock.advance_ms(3_600_000);
    let verdict = eventually("the baskets count", async || {
        let verdict = server.verdict("search").await;
        (verdict["rests_on"]["answers"] == 120).then_some(verdict)
    })
    .await;
    assert_eq!(verdict["winners"], json!(["a"]), "{verdict}");
    let sentence = verdict["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("by orders"), "{sentence}");
    assert!(sentence.contains("within 10 minutes of their first page"), "{sentence}");
    let found = async |server: &Server| server.verdict("search").await["rests_on"].clone();
    server.same_after_restarts(&database, "search", found).await.stop().await;
}

async fn clicks_on_a_page_link_in_so_many_pieces(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    create(&server, &with(shop("search"), no_self_duels())).await;
    let of = |id: &str| (0..9).map(|place| format!("{id}{place}")).collect::<Vec<_>>();
    let body = json!({"unit": "u", "rankings": {"a": of("a"), "b": of("b")}, "length": 9});
    let page = server.post("/v1/experiments/search/next-duel", &body).await.json(200);
    assert_eq!(page["self_duel"], false);
    let click = async |piece: u32| {
        let clicks: Vec<_> = (0..9).filter(|position| piece >> position & 1 == 1).collect();
        let body = json!({"duel_id": page["duel_id"], "clicks": clicks});
        server.feedback("search", &body).await.json(200)
    };
    for piece in 1..=128 {
        assert_eq!(click(piece).await["status"], "recorded", "{piece}");
    }
    assert_eq!(click(7).await["status"], "duplicate");
    let refused = click(129).await;
    let detail = "clicks on this page have come in 128 different pieces, and the log keeps no more";
    assert_eq!(refused, json!({"status": "ignored", "detail": detail}));
    assert_eq!(server.position("search").await, 129);
}
