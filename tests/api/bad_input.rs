//! Invalid input is refused with the right problem and leaves no trace.
//!
//! The tests are tables of cases: the request, the expected problem, and where it points.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Answer, JSON, assert_has, steady};
use crate::support::service::Server;

on_sqlite! {
    bodies_that_are_not_json_are_refused
    bodies_that_are_not_objects_are_refused
    other_content_types_are_refused
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
        let server = Server::running(&database, &steady("search", &["a", "b", "c"])).await;
        let duel = server.pair("search").await;
        server.answer("search", &duel, "left").await;
        let rows = database.count("select count(*) from log").await;
        let standings = server.standings("search").await;
        let list = server.get("/v1/experiments").await.json(200);
        Self { server, database, rows, standings, list }
    }

    async fn send(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        self.server.send(method, path, &[JSON, ("if-match", "*")], body.to_vec()).await
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
            let answer = untouched.send(method, path, body).await;
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
        let bodies = r#"[], [{}], ["new", ["a", "b"]], ["paused", null], [1], [1, []], null, true,
            7, -1.5, "search", 18446744073709551616"#;
        for body in serde_json::from_str::<Vec<Value>>(&format!("[{bodies}]")).expect("JSON") {
            let answer = untouched.send(method, path, body.to_string().as_bytes()).await;
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
        for (kind, status) in [
            ("text/plain", 415),
            ("application/x-www-form-urlencoded", 415),
            ("text/json", 415),
            ("", 415),
            ("json", 415),
            ("application/jsonx", 415),
            ("application/json; charset=utf-8", 422),
            ("APPLICATION/JSON", 422),
            ("application/vnd.search+json", 422),
        ] {
            let headers = [("content-type", kind), ("if-match", "*")];
            let answer = server.send(method, path, &headers, b"{}".to_vec()).await;
            assert_eq!(answer.status, status, "{kind}: {}", answer.text());
        }
    }
    untouched.assert().await;
}

/// A change of one value of a body (or its removal), and the expected pointer of the problem.
type Change = (String, Option<Value>, String);

/// Changes, one line for each place: `MEMBER = JSON, JSON, … -> POINTER` for values that are
/// refused there, and `MEMBER -> POINTER` for a body without this member.
fn changes(lines: &str) -> Vec<Change> {
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    let of_line = |line: &str| {
        let (change, pointer) = line.split_once("->").expect("a pointer");
        let (change, pointer) = (change.trim(), pointer.trim().to_owned());
        let Some((member, values)) = change.split_once(" = ") else {
            return vec![(change.to_owned(), None, pointer)];
        };
        let values: Vec<Value> = serde_json::from_str(&format!("[{values}]")).expect(line);
        values.into_iter().map(|one| (member.to_owned(), Some(one), pointer.clone())).collect()
    };
    lines.flat_map(of_line).collect()
}

fn change(member: &str, value: Value, pointer: &str) -> Change {
    (member.to_owned(), Some(value), pointer.to_owned())
}

fn changed(body: &Value, field: &str, value: &Option<Value>) -> Value {
    let mut body = body.clone();
    let object = body.as_object_mut().expect("an object");
    match value {
        Some(value) => object.insert(field.into(), value.clone()),
        None => object.remove(field),
    };
    body
}

impl Untouched {
    /// Each change alone must be refused with this pointer.
    async fn refuses(&self, method: &str, path: &str, good: &Value, changes: &[Change]) {
        for (field, value, pointer) in changes {
            let body = changed(good, field, value).to_string();
            let answer = self.send(method, path, body.as_bytes()).await;
            let shown = value.as_ref().map_or("nothing".to_owned(), Value::to_string);
            let shown: String = shown.chars().take(80).collect();
            assert_eq!(answer.status, 422, "{field} = {shown}: {}", answer.text());
            answer.problem_at(ProblemKind::InvalidRequest, pointer);
        }
    }
}

