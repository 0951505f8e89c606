//! The responses that the API description allows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::client::Answer;

/// The allowed problems, by slug, of each operation (`POST /v1/experiments/{name}/feedback`) and
/// status; the set is empty if the response is not a problem.
#[derive(Debug)]
pub struct Documented(BTreeMap<(String, u16), BTreeSet<String>>);

impl Documented {
    /// From the program's own description; another test compares `openapi.yaml` with it.
    pub fn new() -> Self {
        let api = serde_json::to_value(rankduel::http::description()).expect("JSON");
        let mut answers = BTreeMap::new();
        for (path, item) in api["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("operations") {
                let Some(responses) = operation["responses"].as_object() else { continue };
                for (status, response) in responses {
                    let operation = format!("{} {path}", method.to_uppercase());
                    let statuses = match status.as_str() {
                        "default" => vec![431, 500, 503, 504],
                        status => vec![status.parse().expect("a status")],
                    };
                    for status in statuses {
                        answers.insert((operation.clone(), status), slugs(&api, response));
                    }
                }
            }
        }
        Self(answers)
    }

    /// The error in this response to this operation, if any. A server failure (500) is documented,
    /// and still an error.
    pub fn wrong(&self, operation: &str, answer: &Answer) -> Option<String> {
        let described = || format!("{}: {} {}", answer.request, answer.status, answer.text());
        let Some(slugs) = self.0.get(&(operation.to_owned(), answer.status)) else {
            return Some(format!("undocumented: {}", described()));
        };
        if answer.status == 500 {
            return Some(format!("a server failure: {}", described()));
        }
        if answer.status < 400 {
            return None;
        }
        let problem: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
        let slug = problem["type"]
            .as_str()
            .and_then(|uri| uri.strip_prefix("/problems/"))
            .unwrap_or_default();
        (!slugs.contains(slug)).then(|| format!("undocumented problem: {}", described()))
    }
}

/// The problems that a response may have, from its description.
fn slugs(api: &Value, response: &Value) -> BTreeSet<String> {
    let response = match response["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'))
    {
        Some(pointer) => api.pointer(pointer).expect("the referenced response"),
        None => response,
    };
    if response["content"].get("application/problem+json").is_none() {
        return BTreeSet::new();
    }
    let text = response["description"].as_str().expect("a description");
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
