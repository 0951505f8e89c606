//! Schemas for people: what a value is, its fields, and an example of it.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::text;

/// How deep an example goes before it stops; only a schema that contains itself gets there.
const EXAMPLE_DEPTH_MAX: usize = 8;

/// The name that a reference leads to.
pub(crate) fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

/// The anchor of a component.
pub(crate) fn anchor(name: &str) -> String {
    format!("schema-{name}")
}

/// What a value is, in a few words.
pub(crate) fn kind(schema: &Value) -> Markup {
    if let Some(name) = reference(schema) {
        return html! { a href={ "#" (anchor(name)) } { (name) } };
    }
    for (key, joint) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " with ")] {
        if let Some(parts) = schema.get(key).and_then(Value::as_array) {
            return html! {
                @for (index, part) in parts.iter().enumerate() {
                    @if index > 0 { (joint) }
                    (kind(part))
                }
            };
        }
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return html! {
            @for (index, value) in values.iter().enumerate() {
                @if index > 0 { " or " }
                code { (value) }
            }
        };
    }
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => vec!["any value"],
    };
    html! {
        @for (index, kind_name) in types.iter().enumerate() {
            @if index > 0 { " or " }
            @match (*kind_name, schema.get("items"), schema.get("additionalProperties")) {
                ("array", Some(items), _) => { "array of " (kind(items)) },
                ("object", _, Some(values)) if values.is_object() => { "object of " (kind(values)) },
                _ => (kind_name),
            }
        }
        @let limits = limits(schema);
        @if !limits.is_empty() { ", " (limits) }
    }
}

/// Bounds, format and default.
fn limits(schema: &Value) -> String {
    let words = [
        ("format", ""),
        ("minimum", "at least "),
        ("exclusiveMinimum", "above "),
        ("maximum", "at most "),
        ("exclusiveMaximum", "below "),
        ("minLength", "min. length "),
        ("maxLength", "max. length "),
        ("minItems", "min. items "),
        ("maxItems", "max. items "),
        ("pattern", "pattern "),
        ("default", "default "),
    ];
    let said = words.iter().filter_map(|(key, word)| {
        let value = match schema.get(key)? {
            Value::String(text) if *key != "default" => text.clone(),
            other => other.to_string(),
        };
        Some(format!("{word}{value}"))
    });
    said.collect::<Vec<_>>().join(", ")
}

/// The fields of an object, or the forms that a value can have.
pub(crate) fn fields(schema: &Value) -> Markup {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    html! {
        @if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            dl {
                @for (name, property) in properties {
                    dt {
                        code { (name) } " "
                        span.kind { (kind(property)) }
                        @if !required.contains(&name.as_str()) { " " span.optional { "optional" } }
                    }
                    dd { @if let Some(description) = property.get("description").and_then(Value::as_str) {
                        (text::block(description))
                    } }
                }
            }
        } @else {
            @let forms = ["oneOf", "anyOf", "allOf"].iter().find_map(|key| schema.get(key)?.as_array());
            @if let Some(forms) = forms {
                @let all = schema.get("allOf").is_some();
                p { @if all { "All of:" } @else { "One of:" } }
                ul.forms {
                    @for form in forms {
                        li {
                            @if let Some(description) = form.get("description").and_then(Value::as_str) {
                                (text::block(description))
                            }
                            @if form.get("properties").is_some() || form.get("allOf").is_some() {
                                (fields(form))
                            } @else {
                                p { (kind(form)) }
                            }
                        }
                    }
                }
            } @else {
                p { (kind(schema)) }
            }
        }
    }
}

/// A value that the schema allows: the example it gives, or one made from its parts.
pub(crate) fn example(schema: &Value, components: &Value) -> Value {
    example_at(schema, components, 0)
}

fn example_at(schema: &Value, components: &Value, depth: usize) -> Value {
    if depth > EXAMPLE_DEPTH_MAX {
        return Value::Null;
    }
    let at = |schema: &Value| example_at(schema, components, depth + 1);
    if let Some(given) = schema.get("example").or_else(|| schema.get("examples")?.get(0)) {
        return given.clone();
    }
    if let Some(name) = reference(schema) {
        return components.get(name).map_or(Value::Null, at);
    }
    if let Some(given) =
        schema.get("default").or_else(|| schema.get("const")).or_else(|| schema.get("enum")?.get(0))
    {
        return given.clone();
    }
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        let mut whole = Map::new();
        for part in parts {
            if let Value::Object(fields) = at(part) {
                whole.extend(fields);
            }
        }
        return Value::Object(whole);
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(forms) = schema.get(key).and_then(Value::as_array) {
            let is_null = |form: &&Value| form.get("type").and_then(Value::as_str) == Some("null");
            return forms.iter().find(|form| !is_null(form)).map_or(Value::Null, at);
        }
    }
    let kind = match schema.get("type") {
        Some(Value::String(one)) => one.as_str(),
        Some(Value::Array(several)) => several.first().and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    };
    match kind {
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object);
            Value::Object(
                properties
                    .into_iter()
                    .flatten()
                    .map(|(name, property)| (name.clone(), at(property)))
                    .collect(),
            )
        }
        "array" => schema.get("items").map_or_else(|| json!([]), |items| json!([at(items)])),
        "string" => json!("…"),
        "integer" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "number" => json!(0.5),
        "boolean" => json!(true),
        _ => Value::Null,
    }
}
