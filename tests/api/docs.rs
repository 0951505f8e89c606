//! The API description, as a file and as pages.

use std::collections::BTreeSet;
use std::io::Read as _;

use dueling_bandits::PolicySpec;
use dueling_bandits::parameters::Values;
use flate2::read::GzDecoder;
use rankduel::http::{self, ProblemKind, ShellSettings};
use rankduel_engine::access::ApiKeys;
use serde_json::{Value, json};

use crate::support::Kind;
use crate::support::server::Api;

/// The assets that the page at `/docs` loads: path, type, and whether they are compressed for
/// clients that accept it.
const ASSETS: [(&str, &str, bool); 4] = [
    ("/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8", true),
    ("/docs/swagger-ui.css", "text/css; charset=utf-8", true),
    ("/docs/initializer.js", "text/javascript; charset=utf-8", false),
    ("/docs/style.css", "text/css; charset=utf-8", false),
];

fn document() -> Value {
    serde_json::to_value(http::description()).expect("JSON")
}

/// Each text between `before` and `after`.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

#[test]
fn the_openapi_file_matches_the_program() {
    let file = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.yaml"))
        .expect("openapi.yaml");
    let program = http::yaml(&http::description()).expect("YAML");
    let differs = file.lines().zip(program.lines()).position(|(file, program)| file != program);
    assert!(
        file == program,
        "openapi.yaml is not what the program says (first difference in line {}); mend it with\n\n    \
         cargo run -- openapi > openapi.yaml\n",
        differs.unwrap_or_else(|| file.lines().count().min(program.lines().count())) + 1
    );
}

/// A document without what its YAML leaves out or writes in other lines.
fn without_lines(mut document: Value) -> Value {
    match &mut document {
        Value::Object(members) => {
            members.remove("propertyNames");
            for (name, member) in members {
                *member = match member.take() {
                    Value::String(text) if name == "description" => {
                        text.split_whitespace().collect()
                    }
                    member => without_lines(member),
                };
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| *item = without_lines(item.take()));
        }
        _ => {}
    }
    document
}

#[test]
fn the_yaml_has_the_whole_description() {
    let yaml = http::yaml(&http::description()).expect("YAML");
    let read: Value = yaml_serde::from_str(&yaml).expect("YAML");
    assert_eq!(without_lines(read), without_lines(document()));
}

#[test]
fn every_reference_resolves_and_every_operation_is_described() {
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
            assert!(ids.insert(id.to_owned()), "{method} {path}: {id} is used twice");
            assert!(operation["responses"].get("default").is_some(), "{method} {path}");
            assert_eq!(
                operation["responses"].get("401").is_some(),
                !matches!(path.as_str(), "/livez" | "/readyz")
            );
            for (status, response) in operation["responses"].as_object().unwrap() {
                let problem = status.starts_with(['4', 'd']);
                assert_eq!(
                    problem,
                    response.get("$ref").is_some(),
                    "{method} {path} {status}: not a known problem"
                );
            }
        }
    }
}

#[test]
fn documented_policies_match_the_api() {
    let schema = &document()["components"]["schemas"]["PolicySpec"];
    // Only documented members are allowed, and the kind alone is required.
    assert_eq!(schema["additionalProperties"], false, "{schema:#}");
    assert_eq!(schema["required"], json!(["kind"]), "{schema:#}");
    let members = &schema["properties"];
    let read: Vec<_> = PolicySpec::KINDS.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(members["kind"]["enum"], json!(read), "{schema:#}");
    for (kind, about) in PolicySpec::KINDS {
        for parameter in about.parameters {
            let member = &members[parameter.name];
            let described = member["description"].as_str().unwrap();
            assert!(described.contains(&format!("`{kind}`")), "{kind}: {member:#}");
            assert!(described.contains(parameter.meaning), "{kind}: {member:#}");
            let expected = match parameter.values {
                Values::Number => "number",
                Values::Integer => "integer",
                Values::Boolean => "boolean",
                Values::OneOf(_) => "string",
            };
            let first = member["type"].get(0).unwrap_or(&member["type"]);
            assert_eq!(first, expected, "{kind}: {member:#}");
        }
    }
}

