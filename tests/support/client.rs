//! A client of the API that checks the common parts of every response.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rankduel::http::{Operation, ProblemKind, operations};
use rankduel::service::verify::verify;
use rankduel_store::Store;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use serde_json::{Value, json};

/// The longest time that a test waits for an expected condition.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Sends requests to one server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    base: String,
    http: reqwest::Client,
}

/// The response to a request.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
    /// Method and path, for error messages.
    pub request: String,
    path: String,
}

impl Client {
    /// A client of the server at this address, `http://HOST:PORT`. It follows no redirects.
    pub fn new(url: &str) -> Self {
        Self::with_key(url, None)
    }

    /// The same, with this key.
    pub fn with_key(url: &str, key: Option<&str>) -> Self {
        let bearer = |key| HeaderValue::try_from(format!("Bearer {key}")).expect("a key");
        let headers = key.map(|key| (AUTHORIZATION, bearer(key))).into_iter().collect();
        let http = reqwest::Client::builder().timeout(PATIENCE).no_proxy().redirect(Policy::none());
        let http = http.default_headers(headers).build().expect("a client");
        Self { base: url.to_owned(), http }
    }

    /// The server's address.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Send a request with this body, unchanged. The error is a failure to reach the server.
    pub async fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Answer, reqwest::Error> {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = format!("{method} {path}");
        let mut builder = self.http.request(method, format!("{}{path}", self.base)).body(body);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let response = builder.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await?.to_vec();
        let path = path.split('?').next().unwrap_or_default().to_owned();
        let answer = Answer { status, headers, bytes, request, path };
        answer.check_documented();
        Ok(answer)
    }

