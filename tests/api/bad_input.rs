//! Invalid input is refused with the right problem and leaves no trace.
//!
//! The tests are tables of cases: the request, the expected problem, and where it points.

use rankduel::http::{ProblemKind, ShellSettings};
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{JSON, assert_has, steady};
use crate::support::service::{Server, Settings};

on_sqlite! {
    bodies_that_are_not_json_are_refused
    bodies_that_are_not_objects_are_refused
    other_content_types_are_refused
    bodies_that_are_too_large_are_refused
    invalid_experiments_are_refused
    invalid_changes_are_refused
    invalid_feedback_is_refused
    invalid_results_are_refused
    wrong_methods_are_refused
    wrong_paths_are_refused
    invalid_names_are_not_found
}

/// Every route that accepts a body.
const BODIES: [(&str, &str); 5] = [
    ("POST", "/v1/experiments"),
    ("PATCH", "/v1/experiments/search"),
    ("POST", "/v1/experiments/search/feedback"),
    ("POST", "/v1/experiments/search/batch/lease"),
    ("POST", "/v1/experiments/search/batch/results"),
];

/// A server with an experiment `search`, and the state that must be unchanged at the end.
struct Untouched {
    server: Server,
    database: TestDatabase,
    rows: i64,
    standings: Value,
    list: Value,
}

impl Untouched {
    async fn start(database: TestDatabase) -> Self {
        Self::with(database, Settings::default()).await
    }

    async fn with(database: TestDatabase, settings: Settings) -> Self {
        let server = Server::with(database.store().await, settings).await;
        server.create(&steady("search", &["a", "b", "c"])).await;
        let duel = server.pair("search").await;
        server.answer("search", &duel, "left").await;
        let rows = database.count("select count(*) from log").await;
        let standings = server.standings("search").await;
        let list = server.get("/v1/experiments").await.json(200);
        Self { server, database, rows, standings, list }
    }

    async fn assert(self) {
        assert_eq!(self.server.standings("search").await, self.standings);
        assert_eq!(self.server.get("/v1/experiments").await.json(200), self.list);
        assert_eq!(self.database.count("select count(*) from log").await, self.rows);
        // The server still works.
        let duel = self.server.pair("search").await;
        self.server.answer("search", &duel, "right").await;
    }
}

async fn bodies_that_are_not_json_are_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    let deep = |open: &str, close: &str| {
        ["{\"x\": ", &open.repeat(5000), "1", &close.repeat(5000), "}"].concat().into_bytes()
    };
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", vec![]),
        ("spaces", b"  \n".to_vec()),
        ("half an object", b"{\"name\": \"x\"".to_vec()),
        ("half a string", b"{\"name\": \"x".to_vec()),
        ("two values", b"{} {}".to_vec()),
        ("a trailing comma", b"{\"name\": \"x\",}".to_vec()),
        ("single quotes", b"{'name': 'x'}".to_vec()),
        ("a comment", b"{} // none".to_vec()),
        ("NaN", b"{\"count\": NaN}".to_vec()),
        ("infinity", b"{\"count\": Infinity}".to_vec()),
        ("a number out of range", b"{\"count\": 1e999}".to_vec()),
        ("a leading zero", b"{\"count\": 01}".to_vec()),
        ("a hexadecimal number", b"{\"count\": 0x10}".to_vec()),
        ("not UTF-8", b"{\"name\": \"\xff\xfe\"}".to_vec()),
        ("half a surrogate pair", b"{\"name\": \"\\ud800\"}".to_vec()),
        ("UTF-16", b"\xff\xfe{\0}\0".to_vec()),
        ("a control character", b"{\"name\": \"\x01\"}".to_vec()),
        ("a form", b"name=search&rankers=a".to_vec()),
        ("deep arrays", deep("[", "]")),
        ("deep objects", deep("{\"x\":", "}")),
    ];
    // Valid JSON that the parser refuses.
    let unreadable =
        ["a number out of range", "half a surrogate pair", "deep arrays", "deep objects"];
    for (method, path) in BODIES {
        for (what, body) in &cases {
            let answer =
                untouched.server.send(method, path, &[JSON, ("if-match", "*")], body.clone()).await;
            let kind = match unreadable.contains(what) {
                true => ProblemKind::InvalidRequest,
                false => ProblemKind::MalformedJson,
            };
            assert_eq!(
                answer.status,
                kind.status().as_u16(),
                "{what}: {method} {path}: {}",
                answer.text()
            );
            answer.problem(kind);
        }
    }
    untouched.assert().await;
}

