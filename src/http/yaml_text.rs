//! The description of the API as YAML, with one line for each field of a schema.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Keys that come first, in this order. The others follow by name.
const FIRST: [&str; 12] = [
    "openapi", "info", "servers", "paths", "tags", "summary", "$ref", "name", "in", "type",
    "format", "required",
];
/// Columns up to which a collection of collections is on one line.
const WIDTH: usize = 100;
/// Words that are not text in some version of YAML.
const NOT_TEXT: [&str; 9] = ["true", "false", "null", "yes", "no", "y", "n", "on", "off"];

/// The document as YAML.
pub(super) fn write(document: &Value) -> String {
    let mut yaml = String::new();
    write_block(document, 0, &mut yaml);
    yaml
}

/// Write each member of a collection on lines of its own.
fn write_block(value: &Value, indent: usize, yaml: &mut String) {
    match value {
        Value::Object(members) => {
            for (key, member) in ordered(members) {
                let key = word(key);
                let _ = write!(yaml, "{:indent$}{key}:", "");
                write_member(member, indent + 2, indent + key.len(), yaml);
            }
        }
        Value::Array(items) => {
            for item in items {
                let _ = write!(yaml, "{:indent$}-", "");
                write_member(item, indent + 2, indent, yaml);
            }
        }
        scalar => yaml.push_str(&on_one_line(scalar)),
    }
}

/// Write what follows a key, or the dash of an item, that ends at this column.
fn write_member(member: &Value, indent: usize, column: usize, yaml: &mut String) {
    let line = on_one_line(member);
    if is_flat(member) || column + line.len() < WIDTH {
        let _ = writeln!(yaml, " {line}");
    } else if yaml.ends_with('-') {
        let mut block = String::new();
        write_block(member, indent, &mut block);
        let _ = write!(yaml, " {}", block.trim_start());
    } else {
        yaml.push('\n');
        let indent = if member.is_array() { indent - 2 } else { indent };
        write_block(member, indent, yaml);
    }
}

/// Whether this is a scalar, or a collection of scalars and of lists of them.
fn is_flat(value: &Value) -> bool {
    let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
    let is_list = |value: &Value| value.as_array().is_some_and(|items| items.iter().all(is_scalar));
    match value {
        Value::Object(members) => members.values().all(|value| is_scalar(value) || is_list(value)),
        value => is_scalar(value) || is_list(value),
    }
}

fn on_one_line(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = ordered(members).into_iter();
            let members =
                members.map(|(key, value)| format!("{}: {}", word(key), on_one_line(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => word(text),
        scalar => scalar.to_string(),
    }
}

fn ordered(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = members.iter().collect();
    members
        .sort_by_key(|(key, _)| FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len()));
    members
}

/// A plain word, or the text in quotes, as in JSON.
fn word(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '$')
        && text.chars().all(|char| char.is_ascii_alphanumeric() || "$_/.+-".contains(char))
        && !NOT_TEXT.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}
