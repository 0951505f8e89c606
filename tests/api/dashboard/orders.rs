//! The page of an experiment that orders decide: it says what the report of orders says.

use serde_json::{Value, json};

use super::walk::result;
use crate::support::TestDatabase;
use crate::support::client::{assert_has, eventually, steady, with};
use crate::support::service::{START_MS, Server, Settings};

on_sqlite! {
    the_page_says_what_the_report_says
    orders_after_the_window_are_a_doubt
    units_that_see_one_ranker_alone_tell_the_lift
    lines_of_one_ranker_have_a_count_of_their_own
    without_orders_the_page_has_no_word_of_them
    baskets_are_counted_as_baskets
}

/// A page of this unit, with clicks on all documents of one ranker, of which the first is returned.
async fn visit(server: &Server, unit: &str, ranker: &str) -> String {
    let of = |id: &str| (0..4).map(|place| format!("{id}{place}")).collect::<Vec<_>>();
    let rankings = json!({"bait": of("bait"), "bm25": of("bm25")});
    let body = json!({"unit": unit, "rankings": rankings, "length": 4});
    loop {
        let page = server.post("/v1/experiments/shop/next-duel", &body).await.json(200);
        let slots = page["slots"].as_array().expect("slots").iter();
        let documents = slots.map(|slot| slot["document"].as_str().expect("an id"));
        let clicked: Vec<_> = documents.filter(|id| id.starts_with(ranker)).collect();
        let body = json!({"duel_id": page["duel_id"], "clicks": clicked});
        // a page of one ranker alone teaches nothing
        if let Some(first) = clicked.first()
            && server.feedback("shop", &body).await.json(200)["position"].is_u64()
        {
            return (*first).to_owned();
        }
    }
}

async fn started(database: &TestDatabase, members: Value) -> Server {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let shop = json!({
        "name": "shop", "rankers": ["bait", "bm25"], "seed": 7, "conclude_at": "never",
        "policy": {"kind": "uniform"},
        "decide_by": {"event": "order", "window_seconds": 600, "arrival_seconds": 60},
    });
    server.post("/v1/experiments", &with(shop, members)).await.json(201);
    server
}

/// Waits until so many baskets have closed, an hour later.
async fn closed(server: &Server, baskets: u64) -> Value {
    server.clock.advance_ms(3_600_000);
    eventually("the baskets close", async || {
        let verdict = server.verdict("shop").await;
        (verdict["orders"]["closed"] == baskets).then_some(verdict)
    })
    .await
}

/// Waits until so many units that see one ranker alone, or have a home, are in the log.
async fn logged(database: &TestDatabase, units: usize) {
    let log =
        r#"select detail from log where detail like '%"alone":[%' or detail like '%"homes"%'"#;
    let units_of = |row: Option<String>| {
        let event: Value = serde_json::from_str(&row.expect("a detail")).expect("JSON");
        ["alone", "units"].map(|it| event[it].as_array().map_or(0, Vec::len)).iter().sum::<usize>()
    };
    eventually("the units are in the log", async || {
        let rows = database.texts(log.to_owned()).await;
        (rows.into_iter().map(units_of).sum::<usize>() == units).then_some(())
    })
    .await;
}

async fn order(server: &Server, unit: &str, document: &str, seconds: i64) {
    let at = rankduel_engine::clock::rfc3339(START_MS + 1000 * seconds);
    let lines = json!([{"document": document}]);
    let order =
        json!({"order_id": format!("{unit}-{document}"), "unit": unit, "at": at, "lines": lines});
    let body = json!({"orders": [order]});
    let answer = server.post("/v1/experiments/shop/orders", &body).await.json(200);
    assert_eq!(answer["results"][0]["status"], "recorded");
}