async fn bodies_that_are_not_objects_are_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    for (method, path) in BODIES {
        for body in [
            "[]",
            "[{}]",
            "[\"new\", [\"a\", \"b\"]]",
            "[\"paused\", null]",
            "[1]",
            "[1, []]",
            "null",
            "true",
            "7",
            "-1.5",
            "\"search\"",
            "18446744073709551616",
        ] {
            let headers = [JSON, ("if-match", "*")];
            let answer =
                untouched.server.send(method, path, &headers, body.as_bytes().to_vec()).await;
            answer.problem_at(ProblemKind::InvalidRequest, "");
        }
    }
    untouched.assert().await;
}

async fn other_content_types_are_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    let server = &untouched.server;
    for (method, path) in BODIES {
        let without = server.send(method, path, &[("if-match", "*")], b"{}".to_vec()).await;
        without.problem(ProblemKind::UnsupportedMediaType);
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "text/json",
            "",
            "json",
            "application/jsonx",
        ] {
            let headers = [("content-type", kind), ("if-match", "*")];
            server
                .send(method, path, &headers, b"{}".to_vec())
                .await
                .problem(ProblemKind::UnsupportedMediaType);
        }
        for kind in
            ["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.search+json"]
        {
            let headers = [("content-type", kind), ("if-match", "*")];
            let answer = server.send(method, path, &headers, b"{}".to_vec()).await;
            assert_eq!(answer.status, 422, "{kind} is JSON: {}", answer.text());
        }
    }
    untouched.assert().await;
}

async fn bodies_that_are_too_large_are_refused(database: TestDatabase) {
    let shell = ShellSettings { body_limit_bytes: 1000, ..ShellSettings::default() };
    let untouched = Untouched::with(database, Settings { shell, ..Settings::default() }).await;
    for (method, path) in BODIES {
        for (length, kind) in
            [(1000, ProblemKind::InvalidRequest), (1001, ProblemKind::PayloadTooLarge)]
        {
            let body = format!("{{\"x\":\"{}\"}}", "x".repeat(length - 8)).into_bytes();
            assert_eq!(body.len(), length);
            let answer =
                untouched.server.send(method, path, &[JSON, ("if-match", "*")], body).await;
            answer.problem(kind);
        }
    }
    untouched.assert().await;
}

/// A change of one value of a body (or its removal), and the expected pointer of the problem.
type Change = (&'static str, Option<Value>, &'static str);

fn changed(body: &Value, field: &str, value: &Option<Value>) -> Value {
    let mut body = body.clone();
    let object = body.as_object_mut().expect("an object");
    match value {
        Some(value) => object.insert(field.into(), value.clone()),
        None => object.remove(field),
    };
    body
}

