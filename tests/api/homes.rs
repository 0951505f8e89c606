//! Orders decide between three rankers or more: all pages of a unit show the pair of its first one.

use std::collections::{BTreeMap, BTreeSet};

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use super::orders::{order, send, shop, statuses};
use crate::support::TestDatabase;
use crate::support::client::{eventually, with};
use crate::support::server::{outcome, rankduel_on};
use crate::support::service::{Server, Settings};

on_both_databases! {
    every_page_of_a_unit_shows_the_pair_of_its_first_page
    orders_find_the_best_of_three
}

on_sqlite! {
    without_a_unit_there_is_no_page
    rankers_come_and_go
    other_rules_come_before_the_home
}

const NEXT: &str = "/v1/experiments/search/next-duel";

fn three(members: Value) -> Value {
    with(with(shop("search"), json!({"rankers": ["a", "b", "c"]})), members)
}

async fn started(database: &TestDatabase, members: Value) -> Server {
    let server = Server::with(database.store().await, Settings::quick()).await;
    server.post("/v1/experiments", &three(members)).await.json(201);
    server
}

/// The rankers of a page of this unit, in the order of their ids.
async fn pair(server: &Server, unit: &str) -> [String; 2] {
    let duel = server.post(NEXT, &json!({"unit": unit})).await.json(200);
    let mut pair = ["left", "right"].map(|side| duel[side].as_str().expect("an id").to_owned());
    pair.sort();
    pair
}

async fn pairs(server: &Server, units: usize) -> BTreeMap<usize, [String; 2]> {
    let mut pairs = BTreeMap::new();
    for unit in 0..units {
        pairs.insert(unit, pair(server, &format!("u{unit}")).await);
    }
    pairs
}

/// Waits until the log has the homes of all units.
async fn logged(database: &TestDatabase, units: usize) {
    eventually("the homes are in the log", async || {
        let log = r#"select detail from log where detail like '%"kind":"homes"%'"#;
        let units_of = |row: Option<String>| {
            let event: Value = serde_json::from_str(&row.expect("a detail")).expect("JSON");
            event["units"].as_array().expect("units").len()
        };
        let rows = database.texts(log.to_owned()).await;
        (rows.into_iter().map(units_of).sum::<usize>() == units).then_some(())
    })
    .await;
}

async fn every_page_of_a_unit_shows_the_pair_of_its_first_page(database: TestDatabase) {
    let server = started(&database, json!({})).await;
    let first = pairs(&server, 100).await;
    // all pairs, and each ranker alone
    let found: BTreeSet<_> = first.values().collect();
    assert_eq!(found.len(), 6, "{found:?}");
    for _ in 0..3 {
        assert_eq!(pairs(&server, 100).await, first);
    }
    // with rankings in the same call, and on another server, which has read the log
    let of = |id: &str| (0..4).map(|place| format!("{id}{place}")).collect::<Vec<_>>();
    let rankings = json!({"a": of("a"), "b": of("b"), "c": of("c")});
    let body = json!({"unit": "u7", "rankings": rankings, "length": 4});
    let page = server.post(NEXT, &body).await.json(200);
    let mut shown = [&page["left"], &page["right"]].map(|it| it.as_str().expect("an id"));
    shown.sort_unstable();
    assert_eq!(shown, first[&7].each_ref().map(String::as_str));
    logged(&database, 100).await;
    let other = Server::start(database.connect().await).await;
    assert_eq!(pairs(&other, 100).await, first);
    other.stop().await;
    let found = async |server: &Server| pairs(server, 100).await;
    let restored = server.same_after_restarts(&database, "search", found).await;
    // nothing of them was seen: once their time is over they get other pages
    restored.stop().await;
}

async fn without_a_unit_there_is_no_page(database: TestDatabase) {
    let server = started(&database, json!({})).await;
    for (pointer, body) in [
        ("/unit", json!({})),
        ("/unit", json!({"unit": ""})),
        ("/unit", json!({"rankings": {"a": [], "b": [], "c": []}, "length": 4})),
        ("/count", json!({"count": 2})),
    ] {
        server.post(NEXT, &body).await.problem_at(ProblemKind::InvalidRequest, pointer);
    }
    for refused in
        [json!({"canary": ["a", "b"]}), json!({"policy": {"kind": "pcomp", "horizon": 20_000}})]
    {
        let refused = server.post("/v1/experiments", &with(three(json!({})), refused)).await;
        refused.problem(ProblemKind::InvalidRequest);
    }
    // two rankers are the pair of every unit
    server.post("/v1/experiments", &shop("two")).await.json(201);
    server.post("/v1/experiments/two/next-duel", &json!({"count": 2})).await.json(200);
}

async fn rankers_come_and_go(database: TestDatabase) {
    let server = started(&database, json!({})).await;
    let first = pairs(&server, 30).await;
    logged(&database, 30).await;
    server.patch("search", &json!({"enlist": {"id": "d"}})).await.json(200);
    assert_eq!(pairs(&server, 30).await, first);
    server.patch("search", &json!({"retire": "c"})).await.json(200);
    for (unit, home) in pairs(&server, 30).await {
        match first[&unit].contains(&"c".to_owned()) {
            true => assert!(!home.contains(&"c".to_owned()), "{home:?}"),
            false => assert_eq!(home, first[&unit]),
        }
    }
    let mut later = BTreeSet::new();
    for unit in 30..60 {
        later.insert(pair(&server, &format!("u{unit}")).await);
    }
    let later: BTreeSet<_> = later.into_iter().flatten().collect();
    assert_eq!(later, ["a", "b", "d"].map(str::to_owned).into());

    // an experiment of two stays one: its pages may come without a unit
    server.post("/v1/experiments", &shop("two")).await.json(201);
    for change in [json!({"enlist": {"id": "c"}}), json!({"retire": "a"})] {
        server.patch("two", &change).await.problem(ProblemKind::RankersFixed);
    }
}

