//! The form of a new experiment: everything common without JSON, all errors at once, numbers as
//! people write them, a summary of what will be created, and dates.

use serde_json::json;

use super::manage::api;
use super::visit::{ADMIN, Visitor, serve};
use crate::support::TestDatabase;
use crate::support::client::{Answer, with};
use crate::support::service::Server;

on_sqlite! {
    the_form_alone_creates_what_is_common
    all_errors_are_shown_at_once_with_what_was_read
    a_plan_has_the_same_dates_before_and_after
    the_form_creates_what_orders_decide
    text_of_another_direction_is_isolated_on_every_page
}

/// A form with these values.
async fn send(visitor: &Visitor, step: &str, fields: &[(&str, &str)]) -> Answer {
    let token = visitor.get("/new-experiment").await.token();
    let mut all = vec![("form_token", &*token), ("step", step)];
    all.extend(fields);
    for default in [("policy", "d-ts-verdict"), ("interleaving", "team-draft")] {
        if fields.iter().all(|(name, _)| *name != default.0) {
            all.push(default);
        }
    }
    visitor.post("/new-experiment", &all).await
}

const COMMON: [(&str, &str); 34] = [
    ("name", "whole"),
    ("rankers", "today\r\nnext | two towers\r\ntwin"),
    ("control", "today"),
    ("description", "Do towers help?"),
    ("owner", "search team"),
    ("goal", "improve"),
    ("coverage", "10 %"),
    ("alone", "2,5 %"),
    ("canary", "next, twin"),
    ("canary_share", "4 %"),
    ("concludes", "verdict"),
    ("confidence", "90 %"),
    ("margin", "0.02"),
    ("min_days", "7"),
    ("max_days", "30"),
    ("max_duels", "90 000"),
    ("drift", "restart"),
    ("segments", "phone, desktop\r\ntablet"),
    ("metric_0_name", "latency_ms"),
    ("metric_0_cap", "2 000"),
    ("metric_0_limit", "400,5"),
    ("metric_0_of", "ranker"),
    ("metric_0_better", "lower"),
    ("metric_0_on_harm", "tell"),
    ("metric_2_name", "revenue"),
    ("metric_2_of", "page"),
    ("metric_2_better", "higher"),
    ("metric_2_cap", "50"),
    ("metric_2_difference", "0"),
    ("metric_2_on_harm", "pause"),
    ("errors_best", "4 %"),
    ("errors_control", "2 %"),
    ("policy", "d-ts-verdict"),
    ("ties", "half"),
];