/// Each change alone must be refused with this pointer.
async fn assert_refused(
    server: &Server,
    method: &str,
    path: &str,
    good: &Value,
    changes: &[Change],
) {
    for (field, value, pointer) in changes {
        let body = changed(good, field, value).to_string().into_bytes();
        let answer = server.send(method, path, &[JSON, ("if-match", "*")], body).await;
        let shown = value.as_ref().map_or("nothing".to_owned(), |value| value.to_string());
        let shown: String = shown.chars().take(80).collect();
        assert_eq!(answer.status, 422, "{field} = {shown}: {}", answer.text());
        let problem = answer.problem(ProblemKind::InvalidRequest);
        let places: Vec<_> = problem["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|error| &error["pointer"])
            .collect();
        assert!(places.contains(&&json!(pointer)), "{field} = {shown}: {problem}");
    }
}

async fn invalid_experiments_are_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    let good = json!({"name": "new", "rankers": ["a", "b"], "policy": {"kind": "uniform"}});
    let some = |value: Value| Some(value);
    let ids = |count: usize| some(json!((0..count).map(|i| format!("r{i}")).collect::<Vec<_>>()));
    let policy = |value: Value| some(value);
    let mut cases: Vec<Change> = vec![
        ("name", None, ""),
        ("rankers", None, ""),
        ("colour", some(json!("red")), "/colour"),
        ("Name", some(json!("new")), "/Name"),
        ("rankers", ids(0), "/rankers"),
        ("rankers", ids(1), "/rankers"),
        ("rankers", ids(1025), "/rankers"),
        ("rankers", some(json!(null)), "/rankers"),
        ("rankers", some(json!("ab")), "/rankers"),
        ("rankers", some(json!({"a": 1, "b": 2})), "/rankers"),
        ("rankers", some(json!(3)), "/rankers"),
        ("rankers", some(json!(["a", 2])), "/rankers/1"),
        ("rankers", some(json!(["a", null])), "/rankers/1"),
        ("rankers", some(json!(["a", ["b"]])), "/rankers/1"),
        ("rankers", some(json!(["a", true])), "/rankers/1"),
        ("rankers", some(json!(["a", ""])), "/rankers/1"),
        ("rankers", some(json!(["a", "b", "a"])), "/rankers/2"),
        ("rankers", some(json!(["a", {"id": "a"}])), "/rankers/1"),
        ("rankers", some(json!(["a", "b\u{0}"])), "/rankers/1"),
        ("rankers", some(json!(["a", "b\n"])), "/rankers/1"),
        ("rankers", some(json!(["a", "b".repeat(129)])), "/rankers/1"),
        ("rankers", some(json!(["a", {"description": "b"}])), "/rankers/1"),
        ("rankers", some(json!(["a", {"id": null}])), "/rankers/1/id"),
        ("rankers", some(json!(["a", {"id": 7}])), "/rankers/1/id"),
        ("rankers", some(json!(["a", {"id": "b", "description": 7}])), "/rankers/1/description"),
        ("rankers", some(json!(["a", {"id": "b", "colour": "red"}])), "/rankers/1/colour"),
        (
            "rankers",
            some(json!(["a", {"id": "b", "description": "x".repeat(1001)}])),
            "/rankers/1/description",
        ),
        ("policy", policy(json!("uniform")), "/policy"),
        ("policy", policy(json!(["uniform"])), "/policy"),
        ("policy", policy(json!({})), "/policy/kind"),
        ("policy", policy(json!({"kind": null})), "/policy/kind"),
        ("policy", policy(json!({"kind": 7})), "/policy/kind"),
        ("policy", policy(json!({"kind": "best"})), "/policy/kind"),
        ("policy", policy(json!({"kind": "Uniform"})), "/policy/kind"),
        ("policy", policy(json!({"kind": "uniform", "alpha": 0.5})), "/policy/alpha"),
        ("policy", policy(json!({"kind": "uniform", "a/b~c": 0.5})), "/policy/a~1b~0c"),
        ("policy", policy(json!({"kind": "d-ts-verdict", "margin": 0.02})), "/policy/margin"),
        (
            "policy",
            policy(json!({"kind": "d-ts-verdict", "confidence": 0.9})),
            "/policy/confidence",
        ),
        ("policy", policy(json!({"kind": "pcomp"})), "/policy/horizon"),
        ("policy", policy(json!({"kind": "pcomp", "horizon": null})), "/policy/horizon"),
        ("policy", policy(json!({"kind": "pcomp", "horizon": "1000"})), "/policy/horizon"),
        ("policy", policy(json!({"kind": "pcomp", "horizon": -1})), "/policy/horizon"),
        ("policy", policy(json!({"kind": "pcomp", "horizon": 0})), "/policy/horizon"),
        ("policy", policy(json!({"kind": "pcomp", "horizon": 1})), "/policy/horizon"),
        ("policy", policy(json!({"kind": "pcomp", "horizon": 1000.5})), "/policy/horizon"),
        (
            "policy",
            policy(json!({"kind": "pcomp", "horizon": 2_000_000_001u64})),
            "/policy/horizon",
        ),
        ("policy", policy(json!({"kind": "pcomp", "horizon": u64::MAX})), "/policy/horizon"),
        (
            "policy",
            policy(json!({"kind": "pcomp", "horizon": 1000, "batches": 0})),
            "/policy/batches",
        ),
        (
            "policy",
            policy(json!({"kind": "pcomp", "horizon": 1000, "batches": 1001})),
            "/policy/batches",
        ),
        (
            "policy",
            policy(json!({"kind": "pcomp", "horizon": 1000, "elimination": "x"})),
            "/policy/elimination",
        ),
        ("ties", some(json!("maybe")), "/ties"),
        ("ties", some(json!("Skip")), "/ties"),
        ("ties", some(json!(0.5)), "/ties"),
    ];
    for name in [
        "", "A", "Search", "a b", "é", ".a", "-a", "_a", "a/b", "a\u{0}b", "a\nb", "a%20b", "ａ",
        "a'b", "../a",
    ] {
        cases.push(("name", some(json!(name)), "/name"));
    }
    for name in
        [json!("a".repeat(65)), json!(null), json!(7), json!(["a"]), json!({"a": 1}), json!(true)]
    {
        cases.push(("name", Some(name), "/name"));
    }
    for seconds in [
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1.5e-3),
        json!("60"),
        json!(2_592_001),
        json!(4_294_967_296u64),
    ] {
        cases.push(("duel_ttl_seconds", Some(seconds), "/duel_ttl_seconds"));
    }
    for seed in [json!(-1), json!(1.5), json!("7"), json!(1.8446744073709552e19), json!([1])] {
        cases.push(("seed", Some(seed), "/seed"));
    }
    assert_refused(&untouched.server, "POST", "/v1/experiments", &good, &cases).await;

    // All errors are reported at once.
    let wrong = json!({
        "name": "A", "rankers": ["a", "a", ""], "policy": {"kind": "pcomp", "horizon": 1},
        "duel_ttl_seconds": 0,
    });
    let problem =
        untouched.server.post("/v1/experiments", &wrong).await.problem(ProblemKind::InvalidRequest);
    let places: Vec<_> =
        problem["errors"].as_array().expect("errors").iter().map(|e| &e["pointer"]).collect();
    assert_eq!(
        places,
        ["/name", "/rankers/1", "/rankers/2", "/policy/horizon", "/duel_ttl_seconds"]
    );
    untouched.assert().await;
}