async fn other_rules_come_before_the_home(database: TestDatabase) {
    let members = json!({"control": "a", "coverage": 0.8, "alone": 0.3});
    let server = started(&database, members).await;
    let (mut outside, mut alone, mut homes) = (0, 0, 0);
    for unit in 0..100 {
        let mut shown = Vec::new();
        for _ in 0..2 {
            let body = json!({"unit": format!("u{unit}")});
            let duel = server.post(NEXT, &body).await.json(200);
            let mut pair = [&duel["left"], &duel["right"]].map(ToString::to_string);
            pair.sort();
            shown.push((pair, duel.get("enrolled").cloned(), duel.get("alone").cloned()));
        }
        assert_eq!(shown[0], shown[1]);
        match &shown[0] {
            (_, Some(_), _) => outside += 1,
            (_, _, Some(_)) => alone += 1,
            _ => homes += 1,
        }
    }
    assert!(outside > 5 && alone > 10, "{outside} {alone}");
    assert_eq!(outside + alone + homes, 100);
    logged(&database, homes).await;
    // a paused experiment has no pages, and a concluded one shows its winner to everybody
    server.patch("search", &json!({"status": "paused"})).await.json(200);
    server.post(NEXT, &json!({"unit": "u1"})).await.problem(ProblemKind::ExperimentPaused);
    let concluded = json!({"status": "concluded", "winner": "b"});
    server.patch("search", &concluded).await.json(200);
    for unit in 0..100 {
        let body = json!({"unit": format!("u{unit}")});
        let duel = server.post(NEXT, &body).await.json(200);
        if duel.get("enrolled").is_none() && duel.get("alone").is_none() {
            assert_eq!((&duel["left"], &duel["right"]), (&json!("b"), &json!("b")));
        }
    }
}

/// Everybody buys what they clicked: of `c` if it is shown, else of `a`.
async fn orders_find_the_best_of_three(database: TestDatabase) {
    let server = started(&database, json!({"drift": "tell", "watch": 0.5})).await;
    let of = |id: &str| (0..4).map(|place| format!("{id}{place}")).collect::<Vec<_>>();
    let rankings = json!({"a": of("a"), "b": of("b"), "c": of("c")});
    let (mut orders, mut alone) = (Vec::new(), 0);
    for unit in 0..150 {
        let unit = format!("u{unit}");
        let body = json!({"unit": unit, "rankings": rankings, "length": 4});
        let page = server.post(NEXT, &body).await.json(200);
        let shown = [&page["left"], &page["right"]].map(|it| it.as_str().expect("an id"));
        let own = if shown.contains(&"c") { "c" } else { "a" };
        if page["self_duel"] == true {
            alone += 1;
            continue;
        }
        let slots = page["slots"].as_array().expect("slots").iter();
        let documents = slots.filter_map(|slot| slot["document"].as_str());
        let clicked: Vec<_> = documents.filter(|it| it.starts_with(own)).collect();
        let clicks = json!({"duel_id": page["duel_id"], "clicks": clicked});
        assert_eq!(server.feedback("search", &clicks).await.json(200)["status"], "recorded");
        orders.push(order(&unit, &unit, &clicked[..1]));
    }
    let recorded = vec!["recorded"; 150 - alone];
    assert_eq!(statuses(&send(&server, "search", &orders).await), recorded);
    logged(&database, 150).await;
    server.clock.advance_ms(3_600_000);
    let verdict = eventually("the baskets count", async || {
        let verdict = server.verdict("search").await;
        (verdict["rests_on"]["answers"] == orders.len()).then_some(verdict)
    })
    .await;
    assert_eq!(verdict["winners"], json!(["c"]), "{verdict}");
    let sentence = verdict["sentence"].as_str().expect("a sentence");
    let credit = "Against each of them, it has";
    assert!(sentence.contains("by orders: it beats both others"), "{sentence}");
    assert!(sentence.contains(credit), "{sentence}");
    assert_eq!(verdict["rests_on"]["units"], 150);

    // the winner is shown, and watched in one pair of each unit
    let found = async |server: &Server| server.verdict("search").await["rests_on"].clone();
    let server = server.same_after_restarts(&database, "search", found).await;
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    let mut watched = 0;
    for unit in 0..20 {
        let mut pairs = BTreeSet::new();
        for _ in 0..8 {
            pairs.insert(pair(&server, &format!("new{unit}")).await);
        }
        assert!(pairs.iter().all(|pair| pair.contains(&"c".to_owned())), "{pairs:?}");
        pairs.retain(|[one, other]| one != other);
        assert!(pairs.len() <= 1, "{pairs:?}");
        watched += pairs.len();
    }
    assert!(watched > 10, "{watched}");
    // the log as a file, and what is left of it once it is pruned
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("search.jsonl");
    let file = file.to_str().expect("UTF-8");
    server.stop().await;
    for command in [["export", "search", "--out", file], ["import", file, "--as", "copy"]] {
        let (code, _, error) = outcome(rankduel_on(&database.url, &command));
        assert_eq!(code, Some(0), "{command:?}: {error}");
    }
    let server = Server::start(database.connect().await).await;
    let (original, copy) = (found(&server).await, server.verdict("copy").await);
    assert_eq!(copy["rests_on"], original);
    let (before, position) = (found(&server).await, server.position("search").await);
    server.prune("search", position).await;
    server.stop().await;
    let pruned = Server::start(database.connect().await).await;
    assert_eq!(found(&pruned).await, before);
    pruned.stop().await;
}