async fn the_page_says_what_the_report_says(database: TestDatabase) {
    let server = started(&database, json!({"control": "bait"})).await;
    let page = result(&server, "shop").await;
    assert!(
        page.contains("What do people order?") && page.contains("Nobody has clicked yet."),
        "{page}"
    );
    assert!(!page.contains("Unit unknown"), "{page}");
    let document = visit(&server, "early", "bait").await;
    let page = result(&server, "shop").await;
    assert!(page.contains("No order of what was clicked has come yet."), "{page}");
    assert!(
        page.contains("1 person clicked, 0 of them ordered it, ") && !page.contains("No answer"),
        "{page}"
    );
    let traffic = server.get("/experiments/shop/traffic").await.text();
    assert!(!traffic.contains("Expired without feedback"), "{traffic}");
    assert_eq!(server.report("shop", "traffic").await["unanswered"], Value::Null);
    server
        .patch("shop", &json!({"exclude": {"units": ["early"], "hashes": [], "reason": "a try"}}))
        .await
        .json(200);
    assert!(document.starts_with("bait"));
    // everybody clicks one ranker first, then the other, and nine of ten buy of that
    for second in 1..=120 {
        let unit = format!("u{second}");
        let first = visit(&server, &unit, "bait").await;
        server.clock.advance_ms(1000);
        let other = visit(&server, &unit, "bm25").await;
        order(&server, &unit, if second % 10 == 0 { &first } else { &other }, second).await;
    }
    let page = result(&server, "shop").await;
    assert!(page.contains("120 people clicked, 120 of them ordered it, "), "{page}");
    assert!(!page.contains("What does it cost?") && !page.contains("Send unit"), "{page}");
    order(&server, "u1", "unseen", 120).await;
    order(&server, "stranger", "bm250", 120).await;
    for is_closed in [false, true] {
        if is_closed {
            closed(&server, 120).await;
        }
        let report = server.verdict("shop").await["orders"].clone();
        assert_eq!((&report["units"], &report["ordered"]), (&json!(120), &json!(120)), "{report}");
        assert_eq!(report["clicks"].is_string(), is_closed, "{report}");
        let sentence = report["sentence"].as_str().expect("a sentence");
        let said = match is_closed {
            false => "no basket is closed yet, and the next closes at 14:24 UTC on Mon 21 Sep.",
            true => "120 baskets are closed.",
        };
        assert!(sentence.starts_with("120 of 120 people who clicked have ordered; "), "{sentence}");
        assert!(sentence.contains(said), "{sentence}");
        let page = result(&server, "shop").await;
        for sentence in [&report["sentence"], &report["clicks"]] {
            let Some(sentence) = sentence.as_str() else { continue };
            assert!(page.contains(&sentence.replace('`', "")), "{sentence}: {page}");
        }
    }
    let verdict = server.verdict("shop").await;
    let page = result(&server, "shop").await;
    // one share of the credit, wherever a share stands
    assert_has(&verdict["effects"][0], json!({"wins": 108.0, "losses": 12.0, "win_rate": 0.9}));
    assert_eq!(verdict["control"]["win_rate"], 0.9);
    let claims = server.report("shop", "claims").await;
    let claims = claims["claims"].as_array().expect("claims");
    assert!(claims.iter().any(|it| it["claim"] == "better" && it["win_rate"] == 0.9), "{claims:?}");
    for part in [
        "of 100 parts of the credit for what people order",
        "+40.0 means that bm25 has 90.0 of them and bait 10.0.",
        "Ship bm25: it beats bait, which you run now",
        "Orders decide.",
        "Credited to one ranker120 (",
        "Not clicked1 (",
        "Unit unknown1 (",
        "Late0 (",
        "Of 122 lines of orders",
        "Clicks prefer bait (",
        "They agree in 10 % of baskets (",
        "Clicks prefer another ranker than orders",
    ] {
        assert!(page.contains(part), "{part}: {verdict} {page}");
    }
    let traffic = server.report("shop", "traffic").await;
    let alarms = traffic["alarms"].as_array().expect("alarms");
    let alarm = alarms.iter().find(|alarm| alarm["kind"] == "clicks-mislead").expect("the alarm");
    assert_eq!(
        alarm["detail"],
        "Clicks prefer `bait`, orders prefer `bm25`. This is wrong in at most 10 % of experiments."
    );
}

async fn orders_after_the_window_are_a_doubt(database: TestDatabase) {
    let server = started(&database, json!({"conclude_at": {"confidence": 0.95}})).await;
    for second in 0..120 {
        let unit = format!("u{second}");
        let bought = visit(&server, &unit, "bait").await;
        order(&server, &unit, &bought, 0).await;
    }
    let mut late = Vec::new();
    for second in 0..60 {
        let unit = format!("late{second}");
        late.push((unit.clone(), visit(&server, &unit, "bm25").await));
    }
    server.clock.advance_ms(640_000);
    for (unit, bought) in &late {
        order(&server, unit, bought, 630).await;
    }
    let verdict = closed(&server, 180).await;
    assert_eq!(verdict["winners"], json!(["bait"]), "{verdict}");
    let doubt = "More orders of rivals of `bait` come after the window. If three times as many are \
                 cut off as were seen, the verdict does not hold: try a longer window in another \
                 experiment.";
    let doubts = verdict["rests_on"]["doubts"].as_array().expect("doubts");
    assert!(doubts.contains(&json!(doubt)), "{doubts:?}");
    let sentence = verdict["sentence"].as_str().expect("a sentence");
    let waits = "While this is so, the experiment does not conclude by itself.";
    assert!(sentence.contains(doubt) && sentence.ends_with(waits), "{sentence}");
    assert_eq!(server.experiment("shop").await["status"], "running");
    assert!(result(&server, "shop").await.contains(&doubt.replace('`', "")));
}

