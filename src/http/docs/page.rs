//! The reference page: every operation, schema and problem of the OpenAPI document.

use maud::{Markup, html};
use serde_json::Value;

use super::{schema, text};
use crate::http::openapi;
use crate::http::problem::{PROBLEM_JSON, ProblemKind};

/// In the order in which they are shown at one path.
const METHODS: [&str; 8] = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];

/// One operation of the document.
struct Operation<'a> {
    method: &'static str,
    path: &'a str,
    body: &'a Value,
}

impl Operation<'_> {
    fn anchor(&self) -> String {
        let path: String = self
            .path
            .chars()
            .filter(|c| !matches!(c, '{' | '}'))
            .map(|c| if c == '/' { '-' } else { c })
            .collect();
        format!("{}{path}", self.method)
    }

    fn str(&self, key: &str) -> Option<&str> {
        self.body.get(key)?.as_str()
    }

    fn has_tag(&self, tag: &str) -> bool {
        array(self.body, "tags").any(|own| own.as_str() == Some(tag))
    }
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn object<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    value
        .get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value))
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    object(document, "paths")
        .flat_map(|(path, item)| {
            METHODS.iter().filter_map(move |&method| {
                Some(Operation { method, path, body: item.get(method)? })
            })
        })
        .collect()
}

/// Tags in the order of the document, then those that it does not describe, each with its
/// description.
fn tags<'a>(document: &'a Value, operations: &[Operation<'a>]) -> Vec<(&'a str, &'a str)> {
    let mut tags: Vec<(&str, &str)> = array(document, "tags")
        .filter_map(|tag| {
            Some((
                tag.get("name")?.as_str()?,
                tag.get("description").and_then(Value::as_str).unwrap_or(""),
            ))
        })
        .collect();
    for operation in operations {
        for tag in array(operation.body, "tags").filter_map(Value::as_str) {
            if !tags.iter().any(|(known, _)| *known == tag) {
                tags.push((tag, ""));
            }
        }
    }
    tags.retain(|(tag, _)| operations.iter().any(|operation| operation.has_tag(tag)));
    tags
}

/// The whole page.
pub(crate) fn reference(document: &Value) -> Markup {
    let operations = operations(document);
    let tags = tags(document, &operations);
    let components = &document["components"]["schemas"];
    let info = &document["info"];
    let body = html! {
        a.skip href="#main" { "Skip to the operations" }
        header {
            h1 { "rankduel " small { "API " (info["version"].as_str().unwrap_or_default()) } }
            (text::block(info["description"].as_str().unwrap_or_default()))
            p {
                "For machines: " a href="/openapi.yaml" { "openapi.yaml" } ". In the examples, " code { "$RANKDUEL" }
                " is the server's address, such as " code { "http://127.0.0.1:7171" } ", and " code { "$KEY" }
                " one of its API keys; a server without keys needs no " code { "Authorization" } " header."
            }
        }
        div.columns {
            nav aria-label="Contents" {
                @for (tag, _) in &tags {
                    p.tag { (tag) }
                    ul {
                        @for operation in operations.iter().filter(|operation| operation.has_tag(tag)) {
                            li { a href={ "#" (operation.anchor()) } {
                                (operation.str("summary").unwrap_or(operation.path))
                            } }
                        }
                    }
                }
                ul {
                    li { a href="#schemas" { "Schemas" } }
                    li { a href="#problems" { "Problems" } }
                }
            }
            main #main tabindex="-1" {
                @for (tag, description) in &tags {
                    section {
                        h2 { (tag) }
                        (text::block(description))
                        @for operation in operations.iter().filter(|operation| operation.has_tag(tag)) {
                            (article(operation, components, &document["components"]["responses"]))
                        }
                    }
                }
                section #schemas {
                    h2 { "Schemas" }
                    @for (name, component) in object(&document["components"], "schemas") {
                        article #(schema::anchor(name)) {
                            h3 { (name) }
                            @if let Some(description) = component.get("description").and_then(Value::as_str) {
                                (text::block(description))
                            }
                            (schema::fields(component))
                        }
                    }
                }
                section #problems {
                    h2 { "Problems" }
                    p {
                        "Whatever goes wrong is answered with " code { (PROBLEM_JSON) } ", a "
                        a href={ "#" (schema::anchor("Problem")) } { "Problem" } ". Its " code { "type" }
                        " is one of these, and the path of a page that says what to do."
                    }
                    dl {
                        @for &kind in ProblemKind::ALL {
                            dt { a href=(kind.type_uri()) { (kind.slug()) } " " span.kind { (kind.status().as_u16()) } }
                            dd { p { (text::inline(kind.meaning())) } }
                        }
                    }
                }
            }
        }
    };
    super::shell("rankduel API", &body)
}