async fn invalid_changes_are_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    let good = json!({"status": "concluded", "winner": "a"});
    let cases: [Change; 14] = [
        ("status", None, ""),
        ("status", Some(json!(null)), ""),
        ("status", Some(json!("")), "/status"),
        ("status", Some(json!("stopped")), "/status"),
        ("status", Some(json!("Paused")), "/status"),
        ("status", Some(json!(1)), "/status"),
        ("status", Some(json!(["paused"])), "/status"),
        ("status", Some(json!("paused")), "/winner"),
        ("winner", Some(json!("z")), "/winner"),
        ("winner", Some(json!("")), "/winner"),
        ("winner", Some(json!(0)), "/winner"),
        ("winner", Some(json!({"id": "a"})), "/winner"),
        ("name", Some(json!("other")), "/name"),
        ("rankers", Some(json!(["a", "b"])), "/rankers"),
    ];
    assert_refused(&untouched.server, "PATCH", "/v1/experiments/search", &good, &cases).await;
    untouched.assert().await;
}

async fn invalid_feedback_is_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    let duel = untouched.server.pair("search").await;
    let good = json!({"duel_id": duel["duel_id"], "outcome": "left"});
    let path = "/v1/experiments/search/feedback";
    let cases: Vec<Change> = vec![
        ("duel_id", None, ""),
        ("duel_id", Some(json!(null)), "/duel_id"),
        ("duel_id", Some(json!(7)), "/duel_id"),
        ("duel_id", Some(json!([duel["duel_id"]])), "/duel_id"),
        ("outcome", None, "/outcome"),
        ("outcome", Some(json!("")), "/outcome"),
        ("outcome", Some(json!("Left")), "/outcome"),
        ("outcome", Some(json!("a")), "/outcome"),
        ("outcome", Some(json!(1)), "/outcome"),
        ("outcome", Some(json!(true)), "/outcome"),
        ("outcome", Some(json!(["left"])), "/outcome"),
        ("left_clicks", Some(json!(1)), "/outcome"),
        ("right_clicks", Some(json!(0)), "/outcome"),
        ("clicks", Some(json!([3, 1])), "/clicks"),
        ("experiment", Some(json!("search")), "/experiment"),
        // With this member, the body would be a list.
        ("feedback", Some(json!([])), "/duel_id"),
    ];
    assert_refused(&untouched.server, "POST", path, &good, &cases).await;
    let clicks = json!({"duel_id": duel["duel_id"], "left_clicks": 1, "right_clicks": 2});
    let mut cases: Vec<Change> =
        vec![("left_clicks", None, "/left_clicks"), ("right_clicks", None, "/right_clicks")];
    for count in [
        json!(-1),
        json!(1.5),
        json!(0.5),
        json!("3"),
        json!(4_294_967_296u64),
        json!([1]),
        json!(true),
    ] {
        cases.push(("left_clicks", Some(count.clone()), "/left_clicks"));
        cases.push(("right_clicks", Some(count), "/right_clicks"));
    }
    assert_refused(&untouched.server, "POST", path, &clicks, &cases).await;
    let many = json!({"feedback": [good]});
    let cases: [Change; 6] = [
        ("feedback", Some(json!(null)), "/feedback"),
        ("feedback", Some(json!({})), "/feedback"),
        ("feedback", Some(json!("left")), "/feedback"),
        ("feedback", Some(json!(1)), "/feedback"),
        ("feedback", Some(json!([])), "/feedback"),
        ("atomic", Some(json!(true)), "/atomic"),
    ];
    assert_refused(&untouched.server, "POST", path, &many, &cases).await;
    untouched.assert().await;
}