async fn invalid_experiments_are_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    let good = json!({"name": "new", "rankers": ["a", "b"], "policy": {"kind": "uniform"}});
    let mut cases = changes(
        r#"
        name ->
        rankers ->
        colour = "red" -> /colour
        Name = "new" -> /Name
        name = "", "A", "Search", "a b", "é", ".a", "-a", "_a", "a/b", "a\u0000b", "a\nb" -> /name
        name = "a%20b", "ａ", "a'b", "../a", null, 7, ["a"], {"a": 1}, true -> /name
        rankers = [], ["r0"], null, "ab", {"a": 1, "b": 2}, 3 -> /rankers
        rankers = ["a", 2], ["a", null], ["a", ["b"]], ["a", true], ["a", ""] -> /rankers/1
        rankers = ["a", {"id": "a"}], ["a", "b\u0000"], ["a", "b\n"] -> /rankers/1
        rankers = ["a", {"description": "b"}] -> /rankers/1
        rankers = ["a", "b", "a"] -> /rankers/2
        rankers = ["a", {"id": null}], ["a", {"id": 7}] -> /rankers/1/id
        rankers = ["a", {"id": "b", "description": 7}] -> /rankers/1/description
        rankers = ["a", {"id": "b", "colour": "red"}] -> /rankers/1/colour
        policy = "uniform", ["uniform"] -> /policy
        policy = {}, {"kind": null}, {"kind": 7} -> /policy/kind
        policy = {"kind": "best"}, {"kind": "Uniform"} -> /policy/kind
        policy = {"kind": "uniform", "alpha": 0.5} -> /policy/alpha
        policy = {"kind": "uniform", "a/b~c": 0.5} -> /policy/a~1b~0c
        policy = {"kind": "d-ts-verdict", "margin": 0.02} -> /policy/margin
        policy = {"kind": "d-ts-verdict", "confidence": 0.9} -> /policy/confidence
        policy = {"kind": "pcomp", "horizon": 1000, "batches": 0} -> /policy/batches
        policy = {"kind": "pcomp", "horizon": 1000, "batches": 1001} -> /policy/batches
        policy = {"kind": "pcomp", "horizon": 1000, "elimination": "x"} -> /policy/elimination
        policy = {"kind": "pcomp"} -> /policy/horizon
        ties = "maybe", "Skip", 0.5 -> /ties
        duel_ttl_seconds = 0, -1, 1.5, 1.5e-3, "60", 2592001, 4294967296 -> /duel_ttl_seconds
        seed = -1, 1.5, "7", 1.8446744073709552e19, [1] -> /seed
        "#,
    );
    let ids = |count: usize| json!((0..count).map(|i| format!("r{i}")).collect::<Vec<_>>());
    let long = json!(["a", {"id": "b", "description": "x".repeat(1001)}]);
    cases.extend([
        change("name", json!("a".repeat(65)), "/name"),
        change("rankers", ids(1025), "/rankers"),
        change("rankers", json!(["a", "b".repeat(129)]), "/rankers/1"),
        change("rankers", long, "/rankers/1/description"),
    ]);
    let horizons = json!([null, "1000", -1, 0, 1, 1000.5, 2_000_000_001_u64, u64::MAX]);
    for horizon in horizons.as_array().expect("horizons") {
        let policy = json!({"kind": "pcomp", "horizon": horizon});
        cases.push(change("policy", policy, "/policy/horizon"));
    }
    untouched.refuses("POST", "/v1/experiments", &good, &cases).await;

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
    let cases = changes(
        r#"
        status -> /winner
        status = null -> /status
        status = "", "stopped", "Paused", 1, ["paused"] -> /status
        status = "paused" -> /winner
        winner = "z", "", 0, {"id": "a"} -> /winner
        name = "other" -> /name
        rankers = ["a", "b"] -> /rankers
        control = null -> /control
        "#,
    );
    untouched.refuses("PATCH", "/v1/experiments/search", &good, &cases).await;
    untouched.assert().await;
}