/// The response itself, where the document only refers to one.
fn resolve<'a>(response: &'a Value, responses: &'a Value) -> &'a Value {
    schema::reference(response).and_then(|name| responses.get(name)).unwrap_or(response)
}

fn article(operation: &Operation<'_>, components: &Value, responses: &Value) -> Markup {
    let json = |content: &Value| -> Option<Value> {
        let (media_type, media) = object(content, "content").next()?;
        if !media_type.ends_with("json") {
            return None;
        }
        let given = media.get("example").cloned();
        let named = || {
            object(media, "examples").next().and_then(|(_, example)| example.get("value").cloned())
        };
        given.or_else(named).or_else(|| Some(schema::example(media.get("schema")?, components)))
    };
    let request = operation.body.get("requestBody");
    let resolved = object(operation.body, "responses")
        .map(|(status, response)| (status, resolve(response, responses)));
    let (problems, answers): (Vec<_>, Vec<_>) = resolved.partition(|(_, response)| {
        response.get("content").is_some_and(|content| content.get(PROBLEM_JSON).is_some())
    });
    html! {
        article #(operation.anchor()) {
            h3 {
                span class={ "method " (operation.method) } { (operation.method.to_uppercase()) }
                " " code { (breakable(operation.path)) }
            }
            @if let Some(summary) = operation.str("summary") { p.summary { (text::inline(summary)) } }
            @if let Some(description) = operation.str("description") { (text::block(description)) }
            @let parameters: Vec<_> = array(operation.body, "parameters").collect();
            @if !parameters.is_empty() {
                h4 { "Parameters" }
                dl {
                    @for parameter in parameters {
                        dt {
                            code { (parameter["name"].as_str().unwrap_or_default()) } " "
                            span.kind {
                                "in " (parameter["in"].as_str().unwrap_or_default())
                                @if let Some(schema) = parameter.get("schema") { ", " (schema::kind(schema)) }
                            }
                            @if parameter["required"] != Value::Bool(true) { " " span.optional { "optional" } }
                        }
                        dd { @if let Some(description) = parameter.get("description").and_then(Value::as_str) {
                            (text::block(description))
                        } }
                    }
                }
            }
            @if let Some(request) = request {
                h4 { "Request" }
                (content(request))
            }
            details open {
                summary { "Example call" }
                pre tabindex="0" { code { (curl(operation, request.and_then(json).as_ref())) } }
            }
            @for (status, response) in answers {
                h4 { "Answer " (status) }
                @if let Some(description) = response.get("description").and_then(Value::as_str) {
                    (text::block(description))
                }
                (content(response))
                @if let Some(example) = json(response) {
                    details {
                        summary { "Example answer" }
                        pre tabindex="0" { code { (format!("{example:#}")) } }
                    }
                }
            }
            @if !problems.is_empty() {
                details {
                    summary { "Problems" }
                    ul.problems {
                        @for (_, response) in problems {
                            @for kind in openapi::named(response["description"].as_str().unwrap_or_default()) {
                                li { code { (kind.status().as_u16()) } " " a href=(kind.type_uri()) { (kind.title()) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The media types of a request or an answer, and what they hold.
fn content(of: &Value) -> Markup {
    html! {
        @for (media_type, media) in object(of, "content") {
            p {
                code { (media_type) }
                @if let Some(schema) = media.get("schema") { ": " (schema::kind(schema)) }
            }
        }
    }
}

/// A path that may be broken after each slash.
fn breakable(path: &str) -> Markup {
    html! {
        @for (index, part) in path.split('/').enumerate() {
            @if index > 0 { "/" wbr; }
            (part)
        }
    }
}

fn curl(operation: &Operation<'_>, body: Option<&Value>) -> String {
    use std::fmt::Write as _;

    let mut call = "curl".to_owned();
    // Writing to a string does not fail.
    if operation.method != "get" {
        let _ = write!(call, " -X {}", operation.method.to_uppercase());
    }
    let _ = write!(call, " \"$RANKDUEL{}\"", operation.path);
    if !crate::http::auth::is_open(operation.path) {
        call.push_str(" \\\n  -H \"Authorization: Bearer $KEY\"");
    }
    for parameter in array(operation.body, "parameters") {
        if parameter["in"] == "header" && parameter["required"] == Value::Bool(true) {
            let value = parameter.get("example").and_then(Value::as_str).unwrap_or("…");
            let _ = write!(
                call,
                " \\\n  -H '{}: {value}'",
                parameter["name"].as_str().unwrap_or_default()
            );
        }
    }
    if let Some(body) = body {
        let text = format!("{body:#}").replace('\'', "'\\''");
        let _ = write!(call, " \\\n  -H 'Content-Type: application/json' \\\n  -d '{text}'");
    }
    call
}