async fn invalid_results_are_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    let path = "/v1/experiments/search/batch/results";
    let row = json!({"left": "a", "right": "b", "left_wins": 1, "right_wins": 1, "ties": 0});
    let good = json!({"batch": 1, "results": [row]});
    let mut cases: Vec<Change> = vec![
        ("batch", None, ""),
        ("results", None, ""),
        ("round", Some(json!(1)), "/round"),
        ("results", Some(json!(null)), "/results"),
        ("results", Some(json!({"a": 1})), "/results"),
        ("results", Some(json!([null])), "/results/0"),
        ("results", Some(json!([row, "a"])), "/results/1"),
        ("results", Some(json!([row, ["a", "c", 1, 1, 0]])), "/results/1"),
    ];
    for batch in
        [json!(null), json!(-1), json!(1.5), json!("1"), json!(4_294_967_296u64), json!([1])]
    {
        cases.push(("batch", Some(batch), "/batch"));
    }
    for (field, value, pointer) in [
        ("left", None, "/results/0"),
        ("ties", None, "/results/0"),
        ("left", Some(json!(null)), "/results/0/left"),
        ("right", Some(json!(1)), "/results/0/right"),
        ("left_wins", Some(json!(-1)), "/results/0/left_wins"),
        ("right_wins", Some(json!(0.5)), "/results/0/right_wins"),
        ("ties", Some(json!(4_294_967_296u64)), "/results/0/ties"),
        ("ties", Some(json!("0")), "/results/0/ties"),
        ("draws", Some(json!(0)), "/results/0/draws"),
    ] {
        cases.push(("results", Some(json!([changed(&row, field, &value)])), pointer));
    }
    assert_refused(&untouched.server, "POST", path, &good, &cases).await;
    untouched.assert().await;
}