async fn invalid_feedback_is_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    let duel = untouched.server.pair("search").await;
    let good = json!({"duel_id": duel["duel_id"], "outcome": "left"});
    let path = "/v1/experiments/search/feedback";
    let mut cases = changes(
        r#"
        duel_id ->
        duel_id = null, 7 -> /duel_id
        outcome -> /outcome
        outcome = "", "Left", "a", 1, true, ["left"] -> /outcome
        left_clicks = 1 -> /outcome
        right_clicks = 0 -> /outcome
        clicks = [3, 1] -> /clicks
        experiment = "search" -> /experiment
        "#,
    );
    cases.push(change("duel_id", json!([duel["duel_id"]]), "/duel_id"));
    // With this member, the body would be a list.
    cases.push(change("feedback", json!([]), "/duel_id"));
    untouched.refuses("POST", path, &good, &cases).await;
    let clicks = json!({"duel_id": duel["duel_id"], "left_clicks": 1, "right_clicks": 2});
    let cases = changes(
        r#"
        left_clicks -> /left_clicks
        left_clicks = -1, 1.5, 0.5, "3", 4294967296, [1], true -> /left_clicks
        right_clicks -> /right_clicks
        right_clicks = -1, 1.5, 0.5, "3", 4294967296, [1], true -> /right_clicks
        "#,
    );
    untouched.refuses("POST", path, &clicks, &cases).await;
    let cases = changes(
        r#"
        feedback = null, {}, "left", 1, [] -> /feedback
        atomic = true -> /atomic
        "#,
    );
    untouched.refuses("POST", path, &json!({"feedback": [good]}), &cases).await;
    untouched.assert().await;
}

async fn invalid_results_are_refused(database: TestDatabase) {
    let untouched = Untouched::start(database).await;
    let path = "/v1/experiments/search/batch/results";
    let row = json!({"left": "a", "right": "b", "left_wins": 1, "right_wins": 1, "ties": 0});
    let good = json!({"batch": 1, "results": [row]});
    let mut cases = changes(
        r#"
        batch ->
        batch = null, -1, 1.5, "1", 4294967296, [1] -> /batch
        results ->
        results = null, {"a": 1} -> /results
        results = [null] -> /results/0
        round = 1 -> /round
        "#,
    );
    cases.push(change("results", json!([row, "a"]), "/results/1"));
    cases.push(change("results", json!([row, ["a", "c", 1, 1, 0]]), "/results/1"));
    let of_a_row = changes(
        r#"
        left -> /results/0
        ties -> /results/0
        left = null -> /results/0/left
        right = 1 -> /results/0/right
        left_wins = -1 -> /results/0/left_wins
        right_wins = 0.5 -> /results/0/right_wins
        ties = 4294967296, "0" -> /results/0/ties
        draws = 0 -> /results/0/draws
        "#,
    );
    for (field, value, pointer) in of_a_row {
        cases.push(change("results", json!([changed(&row, &field, &value)]), &pointer));
    }
    untouched.refuses("POST", path, &good, &cases).await;
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
            let answer = untouched.send(method, path, b"{}").await;
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
    let paths = "/v1 /v1/ /v2/experiments /V1/experiments /experiments /v1/experiments/
        /v1//experiments /v1/experiments/search/ /v1/experiments/search/nothing
        /v1/experiments/search/batch/ /v1/experiments/search/batch/nothing
        /v1/experiments/search/next-duel/ /v1/experiments/a/b/c/d /.env
        /v1/experiments/search%2Fstandings";
    for path in paths.split_whitespace() {
        for method in ["GET", "POST"] {
            let answer = untouched.send(method, path, b"{}").await;
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
            let answer = untouched.send(method, &path, body.to_string().as_bytes()).await;
            answer.problem(ProblemKind::ExperimentNotFound);
        }
    }
    // Bytes that are not UTF-8 are not a name either.
    let answer = untouched.server.get("/v1/experiments/%ff").await;
    let problem = answer.problem(ProblemKind::InvalidRequest);
    assert_has(&problem["errors"][0], json!({"in": "path", "name": "name"}));
    untouched.assert().await;
}
