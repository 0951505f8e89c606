//! `POST /v1/plan`: its numbers, and bad input.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{until, with};
use crate::support::service::Server;

on_sqlite! {
    a_plan_has_days_and_their_cost
    the_same_request_gets_the_same_plan_on_a_busy_machine
    time_that_shows_no_difference_is_said_to_show_none
    a_difference_that_no_pages_show_has_no_plan
    every_wrong_field_is_named_with_its_range
    a_wrong_plan_does_not_wait_for_others
    orders_take_a_window_and_more_pages
}

fn request(more: Value) -> Value {
    let mut body = json!({"rankers": 3, "difference": 0.15, "pages_per_day": 100});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

async fn a_plan_has_days_and_their_cost(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let plan = async |more: Value| server.post("/v1/plan", &request(more)).await.json(200);
    let half = plan(json!({"answered": 0.5})).await;
    let rosters = half["rosters"].as_array().expect("a list");
    let names: Vec<_> = rosters.iter().map(|roster| roster["rivals"].clone()).collect();
    assert_eq!(names, ["one-close", "ladder", "all-equal"]);
    for roster in rosters {
        let pages = number(&roster["pages"]["median"]);
        assert!((50.0..5000.0).contains(&pages), "{half}");
        assert!(number(&roster["pages"]["high"]) > pages);
        let days = number(&roster["days"]["median"]);
        assert!((days - 1.0 / 24.0 - pages / 100.0).abs() <= 0.06 * days, "{half}");
        assert!((0.0..pages).contains(&number(&roster["regret_pages"])));
        assert_eq!(roster["simulated_difference"], 0.15);
    }
    let sentence = half["sentence"].as_str().expect("a text");
    let [first, last] = [&rosters[0], &rosters[2]].map(|it| number(&it["days"]["median"]));
    assert!(first < last && sentence.starts_with("Half of such experiments have a verdict within"));
    for part in
        [format!("within {first} days if one rival"), format!("within {last} days if all rivals")]
    {
        assert!(sentence.contains(&part), "{part}: {sentence}");
    }

    // answers are waited for, and a short time is said in hours
    let long = json!({"answered": 0.5, "answer_window_seconds": 86_400});
    let waiting = plan(long).await;
    let later = number(&waiting["rosters"][0]["days"]["median"]) - first;
    assert!((later - 23.0 / 24.0).abs() < 0.06 * (first + 1.0), "{waiting}");
    let quick = plan(json!({"answered": 0.5, "pages_per_day": 1_000_000})).await;
    let sentence = quick["sentence"].as_str().expect("a text");
    assert!(sentence.contains("a verdict within 1 hour if one rival"), "{sentence}");

    // larger differences take less time, and the asked one takes as long as the rosters
    let curve = half["curve"].as_array().expect("a list");
    let asked = curve.iter().find(|of| of["difference"] == 0.15).expect("a row");
    assert_eq!((number(&asked["shortest"]), number(&asked["longest"])), (first, last));
    for pair in curve.windows(2) {
        assert!(number(&pair[0]["difference"]) < number(&pair[1]["difference"]));
        assert!(number(&pair[0]["longest"]) > number(&pair[1]["longest"]), "{half}");
    }

    // the same simulations with half of the answers take twice the pages
    let of_equals = |report: &Value, of: &str| number(&report["rosters"][2]["pages"][of]);
    let quarter = plan(json!({"answered": 0.5, "repeats": 0.5})).await;
    let ratio = of_equals(&quarter, "median") / of_equals(&half, "median");
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
    // less time shows larger differences only
    let smallest = |report: &Value| number(&report["rosters"][0]["smallest_difference"]);
    let hurried = plan(json!({"answered": 0.5, "days": 2})).await;
    assert!(smallest(&hurried) > 1.5 * smallest(&half), "{hurried}");
    // more confidence takes longer
    let certain = plan(json!({"answered": 0.5, "confidence": 0.9999})).await;
    assert!(of_equals(&certain, "median") > 1.2 * of_equals(&half, "median"), "{certain}");
    // who knows the others gets one roster
    let given = plan(json!({"answered": 0.5, "others": [0.3]})).await;
    assert_eq!((given["rosters"].as_array().map(Vec::len)), Some(1), "{given}");
    assert!(number(&given["rosters"][0]["pages"]["median"]) < of_equals(&half, "median"));
}

/// The load decides how long a plan takes, and nothing else.
async fn the_same_request_gets_the_same_plan_on_a_busy_machine(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let body = request(json!({"difference": 0.3}));
    let alone = server.post("/v1/plan", &body).await.json(200);
    let beside = (0..3).map(|_| server.post("/v1/plan", &body));
    for answer in futures_util::future::join_all(beside).await {
        assert_eq!(answer.json(200), alone);
    }
}

async fn time_that_shows_no_difference_is_said_to_show_none(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let body = json!({"rankers": 4, "difference": 0.2, "pages_per_day": 10, "days": 1});
    let report = server.post("/v1/plan", &body).await.json(200);
    for roster in report["rosters"].as_array().expect("a list") {
        assert_eq!(roster["smallest_difference"], Value::Null, "{report}");
    }
    let sentence = report["sentence"].as_str().expect("a text");
    assert!(sentence.contains("In 1 day they show no difference: 10 pages, and "), "{sentence}");
}

async fn a_difference_that_no_pages_show_has_no_plan(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let body = json!({"rankers": 30, "difference": 0.0001, "margin": 0, "pages_per_day": 10});
    let report = server.post("/v1/plan", &body).await.json(200);
    assert_eq!(report["rosters"], json!([]), "{report}");
    let sentence = report["sentence"].as_str().expect("a text");
    assert!(sentence.contains("too small to be shown at a margin of 0. Raise the"), "{sentence}");
}

async fn every_wrong_field_is_named_with_its_range(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for (field, value, range) in [
        ("rankers", json!(1), "2 to 100"),
        ("rankers", json!(101), "2 to 100"),
        ("difference", json!(0), "0.0001 to 0.45"),
        ("difference", json!(0.46), "0.0001 to 0.45"),
        ("pages_per_day", json!(0), "1 to 1,000,000,000"),
        ("answered", json!(5e-324), "0.001 to 1"),
        ("answered", json!(30), "0.001 to 1"),
        ("repeats", json!(1), "0 to 0.99"),
        ("confidence", json!(1), "0.5 to 0.9999"),
        ("margin", json!(-0.1), "0 to 0.2"),
        ("days", json!(0), "0.01 to 3650"),
        ("answer_window_seconds", json!(2_592_001), "0 to 2,592,000"),
    ] {
        let answer = server.post("/v1/plan", &request(json!({field: value}))).await;
        let problem = answer.problem_at(ProblemKind::InvalidRequest, &format!("/{field}"));
        let detail = problem["errors"][0]["detail"].as_str().expect("a detail");
        assert!(detail.contains(&format!("`{field}` is ")) && detail.contains(range), "{detail}");
    }
    for (body, pointer) in [
        (request(json!({"rankers": "three"})), "/rankers"),
        (request(json!({"goal": "soon"})), "/goal"),
        (request(json!({"others": [0.2, 0.2]})), "/others"),
        (request(json!({"others": [0.1]})), "/others/0"),
        // nothing of orders is ignored without them
        (request(json!({"alone": 0.1})), "/alone"),
        (request(json!({"window_seconds": 86_400})), "/window_seconds"),
        (request(json!({"arrival_seconds": 60})), "/arrival_seconds"),
    ] {
        let answer = server.post("/v1/plan", &body).await;
        answer.problem_at(ProblemKind::InvalidRequest, pointer);
    }
}

/// With twice as many plans as threads for reports, the next one waits for seconds.
async fn a_wrong_plan_does_not_wait_for_others(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let long = json!({"rankers": 100, "difference": 0.0001, "margin": 0, "pages_per_day": 10});
    let cores = std::thread::available_parallelism().expect("processors").get();
    let plans: Vec<_> = (0..=cores)
        .map(|_| {
            let (client, body) = (server.client(), long.clone());
            tokio::spawn(async move { client.post("/v1/plan", &body).await })
        })
        .collect();
    until("all plans run or wait", async || {
        let text = server.get("/metrics").await.text();
        let in_flight = text
            .lines()
            .find_map(|line| line.strip_prefix("rankduel_http_requests_in_flight ")?.parse().ok());
        // the request for the metrics is one, too
        in_flight.is_some_and(|requests: usize| requests > plans.len())
    })
    .await;
    let answer = server.post("/v1/plan", &request(json!({"days": 0}))).await;
    answer.problem_at(ProblemKind::InvalidRequest, "/days");
    assert!(plans.iter().all(|plan| !plan.is_finished()), "it waited for another plan");
}

async fn orders_take_a_window_and_more_pages(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let plan = async |more: Value| {
        let body = json!({"rankers": 2, "difference": 0.069, "pages_per_day": 5000});
        server.post("/v1/plan", &with(body, more)).await
    };
    let orders =
        plan(json!({"orders": 0.025, "alone": 0.2, "arrival_seconds": 129_600, "days": 8}));
    let orders = orders.await.json(200);
    // the simulations of shops had a median of 13,952 pages, and nine of ten within 34,017
    let pages = &orders["rosters"][0]["pages"];
    assert!((12_500.0..15_500.0).contains(&number(&pages["median"])), "{pages}");
    assert!((30_000.0..38_000.0).contains(&number(&pages["high"])), "{pages}");
    let days = number(&orders["rosters"][0]["days"]["median"]);
    assert!((days - 8.5 - number(&pages["median"]) / 5000.0).abs() < 0.6, "{orders}");
    assert_eq!(orders["orders"]["times_clicks"], 3.6);
    assert_eq!(orders["orders"]["wait_days"], 8.5);
    // nothing has counted after eight days
    assert_eq!(orders["rosters"][0]["smallest_difference"], Value::Null, "{orders}");
    // about 4,000 ordering units are known to 10 %, and 17,000 to 5 %: there are 29.4 a day
    let lift = orders["orders"]["lift"].as_array().expect("a list");
    let widths: Vec<_> = lift.iter().map(|it| number(&it["half_width"])).collect();
    assert_eq!(widths, [0.2, 0.1, 0.05]);
    for (at, units) in [(1, 4000.0), (2, 17_000.0)] {
        let days = number(&lift[at]["days"]) - 8.5;
        assert!((days * 29.4 / units - 1.0).abs() < 0.1, "{orders}");
    }
    let sentence = orders["sentence"].as_str().expect("a text");
    for part in [
        "An order counts 8.5 days after its first page",
        "With an order on 2.5 % of the pages, orders take about 3.6 times the pages of clicks.",
        "The lift is known to about ± 20 % after ",
    ] {
        assert!(sentence.contains(part), "{part}: {sentence}");
    }
    // half of the orders take twice the pages
    let rare = plan(json!({"orders": 0.0125})).await.json(200);
    let ratio = number(&rare["rosters"][0]["pages"]["median"]) / number(&pages["median"]);
    assert!((1.9..2.1).contains(&ratio), "{rare}");
    assert_eq!(
        (&rare["orders"]["times_clicks"], &rare["orders"]["lift"]),
        (&json!(7.2), &json!([]))
    );
    assert!(rare["sentence"].as_str().expect("a text").ends_with("no lift is known."), "{rare}");
    // clicks have no word of it
    assert_eq!(plan(json!({})).await.json(200).get("orders"), None);
    for (more, pointer) in [
        (json!({"orders": 0}), "/orders"),
        (json!({"orders": 2.5}), "/orders"),
        (json!({"window_seconds": 59}), "/window_seconds"),
        (json!({"arrival_seconds": 604_801}), "/arrival_seconds"),
        (json!({"alone": 0.6}), "/alone"),
    ] {
        plan(more).await.problem_at(ProblemKind::InvalidRequest, pointer);
    }
}