async fn wrong_methods_are_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    let all = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"];
    for (path, allowed) in [
        ("/v1/experiments", &["GET", "HEAD", "POST"][..]),
        ("/v1/experiments/search", &["DELETE", "GET", "HEAD", "PATCH"]),
        ("/v1/experiments/search/next-duel", &["POST"]),
        ("/v1/experiments/search/feedback", &["POST"]),
        ("/v1/experiments/search/standings", &["GET", "HEAD"]),
        ("/v1/experiments/search/regret", &["GET", "HEAD"]),
        ("/v1/experiments/search/batch", &["GET", "HEAD"]),
        ("/v1/experiments/search/batch/lease", &["POST"]),
        ("/v1/experiments/search/batch/results", &["POST"]),
    ] {
        for method in all.iter().filter(|method| !allowed.contains(method)) {
            let answer = untouched
                .server
                .send(method, path, &[JSON, ("if-match", "*")], b"{}".to_vec())
                .await;
            let allow = answer.header("allow").unwrap_or_default().to_owned();
            let mut listed: Vec<_> = allow.split(',').map(str::trim).collect();
            listed.sort_unstable();
            assert_eq!(listed, allowed, "{method} {path}");
            if *method == "HEAD" {
                assert_eq!((answer.status, answer.bytes.len()), (405, 0), "{path}");
            } else {
                answer.problem(ProblemKind::MethodNotAllowed);
            }
        }
    }
    untouched.assert().await;
}

async fn wrong_paths_are_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    for path in [
        "/v1",
        "/v1/",
        "/v2/experiments",
        "/V1/experiments",
        "/experiments",
        "/v1/experiments/",
        "/v1//experiments",
        "/v1/experiments/search/",
        "/v1/experiments/search/nothing",
        "/v1/experiments/search/batch/",
        "/v1/experiments/search/batch/nothing",
        "/v1/experiments/search/next-duel/",
        "/v1/experiments/a/b/c/d",
        "/.env",
        "/v1/experiments/search%2Fstandings",
    ] {
        for method in ["GET", "POST"] {
            let answer = untouched.server.send(method, path, &[JSON], b"{}".to_vec()).await;
            let kind = match (path, method) {
                // A percent-encoded slash is part of the name, and no name contains a slash.
                ("/v1/experiments/search%2Fstandings", "GET") => ProblemKind::ExperimentNotFound,
                ("/v1/experiments/search%2Fstandings", _) => ProblemKind::MethodNotAllowed,
                _ => ProblemKind::NotFound,
            };
            answer.problem(kind);
        }
    }
    untouched.assert().await;
}

async fn invalid_names_are_not_found(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    let long = "a".repeat(65);
    let names = [
        "none",
        "Search",
        "search%20",
        "%00",
        "%27%20or%201=1",
        "%D0%BA",
        "..%2f",
        "-",
        &long,
        "search%3B--",
    ];
    let feedback = json!({"duel_id": "x", "outcome": "left"});
    for name in names {
        for (method, rest, body) in [
            ("GET", "", Value::Null),
            ("PATCH", "", json!({"status": "paused"})),
            ("DELETE", "", Value::Null),
            ("POST", "/next-duel", Value::Null),
            ("POST", "/feedback", feedback.clone()),
            ("POST", "/feedback", json!({"feedback": [feedback]})),
            ("GET", "/standings", Value::Null),
            ("GET", "/regret", Value::Null),
            ("GET", "/batch", Value::Null),
            ("POST", "/batch/lease", json!({"count": 1})),
            ("POST", "/batch/results", json!({"batch": 1, "results": []})),
        ] {
            let path = format!("/v1/experiments/{name}{rest}");
            let headers = [JSON, ("if-match", "*")];
            let answer =
                untouched.server.send(method, &path, &headers, body.to_string().into_bytes()).await;
            answer.problem(ProblemKind::ExperimentNotFound);
        }
    }
    // Bytes that are not UTF-8 are not a name either.
    let answer = untouched.server.get("/v1/experiments/%ff").await;
    let problem = answer.problem(ProblemKind::InvalidRequest);
    assert_has(&problem["errors"][0], json!({"in": "path", "name": "name"}));
    untouched.assert().await;
}
