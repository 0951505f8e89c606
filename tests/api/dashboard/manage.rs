//! The pages that change something, over HTTP: each change by each scope, forged forms, errors.

use rankduel_engine::access::Scope;
use rankduel_store::SharedStore;
use serde_json::{Value, json};

use super::visit::{ADMIN, Visitor, serve};
use crate::support::client::{JSON, assert_has};
use crate::support::service::{Server, key};
use crate::support::{Kind, TestDatabase, fresh_database};

on_sqlite! {
    every_change_needs_the_scope_the_token_and_this_site
}

/// A change: its path, its fields, and what the API says afterwards.
struct Change {
    path: &'static str,
    fields: &'static [(&'static str, &'static str)],
    after: (&'static str, Value),
    audited: &'static str,
}

fn changes() -> Vec<Change> {
    let change = |path, fields, pointer, value| Change {
        path,
        fields,
        after: (pointer, value),
        audited: "experiment-changed",
    };
    vec![
        change("/experiments/search/manage/pause", &[], "/status", json!("paused")),
        change("/experiments/search/manage/resume", &[], "/status", json!("running")),
        change(
            "/experiments/search/manage/enlist",
            &[("ranker", "d"), ("description", "the fourth")],
            "/rankers/3",
            json!({"id": "d", "description": "the fourth"}),
        ),
        change(
            "/experiments/search/manage/retire",
            &[("ranker", "a")],
            "/rankers/0",
            json!({"id": "a", "retired": true}),
        ),
        change(
            "/experiments/search/manage/interleaving",
            &[("interleaving", "optimized"), ("settings", r#"{"depth":7}"#)],
            "/interleaving/depth",
            json!(7),
        ),
        change("/experiments/search/manage/control", &[("control", "b")], "/control", json!("b")),
        change(
            "/experiments/search/manage/exclude",
            &[("units", "bot"), ("hashes", ""), ("reason", "clicks on everything")],
            "/exclusions/0/reason",
            json!("clicks on everything"),
        ),
        change(
            "/experiments/search/manage/settings",
            &[
                ("description", "which index"),
                ("owner", "search team"),
                ("concludes", "verdict"),
                ("max_days", "30"),
                ("answer_window_seconds", "120"),
            ],
            "/conclude_at/max_days",
            json!(30.0),
        ),
        change("/experiments/search/manage/conclude", &[("winner", "b")], "/winner", json!("b")),
        Change {
            audited: "experiment-archived",
            ..change(
                "/experiments/search/manage/archive",
                &[],
                "/archived_at",
                json!("2026-09-21T14:13:20.000Z"),
            )
        },
    ]
}

pub async fn api(server: &Server, method: &str, path: &str, body: Option<Value>) -> Value {
    let bearer = format!("Bearer {ADMIN}");
    let headers = [JSON, ("authorization", &*bearer), ("if-match", "*")];
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let answer = server.send(method, path, &headers, body).await;
    assert!(matches!(answer.status, 200 | 201), "{}: {}", answer.request, answer.text());
    serde_json::from_slice(&answer.bytes).expect("JSON")
}

pub async fn create(server: &Server, name: &str) {
    let body = json!({"name": name, "rankers": ["a", "b", "c"]});
    api(server, "POST", "/v1/experiments", Some(body)).await;
}

pub async fn changes_of(server: &Server) -> Vec<Value> {
    let page = api(server, "GET", "/v1/audit?limit=500", None).await;
    page["entries"].as_array().expect("entries").clone()
}

/// A session of each kind of key that must not change `search`, with what it gets.
async fn others(server: &Server, store: &SharedStore) -> Vec<(Visitor, u16)> {
    let (reader, _) = key(store, &[Scope::Read], None).await;
    let (elsewhere, _) = key(store, &[Scope::Admin], Some(&["other"])).await;
    vec![
        (Visitor::of(server), 303),
        (Visitor::with(server, &reader).await, 403),
        (Visitor::with(server, &elsewhere).await, 403),
    ]
}

async fn every_change_needs_the_scope_the_token_and_this_site(database: TestDatabase) {
    let store = database.store().await;
    let server = serve(database.connect().await).await;
    create(&server, "search").await;
    let (text, id) = key(&store, &[Scope::Admin], None).await;
    let visitor = Visitor::with(&server, &text).await;
    let other_session = Visitor::with(&server, &text).await.get("/new-experiment").await.token();
    let others = others(&server, &store).await;
    for Change { path, fields, after: (pointer, value), audited } in changes() {
        let form = visitor.get(path).await;
        assert_eq!(
            (form.status, form.header("cache-control")),
            (200, Some("no-store")),
            "{path}: {}",
            form.text()
        );
        let (token, version) = (form.token(), form.hidden("version"));
        let with = |token: &str| -> Vec<(String, String)> {
            let mut all = vec![("form_token", token), ("version", &*version), ("step", "confirm")];
            all.extend(fields);
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let post = async |visitor: &Visitor, token: &str, headers: &[(&str, &str)]| {
            let fields = with(token);
            let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
            visitor.send("POST", path, &fields, headers).await
        };
        let before = changes_of(&server).await.len();
        for (other, status) in &others {
            assert_eq!(other.get(path).await.status, *status, "{path}");
            let answer = post(other, &token, &[]).await;
            assert_eq!(answer.status, *status, "{path}");
            assert!(*status != 303 || answer.location().starts_with("/login"), "{path}");
        }
        for token in ["", "AAAA", &other_session, &token[..token.len() - 1]] {
            let answer = post(&visitor, token, &[]).await;
            assert_eq!(answer.status, 403, "{path} {token}");
            assert!(answer.text().contains("not made for this session"), "{}", answer.text());
        }
        for forged in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(post(&visitor, &token, &[forged]).await.status, 403, "{path} {forged:?}");
        }
        // The first step says what will happen, and changes nothing.
        let mut review = with(&token);
        review.retain(|(name, _)| name != "step");
        let review: Vec<_> = review.iter().map(|(name, value)| (&**name, &**value)).collect();
        let asked = visitor.post(path, &review).await;
        assert_eq!(asked.status, 200, "{path}: {}", asked.text());
        assert!(asked.text().contains("What will happen"), "{path}: {}", asked.text());
        for (name, value) in fields {
            assert_eq!(asked.hidden(name).replace("&quot;", "\""), *value, "{path}");
        }
        assert_eq!(changes_of(&server).await.len(), before, "{path} was changed");

        let answer = post(&visitor, &token, &[("origin", server.base())]).await;
        assert_eq!(answer.status, 303, "{path}: {}", answer.text());
        let (overview, action) = path.rsplit_once('/').expect("a path");
        assert_eq!(answer.location(), format!("{overview}?done={action}"));
        let shown = visitor.get(answer.location()).await;
        assert_eq!(shown.status, 200);
        assert!(shown.text().contains("class=\"notice\""), "{}", shown.text());
        let experiment = api(&server, "GET", "/v1/experiments/search", None).await;
        assert_eq!(experiment.pointer(pointer), Some(&value), "{path}: {experiment}");
        let entries = changes_of(&server).await;
        assert_eq!(entries.len(), before + 1, "{path}");
        assert_has(
            &entries[0],
            json!({"who": format!("key:{id}"), "what": audited, "experiment": "search"}),
        );
        assert!(entries[0]["request_id"].is_string());
    }
}

/// The fields of a new experiment.
const NEW: [(&str, &str); 9] = [
    ("name", "fresh"),
    ("rankers", "bm25\r\n\r\n neural | two towers \r\n"),
    ("policy", "d-ts-verdict"),
    ("parameters", ""),
    ("concludes", "verdict"),
    ("confidence", "0.9"),
    ("margin", "0.02"),
    ("ties", "skip"),
    ("interleaving", "team-draft"),
];

fn changed<'a>(field: &'a str, value: &'a str, token: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut fields: Vec<_> = NEW.into_iter().filter(|(name, _)| *name != field).collect();
    fields.extend([(field, value), ("form_token", token)]);
    fields
}

#[tokio::test]
async fn an_experiment_is_created_after_its_errors_are_shown_beside_the_fields() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let server = serve(database.connect().await).await;
    create(&server, "taken").await;
    let visitor = Visitor::with(&server, ADMIN).await;
    let form = visitor.get("/new-experiment").await;
    let token = form.token();
    assert!(form.text().contains("name=\"confidence\" type=\"text\" value=\"0.95\""));
    for (field, value, message) in [
        ("name", "No Spaces", "An experiment's name is 1 to 64"),
        ("name", "taken", "There is an experiment `taken` already"),
        ("rankers", "alone", "2 to 256"),
        ("rankers", "twice\ntwice", "ranker `twice` is listed twice"),
        ("policy", "no-such", "There is no policy `no-such`"),
        ("parameters", "alpha", "is not of the form name=value"),
        ("parameters", "kind=ccb", "choose it above"),
        ("parameters", "depth=3", "`depth`"),
        ("confidence", "much", "Write a number with digits"),
        ("confidence", "2", "`confidence` is 2"),
        ("margin", "0.5", "`margin` is 0.5"),
        ("min_days", "-1", "`min_days` is -1"),
        ("max_days", "0", "`max_days` is 0"),
        ("max_duels", "1.5", "1.5"),
        ("duel_ttl_seconds", "0", "`duel_ttl_seconds` is 0"),
        ("answer_window_seconds", "999999", "`answer_window_seconds` is 999999"),
        ("ties", "no-such", "unknown variant"),
        ("control", "nobody", "nobody"),
        ("interleaving", "no-such", "There is no interleaving method"),
        ("settings", "[]", "in braces"),
        ("segments", "phone\nphone", "phone"),
        ("errors_best", "0.4", "`errors` sum to 0.4"),
        ("errors_best", "latency", "is no number"),
    ] {
        for step in ["review", "confirm"] {
            if (value, step) == ("taken", "confirm") {
                continue;
            }
            let mut fields = changed(field, value, &token);
            fields.push(("step", step));
            let answer = visitor.post("/new-experiment", &fields).await;
            assert_eq!(answer.status, 422, "{field}={value}: {}", answer.text());
            let escaped = value.replace('\n', "");
            let kept = answer.text().replace('\n', "").replace("&quot;", "\"");
            assert!(kept.contains(&escaped), "{field}={value} is kept");
            let (beside, html) = (format!("id=\"h-{field}\""), answer.plain());
            let at = html.find(&beside).unwrap_or_else(|| panic!("{field}"));
            let end = html[at..].find("</div>").expect("its end");
            let help = html[at..at + end].to_lowercase();
            assert!(help.contains(&message.to_lowercase()), "{field}={value}: {help}");
            assert!(answer.text().contains(&format!("href=\"#f-{field}\"")), "{field}");
        }
    }
    // The name is taken by an experiment of another spec.
    let mut fields = changed("name", "taken", &token);
    fields.push(("step", "confirm"));
    let answer = visitor.post("/new-experiment", &fields).await;
    assert_eq!(answer.status, 409);
    assert!(answer.text().contains("was created from a different request"), "{}", answer.text());
    assert!(answer.text().contains("two towers"), "the values are kept");

    let mut fields = changed("name", "fresh", &token);
    fields.extend([
        ("segments", "phone\r\ndesktop"),
        ("metric_0_name", "latency_ms"),
        ("metric_0_cap", "2000"),
        ("metric_0_limit", "400"),
        ("errors_best", "0.05"),
    ]);
    let asked = visitor.post("/new-experiment", &fields).await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    assert!(asked.text().contains("will start at once"), "{}", asked.text());
    fields.push(("step", "confirm"));
    for _ in 0..2 {
        // Sending it twice creates one experiment.
        let done = visitor.post("/new-experiment", &fields).await;
        assert_eq!((done.status, done.location()), (303, "/experiments/fresh/manage?done=created"));
    }
    // a forecast is shown in the form and in the question, and is no setting
    let mut fields = changed("pages_per_day", "400", &token);
    fields.extend([("difference", "0.2"), ("answered", "0.9"), ("step", "edit")]);
    let planned = visitor.post("/new-experiment", &fields).await;
    assert_eq!(planned.status, 200);
    for part in [
        "Half of such experiments have a verdict within",
        "Days until half of experiments have a result",
        "Half of experiments",
    ] {
        assert!(planned.text().contains(part), "{part}: {}", planned.text());
    }
    fields.retain(|(name, _)| *name != "difference");
    fields.push(("difference", "0.9"));
    let refused = visitor.post("/new-experiment", &fields).await;
    assert_eq!(refused.status, 422);
    assert!(refused.plain().contains("`difference` is 0.9"), "{}", refused.text());
    let made = api(&server, "GET", "/v1/experiments/fresh", None).await;
    assert_eq!(
        made["rankers"],
        json!([{"id": "bm25"}, {"id": "neural", "description": "two towers"}])
    );
    assert_eq!(made["conclude_at"], json!({"confidence": 0.9, "margin": 0.02}));
    // the policy works towards the part of the result
    assert_eq!(made["policy"]["confidence"], 0.95);
    assert_eq!(made["segments"], json!(["phone", "desktop"]));
    assert_eq!(made["metrics"][0]["limit"], json!(400.0));
    assert_eq!(made["errors"], json!({"best": 0.05}));
    let created = |entry: &&Value| entry["what"] == "experiment-created";
    assert_eq!(changes_of(&server).await.iter().filter(created).count(), 2);

    // Never by itself; a key for some experiments creates only those.
    let (limited, _) = key(&store, &[Scope::Admin], Some(&["mine"])).await;
    let limited = Visitor::with(&server, &limited).await;
    let token = limited.get("/new-experiment").await.token();
    for (name, status) in [("theirs", 403), ("mine", 303)] {
        let mut fields = changed("concludes", "never", &token);
        fields.retain(|(field, _)| *field != "name");
        fields.extend([("name", name), ("step", "confirm")]);
        assert_eq!(limited.post("/new-experiment", &fields).await.status, status, "{name}");
    }
    let made = api(&server, "GET", "/v1/experiments/mine", None).await;
    assert_eq!(made["conclude_at"], "never");
}

#[tokio::test]
async fn a_form_of_an_older_version_is_refused_and_explained() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = serve(database.store().await).await;
    create(&server, "search").await;
    let visitor = Visitor::with(&server, ADMIN).await;
    let form = visitor.get("/experiments/search/manage/enlist").await;
    let (token, version) = (form.token(), form.hidden("version"));
    let change = json!({"status": "paused"});
    api(&server, "PATCH", "/v1/experiments/search", Some(change)).await;
    for step in ["review", "confirm"] {
        let fields =
            [("form_token", &*token), ("version", &*version), ("ranker", "late"), ("step", step)];
        let answer = visitor.post("/experiments/search/manage/enlist", &fields).await;
        assert_eq!(answer.status, 412);
        assert!(answer.text().contains("this form changed nothing"), "{}", answer.text());
        assert!(answer.text().contains("value=\"late\""), "the value is kept");
        assert_ne!(answer.hidden("version"), version, "the form has the newest version");
    }
    // One that another session has opened is kept, too.
    let fields = [("form_token", "AAAA"), ("version", &*version), ("ranker", "late")];
    let answer = visitor.post("/experiments/search/manage/enlist", &fields).await;
    assert_eq!(answer.status, 403);
    assert!(answer.text().contains("value=\"late\""), "{}", answer.text());
    let stranger = Visitor::of(&server);
    let answer = stranger.post("/new-experiment", &[("name", "lost")]).await;
    assert_eq!((answer.status, answer.location()), (303, "/login?next=%2Fnew-experiment&form=1"));
    let login = stranger.get(answer.location()).await;
    assert!(login.text().contains("Your session had ended"), "{}", login.text());
    // The settings have the names of their fields.
    let path = "/experiments/search/manage/settings";
    let form = visitor.get(path).await;
    let (token_now, version_now) = (form.token(), form.hidden("version"));
    let fields = [
        ("form_token", &*token_now),
        ("version", &*version_now),
        ("step", "review"),
        ("concludes", "verdict"),
        ("max_duels", "10"),
    ];
    let asked = visitor.post(path, &fields).await;
    assert!(asked.plain().contains("Answered duels at most: <bdi>10</bdi>"), "{}", asked.plain());
    // A change without fields asks again.
    let fields = [("form_token", &*token), ("version", &*version), ("step", "confirm")];
    let answer = visitor.post("/experiments/search/manage/resume", &fields).await;
    assert_eq!(answer.status, 412);
    let fields =
        [("form_token", &*token), ("version", &*answer.hidden("version")), ("step", "confirm")];
    assert_eq!(visitor.post("/experiments/search/manage/resume", &fields).await.status, 303);
    // A change that the state does not allow is refused with the reason.
    for (action, reason) in [("resume", "is running"), ("archive", "Conclude it first")] {
        let path = format!("/experiments/search/manage/{action}");
        let page = visitor.get(&path).await;
        assert!(page.text().contains(reason), "{action}: {}", page.text());
        assert!(!page.text().contains("What will happen"), "{action}");
    }
    for (path, fields, message) in [
        ("retire", [("ranker", "nobody")], "has no ranker `nobody`"),
        ("enlist", [("ranker", "a")], "has a ranker `a`"),
        ("conclude", [("winner", "nobody")], "has no ranker `nobody`"),
        ("control", [("control", "nobody")], "nobody"),
        ("exclude", [("reason", "no units")], "at least one unit"),
        ("exclude", [("units", "bot")], "reason has 1 to 500 characters"),
        ("settings", [("max_days", "0")], "`max_days` is 0"),
        ("settings", [("answer_window_seconds", "0")], "changes neither from nor to 0"),
        ("interleaving", [("interleaving", "no-such")], "no interleaving method `no-such`"),
    ] {
        let path = format!("/experiments/search/manage/{path}");
        let form = visitor.get(&path).await;
        let (token, version) = (form.token(), form.hidden("version"));
        let mut all = vec![("form_token", &*token), ("version", &*version), ("step", "confirm")];
        all.extend(fields);
        let description = [("description", "another")];
        all.extend(description);
        let answer = visitor.post(&path, &all).await;
        assert!(matches!(answer.status, 409 | 422), "{path}: {}", answer.status);
        assert!(answer.plain().contains(message), "{path}: {}", answer.text());
    }
    for path in ["/experiments/none/manage", "/experiments/search/manage/explode"] {
        assert_eq!(visitor.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_server_without_keys_is_managed_by_everybody_and_makes_no_first_key() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let server = Server::start(database.connect().await).await;
    server.create(&json!({"name": "search", "rankers": ["a", "b"]})).await;
    let visitor = Visitor::of(&server);
    let form = visitor.get("/experiments/search/manage/pause").await;
    let (token, version) = (form.token(), form.hidden("version"));
    let fields = [("form_token", &*token), ("version", &*version), ("step", "confirm")];
    let path = "/experiments/search/manage/pause";
    assert_eq!(visitor.post(path, &fields[1..]).await.status, 403);
    let forged = [("origin", "https://evil.example")];
    assert_eq!(visitor.send("POST", path, &fields, &forged).await.status, 403);
    assert_eq!(visitor.post(path, &fields).await.status, 303);
    let page = server.get("/v1/audit").await.json(200);
    assert_eq!(page["entries"][0]["who"], "anyone");
    assert!(visitor.get("/keys").await.text().contains("Make the first one on the command line"));
    let fields =
        [("form_token", &*token), ("name", "mine"), ("scopes", "admin"), ("step", "confirm")];
    assert_eq!(visitor.post("/keys/new", &fields).await.status, 403);
    assert_eq!(store.api_keys().await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_form_has_at_most_64_kib() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = serve(database.store().await).await;
    create(&server, "search").await;
    let visitor = Visitor::with(&server, ADMIN).await;
    let path = "/experiments/search/manage/enlist";
    let form = visitor.get(path).await;
    let (token, version) = (form.token(), form.hidden("version"));
    let before = changes_of(&server).await.len();
    let description = "a".repeat(64 * 1024);
    let fields = [
        ("form_token", &*token),
        ("version", &*version),
        ("ranker", "late"),
        ("step", "confirm"),
        ("description", &*description),
    ];
    let answer = visitor.post(path, &fields).await;
    assert_eq!(answer.status, 413);
    assert!(answer.text().contains("at most 64 KiB"), "{}", answer.text());
    assert_eq!(changes_of(&server).await.len(), before);
}
