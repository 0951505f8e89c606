//! Promises to callers hold until the next minor version; docs/install.md lists them.
//!
//! `tests/fixtures/promised.txt` has a line for each promise of the version in its first line:
//! operations with their parameters, members of requests and responses, types of problems, metrics.
//! Lines may come; none may go or change without a new minor version. To write it anew, which until
//! 0.1.0 is tagged is also how a change is made:
//!
//! ```text
//! RANKDUEL_KEEP_RELEASED=1 scripts/test --all-features --test api stability::
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use rankduel::http::{ProblemKind, ShellSettings, description};
use serde_json::Value;

use crate::support::Kind;
use crate::support::client::{Client, steady};
use crate::support::server::Api;

type Promises = BTreeSet<String>;

/// The schema that a reference names.
fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

/// A schema in a few words: its reference, or its types with the schemas of its parts.
fn words(schema: &Value) -> String {
    if let Some(name) = referred(schema) {
        return name.to_owned();
    }
    let parts = |key: &str| -> Vec<String> {
        schema[key].as_array().map(|parts| parts.iter().map(words).collect()).unwrap_or_default()
    };
    let mut words_of: Vec<String> =
        ["oneOf", "anyOf", "allOf"].into_iter().flat_map(parts).collect();
    match &schema["type"] {
        Value::String(name) => words_of.push(name.clone()),
        Value::Array(names) => {
            words_of.extend(names.iter().filter_map(Value::as_str).map(Into::into))
        }
        _ => {}
    }
    if schema["items"].is_object() {
        words_of.push(format!("of {}", words(&schema["items"])));
    }
    words_of.join(" ")
}

/// The promises of a schema: a line for each value of a list of them, for each member, and for
/// those of nested objects.
fn members(place: &str, schema: &Value, promises: &mut Promises) {
    let listed = [&schema["enum"], &schema["items"]["enum"]];
    for value in listed.into_iter().filter_map(Value::as_array).flatten() {
        promises.insert(format!("value {place}: {value}"));
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        promises.insert(format!("member {place}.{name}: {}", words(member)));
        members(&format!("{place}.{name}"), member, promises);
    }
    for part in ["oneOf", "anyOf", "allOf"] {
        for (number, part) in schema[part].as_array().into_iter().flatten().enumerate() {
            members(&format!("{place}/{number}"), part, promises);
        }
    }
}

/// Every schema that a body of a request contains.
fn sent(api: &Value) -> BTreeSet<String> {
    fn collect(api: &Value, value: &Value, found: &mut BTreeSet<String>) {
        if let Some(name) = referred(value)
            && found.insert(name.to_owned())
        {
            collect(api, &api["components"]["schemas"][name], found);
        }
        match value {
            Value::Object(object) => object.values().for_each(|value| collect(api, value, found)),
            Value::Array(values) => values.iter().for_each(|value| collect(api, value, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    for operation in api["paths"].as_object().into_iter().flatten().flat_map(|(_, path)| {
        path.as_object().into_iter().flatten().map(|(_, operation)| operation)
    }) {
        collect(api, &operation["requestBody"], &mut found);
    }
    found
}

fn of_the_api(promises: &mut Promises) {
    let api = serde_json::to_value(description()).expect("JSON");
    for (path, operations) in api["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            promises.insert(format!("operation {method} {path}"));
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let parameter = match parameter["$ref"].as_str() {
                    Some(reference) => api.pointer(&reference[1..]).expect("a parameter"),
                    None => parameter,
                };
                let (place, name) = (&parameter["in"], &parameter["name"]);
                let needed = parameter["required"] == true;
                promises
                    .insert(format!("parameter {method} {path} {place} {name} needed: {needed}"));
            }
            for (status, response) in operation["responses"].as_object().into_iter().flatten() {
                for (kind, content) in response["content"].as_object().into_iter().flatten() {
                    let schema = words(&content["schema"]);
                    promises.insert(format!("response {method} {path} {status} {kind}: {schema}"));
                }
            }
        }
    }
    for (name, schema) in api["components"]["schemas"].as_object().expect("schemas") {
        members(name, schema, promises);
    }
    // A caller must not have to send more.
    for name in sent(&api) {
        let needed = &api["components"]["schemas"][&name]["required"];
        promises.insert(format!("request {name} needs {needed}"));
    }
}

async fn of_the_metrics(promises: &mut Promises) {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let client = Client::new(&api.server.url(""));
    // some metrics are those of an experiment
    client.create(&steady("search", &["a", "b"])).await;
    let accept = [("accept", "application/openmetrics-text")];
    let text = client.send("GET", "/metrics", &accept, Vec::new()).await.text();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        promises.insert(format!("metric {line}"));
    }
}

async fn promises() -> Promises {
    let mut promises = Promises::new();
    of_the_api(&mut promises);
    for kind in ProblemKind::ALL {
        promises.insert(format!("problem {} {}", kind.slug(), kind.status().as_u16()));
    }
    of_the_metrics(&mut promises).await;
    promises
}

#[tokio::test]
async fn what_was_promised_is_kept() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/promised.txt");
    let version = env!("CARGO_PKG_VERSION").rsplit_once('.').expect("three numbers").0;
    let now = promises().await;
    if std::env::var_os("RANKDUEL_KEEP_RELEASED").is_some() {
        let lines = now.iter().fold(format!("{version}\n"), |text, line| text + line + "\n");
        std::fs::write(&path, lines).expect("a file");
    }
    let kept = std::fs::read_to_string(&path).expect("the promises");
    let mut lines = kept.lines();
    assert_eq!(lines.next(), Some(version), "of a new minor version; write {path:?} anew");
    let broken: Vec<&str> = lines.filter(|line| !now.contains(*line)).collect();
    assert!(
        broken.is_empty(),
        "{version} promised these, which are gone or changed: give the new behaviour another name, \
         or the program a new minor version. Until 0.1.0 is tagged, run again with \
         RANKDUEL_KEEP_RELEASED=1.\n{}",
        broken.join("\n")
    );
}