    /// Send a request with this body, unchanged.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Answer {
        self.try_send(method, path, headers, body)
            .await
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// `GET path`.
    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], Vec::new()).await
    }

    /// `POST path` with this JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[JSON], body.to_string().into_bytes()).await
    }

    /// Create a new experiment. Its answers count as they arrive, unless `body` says otherwise.
    pub async fn create(&self, body: &Value) -> Value {
        let mut body = body.clone();
        if body.get("answer_window_seconds").is_none() {
            body["answer_window_seconds"] = Value::from(0);
        }
        self.post("/v1/experiments", &body).await.json(201)
    }

    /// Change an experiment, whatever its version.
    pub async fn patch(&self, name: &str, body: &Value) -> Answer {
        let path = format!("/v1/experiments/{name}");
        self.send("PATCH", &path, &[JSON, ("if-match", "*")], body.to_string().into_bytes()).await
    }

    /// Request a duel.
    pub async fn next_duel(&self, name: &str) -> Value {
        self.send("POST", &format!("/v1/experiments/{name}/next-duel"), &[], Vec::new())
            .await
            .json(200)
    }

    /// Request duels until one is between two rankers.
    pub async fn pair(&self, name: &str) -> Value {
        for _ in 0..1000 {
            let duel = self.next_duel(name).await;
            if duel["self_duel"] == false {
                return duel;
            }
        }
        panic!("a thousand self-duels in a row");
    }

    /// Post one feedback item or a list of them.
    pub async fn feedback(&self, name: &str, body: &Value) -> Answer {
        self.post(&format!("/v1/experiments/{name}/feedback"), body).await
    }

    /// Answer a duel for the first time, and return its log position.
    pub async fn answer(&self, name: &str, duel: &Value, outcome: &str) -> u64 {
        let body = json!({"duel_id": duel["duel_id"], "outcome": outcome});
        let receipt = self.feedback(name, &body).await.json(200);
        assert_eq!(receipt["status"], "recorded", "{receipt}");
        receipt["position"].as_u64().expect("a position")
    }

    /// Answer a duel for the first time, so that this ranker wins it.
    pub async fn wins(&self, name: &str, duel: &Value, winner: &str) -> u64 {
        self.answer(name, duel, if duel["left"] == winner { "left" } else { "right" }).await
    }

    /// Answer a duel for the first time, so that the ranker whose id comes first wins it.
    pub async fn first_wins(&self, name: &str, duel: &Value) -> u64 {
        let is_left = duel["left"].as_str() < duel["right"].as_str();
        self.answer(name, duel, if is_left { "left" } else { "right" }).await
    }

    /// The experiment, once it is concluded.
    pub async fn concluded(&self, name: &str) -> Value {
        eventually("the conclusion", async || {
            let experiment = self.experiment(name).await;
            (experiment["status"] == "concluded").then_some(experiment)
        })
        .await
    }

    /// Results of all comparisons that are missing in the open batch: each ranker wins half.
    pub async fn missing_results(&self, name: &str) -> Value {
        let batch = self.report(name, "batch").await;
        let pairs = batch["pairs"].as_array().expect("pairs").iter();
        let open = pairs.filter(|pair| pair["needed"] != pair["answered"]);
        let results = open.map(|pair| {
            let [needed, answered] =
                ["needed", "answered"].map(|count| pair[count].as_u64().expect("a count"));
            let left_wins = (needed - answered) / 2;
            json!({"left": pair["left"], "right": pair["right"], "left_wins": left_wins,
                "right_wins": needed - answered - left_wins, "ties": 0})
        });
        json!({"batch": batch["number"], "results": results.collect::<Vec<_>>()})
    }

    /// The pages of the list of experiments, with at most `limit` of them and 2 MiB each.
    pub async fn list(&self, limit: usize) -> Vec<Vec<Value>> {
        let (mut pages, mut path) = (Vec::new(), format!("/v1/experiments?limit={limit}"));
        loop {
            let answer = self.get(&path).await;
            assert!(answer.bytes.len() < 2 * 1024 * 1024, "a page has {}", answer.bytes.len());
            let page = answer.json(200);
            pages.push(page["experiments"].as_array().expect("experiments").clone());
            match page["next"].as_str() {
                Some(next) => path = format!("/v1/experiments?limit={limit}&cursor={next}"),
                None => return pages,
            }
        }
    }

    /// An experiment.
    pub async fn experiment(&self, name: &str) -> Value {
        self.get(&format!("/v1/experiments/{name}")).await.json(200)
    }

    /// A report of an experiment, such as `traffic`.
    pub async fn report(&self, name: &str, report: &str) -> Value {
        self.get(&format!("/v1/experiments/{name}/{report}")).await.json(200)
    }

    /// An experiment's verdict.
    pub async fn verdict(&self, name: &str) -> Value {
        self.report(name, "verdict").await
    }

    /// Assert that no experiment is created from this body, with an error at this place of it.
    pub async fn refuses(&self, body: &Value, pointer: &str) -> Value {
        self.post("/v1/experiments", body).await.problem_at(ProblemKind::InvalidRequest, pointer)
    }

    /// Assert that a change of an experiment is refused, with an error at this place of it.
    pub async fn refuses_change(&self, name: &str, body: &Value, pointer: &str) -> Value {
        self.patch(name, body).await.problem_at(ProblemKind::InvalidRequest, pointer)
    }

    /// Wait until `/metrics` has this: states and alarms are those of the last round.
    pub async fn measures(&self, line: &str) {
        until(line, async || self.get("/metrics").await.text().contains(line)).await;
    }

    /// An experiment's standings.
    pub async fn standings(&self, name: &str) -> Value {
        self.report(name, "standings").await
    }

    /// The log position of an experiment.
    pub async fn position(&self, name: &str) -> u64 {
        self.standings(name).await["position"].as_u64().expect("a position")
    }
}

/// The header of a JSON body.
pub const JSON: (&str, &str) = ("content-type", "application/json");

/// An experiment without its answer, which servers find at different times.
pub fn settings_of(mut experiment: Value) -> Value {
    experiment.as_object_mut().expect("an experiment").remove("answer");
    experiment
}

