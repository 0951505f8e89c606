//! The description of the API, for machines and for people.

use std::collections::BTreeSet;

use base64::Engine as _;
use dueling_bandits::PolicySpec;
use rankduel::http::{self, ProblemKind, ShellSettings};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::support::Kind;
use crate::support::server::Api;

fn document() -> Value {
    serde_json::to_value(http::description()).expect("JSON")
}

/// What stands between `before` and `after`, each time.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

#[test]
fn the_file_is_what_the_program_says() {
    let file = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.yaml"))
        .expect("openapi.yaml");
    let program = http::description().to_yaml().expect("YAML");
    let differs = file.lines().zip(program.lines()).position(|(file, program)| file != program);
    assert!(
        file == program,
        "openapi.yaml is not what the program says (first difference in line {}); mend it with\n\n    \
         cargo run -- openapi > openapi.yaml\n",
        differs.unwrap_or_else(|| file.lines().count().min(program.lines().count())) + 1
    );
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_is_described() {
    let document = document();
    for reference in between(&document.to_string(), "\"$ref\":\"#", "\"") {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
    assert_eq!(document["info"]["title"], "rankduel");
    assert_eq!(document["info"].get("contact"), None);
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let tag = operation["tags"][0].as_str().unwrap_or_default();
            let described = document["tags"]
                .as_array()
                .unwrap()
                .iter()
                .any(|known| known["name"].as_str() == Some(tag));
            assert!(described, "{method} {path}: the tag {tag:?} is not described");
            let summary = operation["summary"].as_str().unwrap_or_default();
            assert!(!summary.is_empty() && !summary.ends_with('.'), "{method} {path}: {summary:?}");
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{method} {path}: {id} is taken");
            for status in ["431", "500", "504"] {
                assert!(operation["responses"].get(status).is_some(), "{method} {path}: {status}");
            }
            assert_eq!(
                operation["responses"].get("401").is_some(),
                !matches!(path.as_str(), "/livez" | "/readyz")
            );
            for (status, response) in operation["responses"].as_object().unwrap() {
                let problem = status.starts_with(['4', '5']);
                assert_eq!(
                    problem,
                    response.get("$ref").is_some(),
                    "{method} {path} {status}: no known problem"
                );
            }
        }
    }
}

#[test]
fn policies_have_the_names_that_the_api_reads() {
    let schemas = &document()["components"]["schemas"];
    let schema = &schemas["PolicySpec"];
    let forms = schema["oneOf"].as_array().unwrap();
    let described: Vec<&str> = forms
        .iter()
        .filter_map(|form| {
            let form = &schemas[form["$ref"].as_str()?.rsplit('/').next()?];
            // nothing but what is described, and the kind is described
            assert_eq!(form["additionalProperties"], false, "{form:#}");
            assert!(form["required"].as_array()?.contains(&"kind".into()), "{form:#}");
            form["properties"]["kind"]["enum"][0].as_str()
        })
        .collect();
    let read: Vec<&str> = PolicySpec::KINDS.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(described, read, "{schema:#}");
}

#[tokio::test]
async fn the_page_shows_everything_and_needs_nothing_else() {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let response = api.server.get("/docs").await;
    assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    let page = response.text().await.unwrap();

    let style = between(&page, "<style>", "</style>");
    assert_eq!(style.len(), 1);
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(style[0]));
    assert!(policy.contains(&format!("style-src 'sha256-{hash}'")), "{policy}");
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    for needless in
        ["<script", "<form", "<iframe", " src=", " style=", " onclick", "url(", "@import"]
    {
        assert!(!page.contains(needless), "{needless}");
    }

    let ids: Vec<&str> = between(&page, " id=\"", "\"");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len());
    for link in between(&page, "href=\"", "\"") {
        match link.strip_prefix('#') {
            Some(anchor) => assert!(unique.contains(anchor), "{link}"),
            None if link == "data:," => {}
            None => assert_eq!(api.server.get(link).await.status(), 200, "{link}"),
        }
    }
    for (path, item) in document()["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let anchor = format!("{method}{}", path.replace('/', "-").replace(['{', '}'], ""));
            assert!(unique.contains(anchor.as_str()), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn every_problem_has_a_page_at_its_type() {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let mut slugs = BTreeSet::new();
    for &kind in ProblemKind::ALL {
        assert!(slugs.insert(kind.slug()), "{kind:?}");
        assert_eq!(ProblemKind::of_slug(kind.slug()), Some(kind));
        let response = api.server.get(&kind.type_uri()).await;
        assert_eq!(response.status(), 200);
        let page = response.text().await.unwrap();
        assert!(
            page.contains("What to do") && page.contains(&kind.status().as_u16().to_string()),
            "{kind:?}"
        );
    }
    assert_eq!(api.server.get("/problems/no-such-problem").await.status(), 404);
}

#[tokio::test]
async fn the_description_is_served() {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let response = api.server.get("/openapi.yaml").await;
    assert_eq!(response.headers()["content-type"], "application/yaml");
    assert_eq!(response.text().await.unwrap(), http::description().to_yaml().unwrap());
}