async fn the_form_alone_creates_what_is_common(database: TestDatabase) {
    let server = serve(database.store().await).await;
    let visitor = Visitor::with(&server, ADMIN).await;
    let form = visitor.get("/new-experiment").await.text();
    for field in ["goal", "coverage", "alone", "canary", "drift", "metric_1_cap", "segments"] {
        assert!(form.contains(&format!("name=\"{field}\"")), "{field}");
    }
    let asked = send(&visitor, "review", &COMMON).await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    // the summary has everything that was read
    let plain = asked.plain();
    let summary = plain.split("What will happen").nth(1).expect("a question");
    for part in [
        "Do towers help?",
        "search team",
        "two towers",
        "twin",
        "improved on first",
        "10 %",
        "2.5 %",
        "on 4 %",
        "at confidence 0.9",
        "2 points",
        "Mon 28 Sep",
        "Wed 21 Oct",
        "90\u{202f}000",
        "the verdict starts again",
        "phone",
        "desktop",
        "tablet",
        "latency_ms",
        "above 400.5",
        "0 to 2000",
        "an alarm tells",
        "revenue",
        "the experiment is paused",
        "best ranker 4 %",
        "control 2 %",
        "d-ts-verdict",
        "half a win",
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    let done = send(&visitor, "confirm", &COMMON).await;
    assert_eq!(done.location(), "/experiments/whole/manage?done=created", "{}", done.text());
    let made = api(&server, "GET", "/v1/experiments/whole", None).await;
    let wanted = json!({
        "rankers": [{"id": "today"}, {"id": "next", "description": "two towers"}, {"id": "twin"}],
        "control": "today", "goal": "improve", "coverage": 0.1, "alone": 0.025,
        "canary": ["next", "twin"], "canary_share": 0.04, "drift": "restart",
        "conclude_at": {
            "confidence": 0.9, "margin": 0.02, "min_days": 7.0, "max_days": 30.0, "max_duels": 90_000,
        },
        "segments": ["phone", "desktop", "tablet"], "errors": {"best": 0.04, "control": 0.02},
        "metrics": [
            {"name": "latency_ms", "of": "ranker", "cap": 2000.0, "limit": 400.5, "on_harm": "tell"},
            {
                "name": "revenue", "of": "page", "better": "higher", "cap": 50.0, "difference": 0.0,
                "on_harm": "pause",
            },
        ],
    });
    for (member, value) in wanted.as_object().expect("an object") {
        assert_eq!(&made[member], value, "{member}");
    }
}

const SHOP: [(&str, &str); 14] = [
    ("name", "shop"),
    ("rankers", "today\r\nnext"),
    ("control", "today"),
    ("alone", "20 %"),
    ("concludes", "verdict"),
    ("decides", "money"),
    ("orders_event", "order"),
    ("window_seconds", "604800"),
    ("arrival_seconds", "129600"),
    ("cap", "200"),
    ("pages_per_day", "5000"),
    ("difference", "7 %"),
    ("answered", "0.3"),
    ("orders", "2.5 %"),
];

async fn the_form_creates_what_orders_decide(database: TestDatabase) {
    let server = serve(database.store().await).await;
    let visitor = Visitor::with(&server, ADMIN).await;
    // the fields are filled in, and mean nothing as long as clicks decide
    let form = visitor.get("/new-experiment").await.text();
    for value in ["value=\"order\"", "value=\"604800\"", "value=\"129600\"", "value=\"0.025\""] {
        assert!(form.contains(value), "{value}");
    }
    let asked = send(&visitor, "review", &SHOP).await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    let plain = asked.plain();
    let summary = plain.split("What will happen").nth(1).expect("a question");
    for part in [
        "<dt>Decided by</dt><dd>the money of each <bdi>order</bdi>, up to 200 a unit",
        "within 7 days of a unit's first clicked page; sent within 36 h",
        "An order counts 8.5 days after its first page",
        "orders take about 3.6 times the pages of clicks",
        "The lift is known to about ± 20 % after ",
        "Started on ",
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    let alone = "the two rankers of its first page: every request needs its unit";
    assert!(!summary.contains("Clicks settle after") && !summary.contains(alone), "{summary}");
    let mut three = SHOP;
    three[1].1 = "today\r\nnext\r\nthird";
    let asked = send(&visitor, "review", &three).await.plain();
    assert!(asked.contains(alone), "{asked}");
    let done = send(&visitor, "confirm", &SHOP).await;
    let place = done.location().to_owned();
    let created = visitor.get(&place).await.plain();
    assert!(created.contains("An order counts 8.5 days after its first page"), "{created}");
    let made = api(&server, "GET", "/v1/experiments/shop", None).await;
    let decide_by = json!({
        "event": "order", "window_seconds": 604_800, "arrival_seconds": 129_600, "by": "money",
        "cap": 200.0,
    });
    assert_eq!(made["decide_by"], decide_by);
    // each error is beside its field
    let with_errors: Vec<_> = SHOP
        .into_iter()
        .map(|(name, value)| match name {
            "rankers" => (name, "today"),
            "window_seconds" => (name, "59"),
            "cap" => (name, ""),
            "orders" => (name, "250 %"),
            _ => (name, value),
        })
        .collect();
    let wrong = send(&visitor, "review", &with_errors).await.plain();
    for part in ["`rankers` is 1;", "`window_seconds` is 59", "needs a `cap`", "`orders` is 2.5"] {
        assert!(wrong.contains(part), "{part}: {wrong}");
    }
    // by clicks, none of it is sent
    let clicks: Vec<_> = SHOP
        .into_iter()
        .map(|(name, value)| match name {
            "name" => (name, "clicks"),
            "decides" => (name, ""),
            _ => (name, value),
        })
        .collect();
    let asked = send(&visitor, "review", &clicks).await.plain();
    assert!(!asked.contains("An order counts"), "{asked}");
    send(&visitor, "confirm", &clicks).await.location();
    assert_eq!(api(&server, "GET", "/v1/experiments/clicks", None).await.get("decide_by"), None);
}

async fn all_errors_are_shown_at_once_with_what_was_read(database: TestDatabase) {
    let server = serve(database.store().await).await;
    let visitor = Visitor::with(&server, ADMIN).await;
    let wrong = [
        ("name", "No Spaces"),
        ("rankers", "a\nb\u{feff}\na"),
        ("control", "nobody"),
        ("owner", "team\u{200b}"),
        ("coverage", "much"),
        ("alone", "70 %"),
        ("canary", "a"),
        ("concludes", "verdict"),
        ("confidence", "95"),
        ("max_days", "10.000"),
        ("max_duels", "50 %"),
        ("policy", "no-such"),
        ("ties", "no-such"),
        ("interleaving", "no-such"),
        ("segments", "phone, phone\u{200b}"),
        ("metric_0_name", "Latency"),
        ("metric_0_cap", "10"),
        ("metric_0_limit", "20"),
        ("metric_1_name", "late"),
        ("metric_1_limit", "2"),
        ("metric_1_cap", "1"),
        ("errors_best", "5"),
        ("pages_per_day", "9.000"),
        ("difference", "4"),
        ("answered", "30 %"),
    ];
    let answer = send(&visitor, "review", &wrong).await;
    assert_eq!(answer.status, 422);
    let plain = answer.plain();
    let (_, summary) = plain.split_once("id=\"errors\"").expect("a summary");
    let (summary, _) = summary.split_once("</div>").expect("its end");
    for (field, part) in [
        ("name", "An experiment's name"),
        ("rankers", "U+FEFF"),
        ("rankers", "listed twice"),
        ("control", "`nobody`"),
        ("owner", "U+200B"),
        ("coverage", "Coverage: `much` is no number"),
        ("alone", "`alone` is 0.7"),
        ("canary", "two ids"),
        ("confidence", "0.95 is 95 %"),
        ("max_days", "`10.000` can be read as 10000 and as 10"),
        ("max_duels", "`50 %` is a percentage"),
        ("policy", "`no-such`"),
        ("ties", "no-such"),
        ("interleaving", "`no-such`"),
        ("segments", "U+200B"),
        ("metrics", "Metric 1: a metric's name"),
        ("metrics", "Metric 1: `limit` is 20"),
        ("metrics", "Metric 2: `limit` is 2"),
        ("errors_best", "0.05 is 5 %"),
        ("pages_per_day", "`9.000` can be read as 9000 and as 9"),
        ("difference", "`difference` is 4"),
    ] {
        let link = format!("href=\"#f-{field}\"");
        let named = summary.split("<li>").any(|it| it.contains(&link) && it.contains(part));
        assert!(named, "{field}: {part}: {summary}");
    }
    // the values stay as they were written
    assert!(plain.contains("value=\"10.000\"") && plain.contains("value=\"Latency\""), "{plain}");
}

async fn a_plan_has_the_same_dates_before_and_after(database: TestDatabase) {
    let server = serve(database.store().await).await;
    let visitor = Visitor::with(&server, ADMIN).await;
    let fields = [
        ("name", "planned"),
        ("rankers", "a\nb\nc"),
        ("concludes", "verdict"),
        ("confidence", "90 %"),
        ("margin", "1 %"),
        ("max_days", "20"),
        ("pages_per_day", "1 000"),
        ("difference", "20 %"),
        ("answered", "50 %"),
    ];
    let dates = |answer: &Answer| {
        let plain = answer.plain();
        let (_, text) = plain.split_once("id=\"dates\">").unwrap_or_else(|| panic!("{plain}"));
        text.split_once("</p>").expect("its end").0.to_owned()
    };
    let on_form = send(&visitor, "edit", &fields).await;
    let before = dates(&on_form);
    assert!(before.starts_with("Started on Mon 21 Sep, half of such experiments"), "{before}");
    let asked = send(&visitor, "review", &fields).await;
    assert_eq!(dates(&asked), before);
    assert!(asked.plain().contains("on Sun 11 Oct in any case (20 days)"), "{}", asked.text());
    let done = send(&visitor, "confirm", &fields).await;
    let created = visitor.get(done.location()).await;
    assert_eq!(created.status, 200, "{}", created.text());
    assert_eq!(dates(&created), before, "after it was created");
    assert!(created.plain().contains("on Sun 11 Oct in any case (20 days)"), "{}", created.text());
    // without a forecast there is none
    assert!(!visitor.get("/experiments/planned/manage").await.text().contains("id=\"dates\""));
}

/// Texts with this mark that do not stand in an element that isolates them.
fn not_isolated(html: &str) -> Vec<String> {
    const ISOLATES: [&str; 7] = ["bdi", "code", "option", "title", "textarea", "text", "script"];
    const VOID: [&str; 6] = ["input", "meta", "link", "br", "hr", "img"];
    let (mut open, mut found) = (Vec::new(), Vec::new());
    for piece in html.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap_or((piece, ""));
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default();
        if tag.starts_with('/') {
            while open.pop().is_some_and(|it: String| it != name) {}
        } else if !VOID.contains(&name) && !tag.ends_with('/') && !tag.starts_with('!') {
            open.push(name.to_owned());
        }
        let is_isolated = open.iter().any(|it| ISOLATES.contains(&&**it));
        // in a text without elements, characters isolate
        let bare =
            text.split('\u{2068}').map(|it| it.split_once('\u{2069}').map_or(it, |(_, it)| it));
        if bare.collect::<String>().contains('\u{202e}') && !is_isolated {
            found.push(format!("{open:?}: {text:?}"));
        }
    }
    found
}

async fn text_of_another_direction_is_isolated_on_every_page(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let turned = |text: &str| format!("\u{202e}{text}");
    let rankers = ["a", "b", "c"].map(turned);
    let metric = json!({"name": "latency_ms", "cap": 1000, "limit": 400});
    let body = json!({
        "name": "search", "rankers": rankers, "control": rankers[0], "owner": turned("owner"),
        "description": turned("why"), "segments": [turned("phone")], "metrics": [metric],
        "canary": [rankers[1], rankers[2]], "canary_share": 0, "policy": {"kind": "uniform"},
        "answer_window_seconds": 0, "seed": 5,
    });
    server.create(&body).await;
    let segment = json!({"segment": turned("phone"), "unit": "u"});
    for _ in 0..300 {
        let duel = server.post("/v1/experiments/search/next-duel", &segment).await.json(200);
        let wins = duel["left"] == rankers[0] && duel["self_duel"] == false;
        server.answer("search", &duel, if wins { "left" } else { "right" }).await;
    }
    let exclude = json!({"exclude": {"units": ["bot"], "reason": turned("reason")}});
    server.patch("search", &exclude).await.json(200);
    server.create(&with(body.clone(), json!({"name": "fresh"}))).await;
    let owner = json!({"owner": turned("another"), "enlist": {"id": turned("d"), "description": turned("new")}});
    server.patch("search", &owner).await.json(200);
    let visitor = Visitor::of(&server);
    let mut seen = 0;
    let mut wrong = Vec::new();
    for path in [
        "/",
        "/audit",
        "/experiments/search",
        "/experiments/search/evidence",
        "/experiments/search/traffic",
        "/experiments/search/manage",
        "/experiments/fresh",
        "/experiments/search/manage/retire",
        "/experiments/search/manage/control",
        "/experiments/search/manage/settings",
        "/experiments/search/manage/conclude",
        "/experiments/search/manage/retire?ranker=%E2%80%AEa",
    ] {
        let page = visitor.get(path).await;
        if page.status != 200 {
            continue;
        }
        let html = page.text();
        seen += usize::from(html.contains('\u{202e}'));
        wrong.extend(not_isolated(&html).into_iter().map(|it| format!("{path}: {it}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 9, "{seen} pages have such a text");
    server.patch("search", &json!({"status": "concluded", "winner": rankers[0]})).await.json(200);
    for path in ["/", "/experiments/search", "/experiments/search/manage"] {
        let html = visitor.get(path).await.text();
        assert_eq!(not_isolated(&html), Vec::<String>::new(), "{path}");
    }
    let rankers = rankers.join("\n");
    let fields =
        [("name", "new"), ("rankers", &*rankers), ("control", "\u{202e}a"), ("owner", "\u{202e}x")];
    let asked = send(&visitor, "review", &fields).await;
    assert_eq!((asked.status, not_isolated(&asked.text())), (200, Vec::new()));
    let refused = send(&visitor, "review", &[fields[0], fields[1], ("control", "\u{202e}z")]).await;
    assert_eq!((refused.status, not_isolated(&refused.text())), (422, Vec::new()));
}