impl Answer {
    /// Check that the table of operations lists this kind of problem for the request.
    #[track_caller]
    fn check_documented(&self) {
        static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(operations);
        let (method, _) = self.request.split_once(' ').expect("a method");
        let segments: Vec<_> = self.path.split('/').collect();
        let matches = |template: &str| {
            let template: Vec<_> = template.split('/').collect();
            template.len() == segments.len()
                && template.iter().zip(&segments).all(|(template, segment)| {
                    template == segment || template.starts_with('{') && !segment.is_empty()
                })
        };
        let mut operations = OPERATIONS.iter();
        let operation = operations.find(|own| own.method == method && matches(&own.path));
        // without an operation, the path or the method is wrong
        let Some(operation) = operation else { return };
        if self.header("content-type") == Some("application/problem+json") {
            let problem: Value = serde_json::from_slice(&self.bytes).expect("JSON");
            let documented =
                operation.problems.iter().any(|kind| problem["type"] == kind.type_uri());
            assert!(documented, "{}: not documented: {problem}", self.request);
        }
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("ASCII"))
    }

    /// The JSON of the response, which must have this status.
    #[track_caller]
    pub fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.request, self.text());
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.request);
        serde_json::from_slice(&self.bytes).expect("JSON")
    }

    /// The problem in the response: it must be of this kind and have every member of a problem.
    #[track_caller]
    pub fn problem(&self, kind: ProblemKind) -> Value {
        let what = format!("{}: {} {}", self.request, self.status, self.text());
        assert_eq!(self.status, kind.status().as_u16(), "{what}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{what}");
        assert_eq!(self.header("cache-control"), Some("no-store"), "{what}");
        let problem: Value = serde_json::from_slice(&self.bytes).expect("JSON");
        assert_eq!(problem["type"], kind.type_uri(), "{what}");
        assert_eq!(problem["title"], kind.title(), "{what}");
        assert_eq!(problem["status"], self.status, "{what}");
        assert_eq!(problem["instance"], self.path, "{what}");
        assert_eq!(problem["request_id"].as_str(), self.header("x-request-id"), "{what}");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.ends_with(['.', '!', '?']) && detail.len() > 10, "not a sentence: {what}");
        let seconds = self.header("retry-after").map(|seconds| seconds.parse::<u32>());
        let waits = seconds.is_some_and(|seconds| seconds.is_ok_and(|seconds| seconds >= 1));
        assert!(kind.retry_after_seconds().is_none() || waits, "no Retry-After: {what}");
        problem
    }

    /// The problem in the response, whose detail must have this part.
    #[track_caller]
    pub fn problem_saying(&self, kind: ProblemKind, part: &str) -> Value {
        let problem = self.problem(kind);
        assert!(
            problem["detail"].as_str().is_some_and(|it| it.contains(part)),
            "{part}: {problem}"
        );
        problem
    }

    /// The problem in the response, which must point at this place of the request body.
    #[track_caller]
    pub fn problem_at(&self, kind: ProblemKind, pointer: &str) -> Value {
        let problem = self.problem(kind);
        let errors = problem["errors"].as_array().expect("errors");
        let here = |error: &Value| error["in"] == "body" && error["pointer"] == pointer;
        assert!(errors.iter().any(here), "{}: no error at {pointer:?}: {problem}", self.request);
        assert!(
            errors
                .iter()
                .all(|error| error["detail"].as_str().is_some_and(|text| !text.is_empty()))
        );
        problem
    }

    /// The body as text, for error messages.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// An experiment that issues no self-duel for a million duels, one batch of all pairs, and does not
/// conclude by itself. Its log therefore grows only by what the test posts.
pub fn steady(name: &str, rankers: &[&str]) -> Value {
    json!({
        "name": name,
        "rankers": rankers,
        "policy": {"kind": "pcomp", "horizon": 1_000_000, "batches": 1},
        "conclude_at": "never",
    })
}

/// A JSON object with these members in addition, or in place of its own.
pub fn with(mut object: Value, members: Value) -> Value {
    for (name, value) in members.as_object().expect("an object") {
        object[name] = value.clone();
    }
    object
}

/// Assert that `rankduel verify` finds nothing wrong with an experiment.
pub async fn assert_verifies(store: &dyn Store, name: &str) {
    let findings = verify(store, name).await.expect("an answer");
    assert_eq!(findings.wrong, Vec::<String>::new());
}

/// Assert that a JSON object has these members, whatever others it has.
#[track_caller]
pub fn assert_has(found: &Value, members: Value) {
    for (name, expected) in members.as_object().expect("an object") {
        assert_eq!(&found[name], expected, "`{name}` of {found}");
    }
}

/// Poll until `look` finds the expected value. The pauses leave processor time to the code that
/// the test waits for.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    loop {
        ticks.tick().await;
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
    }
}

/// Poll until a condition holds.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    eventually(what, async || holds().await.then_some(())).await;
}