#[tokio::test]
async fn pages_load_local_assets_and_have_no_inline_script_or_style() {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    for (path, script) in [("/docs", true), ("/problems/timeout", false)] {
        let response = api.server.get(path).await;
        assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
        assert_eq!(response.headers()["referrer-policy"], "no-referrer");
        let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(
            policy.starts_with("default-src 'none';") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(policy.contains("script-src 'self';"), script, "{policy}");
        assert_eq!(policy.contains("connect-src 'self';"), script, "{policy}");
        let page = response.text().await.unwrap();
        for inline in ["<script>", "<style", " style=", " onclick", "<form", "<iframe"] {
            assert!(!page.contains(inline), "{path}: {inline}");
        }
        let sources = between(&page, " src=\"", "\"");
        assert_eq!(!sources.is_empty(), script, "{path}");
        for link in between(&page, " href=\"", "\"").into_iter().chain(sources) {
            if link != "data:," {
                assert!(link.starts_with('/') && !link.starts_with("//"), "{path}: {link}");
                assert_eq!(api.server.get(link).await.status(), 200, "{path}: {link}");
            }
        }
    }
    let page = api.server.get("/docs").await.text().await.unwrap();
    for &kind in ProblemKind::ALL {
        assert!(page.contains(&format!("href=\"{}\"", kind.type_uri())), "{kind:?}");
    }
    assert!(page.contains(" id=\"problems\""));
}

#[tokio::test]
async fn assets_are_compressed_once_and_cacheable() {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let get = async |path: &str, headers: &[(&str, &str)]| {
        let mut request = reqwest::Client::new().get(api.server.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap()
    };
    for (path, content_type, compressed) in ASSETS {
        let plain = get(path, &[]).await;
        assert_eq!(plain.status(), 200, "{path}");
        assert_eq!(plain.headers()["content-type"], content_type, "{path}");
        assert_eq!(plain.headers()["cache-control"], "no-cache", "{path}");
        assert_eq!(plain.headers()["vary"], "accept-encoding", "{path}");
        assert!(!plain.headers().contains_key("content-encoding"), "{path}");
        let tag = plain.headers()["etag"].to_str().unwrap().to_owned();
        let plain = plain.bytes().await.unwrap();

        for accepted in ["gzip", "br;q=1.0, GZIP; q=0.5", "deflate, gzip"] {
            let gzip = get(path, &[("accept-encoding", accepted)]).await;
            assert_eq!(gzip.headers()["etag"], tag.as_str(), "{path}");
            let encoding =
                gzip.headers().get("content-encoding").map(|encoding| encoding.to_str().unwrap());
            assert_eq!(encoding, compressed.then_some("gzip"), "{path}: {accepted}");
            if compressed {
                let mut content = Vec::new();
                GzDecoder::new(&*gzip.bytes().await.unwrap()).read_to_end(&mut content).unwrap();
                assert!(content == plain, "{path}: the content differs when compressed");
            }
        }
        for refused in ["br", "gzip;q=0", "gzip; q=0.0, br", ""] {
            let answer = get(path, &[("accept-encoding", refused)]).await;
            assert!(!answer.headers().contains_key("content-encoding"), "{path}: {refused:?}");
            assert_eq!(answer.bytes().await.unwrap().len(), plain.len(), "{path}: {refused:?}");
        }
        let known = get(path, &[("if-none-match", &tag), ("accept-encoding", "gzip")]).await;
        assert_eq!((known.status().as_u16(), known.content_length()), (304, Some(0)), "{path}");
        assert_eq!(get(path, &[("if-none-match", "\"another\"")]).await.status(), 200, "{path}");
    }
}

#[tokio::test]
async fn only_the_files_of_the_reference_need_no_key() {
    let keys = ApiKeys::parse("correct-horse-battery-staple").expect("a key");
    let api = Api::start(Kind::Sqlite, &ShellSettings { keys, ..ShellSettings::default() }).await;
    for (path, ..) in ASSETS {
        assert_eq!(api.server.get(path).await.status(), 200, "{path}");
        assert_eq!(api.server.get(&format!("{path}/x")).await.status(), 401, "{path}");
    }
    for path in
        ["/docs/", "/docs/index.html", "/docs/swagger-ui.js", "/docs/swagger-ui.css.gz", "/docsx"]
    {
        assert_eq!(api.server.get(path).await.status(), 401, "{path}");
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
    assert_eq!(response.text().await.unwrap(), http::yaml(&http::description()).unwrap());
}