/// Every unit of the leader's arm orders, and every other one of the control's.
async fn units_that_see_one_ranker_alone_tell_the_lift(database: TestDatabase) {
    let server = started(&database, json!({"control": "bm25", "alone": 0.5})).await;
    let (mut units, mut ordered) = ([0; 2], 0);
    for round in 0..2 {
        let (mut orders, mut again) = (String::new(), 0);
        let at = rankduel_engine::clock::rfc3339(START_MS + 3_600_000 * round);
        // those of the first round come back: they are of no lift again
        let old = (0..200 * round).map(|unit| (0, unit));
        for (first, unit) in old.chain((0..[200, 1400][round as usize]).map(|it| (round, it))) {
            let unit = format!("u{first}-{unit}");
            let path = "/v1/experiments/shop/next-duel";
            let duel = server.post(path, &json!({"unit": unit})).await.json(200);
            let arm = match duel["alone"].as_str() {
                Some("leader") => 0,
                Some(_) => 1,
                None => continue,
            };
            let is_new = first == round;
            *if is_new { &mut units[arm] } else { &mut again } += 1;
            if arm == 0 || !is_new || units[1] % 2 == 0 {
                let (lines, id) =
                    (json!([{"document": "d", "value": 5}]), format!("{round}-{unit}"));
                let order = json!({"order_id": id, "unit": unit, "at": at, "lines": lines});
                orders += &format!("{order}\n");
                ordered += u64::from(is_new);
            }
        }
        let lines = [("content-type", "application/x-ndjson")];
        let path = "/v1/experiments/shop/orders";
        server.send("POST", path, &lines, orders.into_bytes()).await.json(200);
        logged(&database, units[0] + units[1]).await;
        server.clock.advance_ms(3_600_000);
        let lift = eventually("the time of the units is over", async || {
            let report = server.verdict("shop").await["orders"].clone();
            let lift = report["lift"].clone();
            let joined = json!({"alone": ordered, "returning": again, "unit_unknown": 0});
            (lift["units"] == json!(units)).then(|| assert_has(&report["joined"], joined))?;
            Some(lift)
        })
        .await;
        let sentence = lift["sentence"].as_str().expect("a sentence");
        let said = match round {
            0 => {
                "Shown alone, `bait` and `bm25` have too few orders to compare: ± 10 % takes about"
            }
            _ => "Shown alone, `bait` brings ",
        };
        assert!(sentence.starts_with(said), "{sentence}");
        let end = match round {
            0 => format!(" of {} units have ordered.", units[0] + units[1]),
            _ => " units, with 96 % confidence at all times).".into(),
        };
        assert!(sentence.ends_with(&end), "{sentence}");
        let page = result(&server, "shop").await;
        // the page has another mark between thousands
        let page = page.replace(' ', ",");
        assert!(page.contains(&sentence.replace('`', "").replace(' ', ",")), "{sentence}: {page}");
        assert_eq!(lift["orders"][0].as_f64().is_some_and(|low| low > 0.2), round == 1, "{lift}");
    }
}

/// While the control leads, its units are of no lift. A home can be one ranker, too.
async fn lines_of_one_ranker_have_a_count_of_their_own(database: TestDatabase) {
    let rankers = json!(["bait", "bm25", "bm26"]);
    let server = started(
        &database,
        json!({"rankers": rankers, "control": "bait", "alone": 0.4, "conclude_at": "never"}),
    )
    .await;
    let (mut alone, mut clicked) = (0, 0);
    for unit in 0..100 {
        let unit = format!("u{unit}");
        let path = "/v1/experiments/shop/next-duel";
        let page = server.post(path, &json!({"unit": unit})).await.json(200);
        *if page["self_duel"] == true { &mut alone } else { &mut clicked } += 1;
        order(&server, &unit, "d", 0).await;
    }
    assert!(alone > 40 && clicked > 10, "{alone} {clicked}");
    order(&server, "stranger", "d", 0).await;
    logged(&database, 100).await;
    server.clock.advance_ms(3_600_000);
    let orders = eventually("the time of the units is over", async || {
        let orders = server.verdict("shop").await["orders"].clone();
        (orders["joined"]["unit_unknown"] == 1).then_some(orders)
    })
    .await;
    assert_has(&orders["joined"], json!({"alone": alone, "not_clicked": clicked, "late": 0}));
    assert!(orders["lift"].is_null(), "{orders}");
    let page = result(&server, "shop").await;
    let said = format!("Shown one ranker alone{alone} (");
    assert!(page.contains(&said), "{said}: {page}");
}

/// A score counts by a coin where only a win can, which is no number for a reader.
async fn baskets_are_counted_as_baskets(database: TestDatabase) {
    let server = started(&database, json!({"control": "bait"})).await;
    for second in 1..=3 {
        let unit = format!("u{second}");
        let document = visit(&server, &unit, "bm25").await;
        server.clock.advance_ms(1000);
        order(&server, &unit, &document, second).await;
    }
    let verdict = closed(&server, 3).await;
    let why = verdict["duels_to_go_reason"].as_str().expect("a reason");
    assert!(why.starts_with("3 baskets are closed, and an estimate needs "), "{why}");
    let page = result(&server, "shop").await;
    assert!(page.contains(why) && !page.contains("with a winner"), "{page}");
}

async fn without_orders_the_page_has_no_word_of_them(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let page: String = result(&server, "search").await;
    assert!(!page.contains("order?") && !page.contains("Basket"), "{page}");
    let body: Value = with(server.verdict("search").await, json!({}));
    assert_eq!(body.get("orders"), None);
}
