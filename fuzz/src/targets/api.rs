//! The whole API except the socket: every response is one that the API promises, and the service
//! keeps running.
//!
//! An input is one or more requests, separated by a line `%%`. A request is `METHOD PATH`, headers,
//! an empty line and a body. `$duel` and `$page` are replaced with issued duel ids, without and
//! with a page, because the fuzzer cannot guess a signed id.

use std::cell::RefCell;

use axum::body::Body;
use axum::http::{Method, Request, header};
use serde_json::{Value, json};

use super::scene::{self, Scene, get};

/// Largest number of requests in one input.
const REQUESTS_MAX: usize = 8;
/// Number of requests with an effect after which the service restarts on an empty database.
const CHANGES_MAX: u32 = 500;

/// A service with experiments, and the duels that it issued.
struct Api {
    scene: Scene,
    duel: String,
    page: String,
    changes: u32,
}

thread_local! {
    static API: RefCell<Option<Api>> = const { RefCell::new(None) };
}

/// The input is a list of requests.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    API.with_borrow_mut(|kept| {
        let mut api = kept.take().unwrap_or_else(Api::start);
        for request in text.split("\n%%\n").take(REQUESTS_MAX) {
            api.send(request);
        }
        // the service still runs, and still has its experiment
        let (status, _) = api.scene.answer(get("/v1/experiments/search/statistics"));
        assert_eq!(status, 200, "the experiment is gone");
        if api.changes < CHANGES_MAX {
            *kept = Some(api);
        } else {
            api.scene.stop();
        }
    });
}

fn post(path: &str, body: &Value) -> Request<Body> {
    scene::send(Method::POST, path, body)
}

impl Api {
    fn start() -> Self {
        let scene = Scene::start();
        let mut api = Self { scene, duel: String::new(), page: String::new(), changes: 0 };
        let batches = json!({"kind": "pcomp", "horizon": 1000, "batches": 2});
        for (name, policy) in [("search", json!({"kind": "d-ts"})), ("batches", batches)] {
            let body =
                json!({"name": name, "rankers": ["a", "b", "c"], "policy": policy, "seed": 1});
            api.scene.succeeds(post("/v1/experiments", &body));
        }
        api.duel = api.issued_duel_id(&json!({}));
        let rankings = json!({"a": ["1", "2", "3"], "b": ["3", "2", "4"], "c": ["2", "1"]});
        api.page = api.issued_duel_id(&json!({"rankings": rankings, "length": 3}));
        api
    }

    /// The `duel_id` of a new duel that is not a self-duel.
    fn issued_duel_id(&self, body: &Value) -> String {
        loop {
            let duel = self.scene.succeeds(post("/v1/experiments/search/next-duel", body));
            if duel["self_duel"] == false {
                return duel["duel_id"].as_str().expect("an id").to_owned();
            }
        }
    }

    /// Send the request in `text`, if it is one.
    fn send(&mut self, text: &str) {
        let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let Some((method, path)) = lines.next().and_then(|line| line.split_once(' ')) else {
            return;
        };
        let fill = |text: &str| text.replace("$duel", &self.duel).replace("$page", &self.page);
        let mut request = Request::builder().method(method).uri(fill(path));
        let mut typed = false;
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            typed |= name.eq_ignore_ascii_case("content-type");
            request = request.header(name, value);
        }
        if !typed {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let Ok(request) = request.body(Body::from(fill(body))) else { return };
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let (status, _) = self.scene.answer(request);
        if !reads && status < 300 {
            self.changes += 1;
        }
    }
}
