//! Interleaving methods in forms.

use interleaving::{Method, Spec};
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::form::{Errors, Fields, Values};

/// The fields of a method, by the start of a JSON pointer.
pub(super) const POINTERS: [(&str, &str); 3] = [
    ("/interleaving/kind", "interleaving"),
    ("/interleaving/", "settings"),
    ("/interleaving", "interleaving"),
];

/// The field that chooses a method.
pub(super) fn field(fields: &Fields<'_>) -> Markup {
    let kinds = Method::KINDS.map(|(kind, _)| (kind, kind));
    fields.select(
        "interleaving",
        "Interleaving",
        "How the service merges two rankings into one page; it plays no part if your backend merges them.",
        &kinds,
    )
}

/// The fields that choose a method and its settings.
pub(super) fn fields(fields: &Fields<'_>) -> Markup {
    html! {
        (field(fields))
        (fields.lines("settings", "Settings of the method",
            "Leave this empty for the defaults, or write a JSON object as for the API, such as \
             {\"shared\": \"credit-all\"}."))
    }
}

/// The values of the fields for this method.
pub(super) fn values(method: &Spec) -> Values {
    let settings = settings(method);
    let settings = match settings.is_empty() {
        true => String::new(),
        false => Value::Object(settings).to_string(),
    };
    Values::default().with("interleaving", method.method.kind()).with("settings", settings)
}

/// The method of a form as JSON.
pub(super) fn method(values: &Values, errors: &mut Errors) -> Value {
    let mut method = match values.get("settings") {
        "" => Map::new(),
        text => match serde_json::from_str(text) {
            Ok(Value::Object(settings)) => settings,
            _ => {
                errors.add("settings", "write a JSON object, in braces");
                Map::new()
            }
        },
    };
    if method.contains_key("kind") {
        errors.add("settings", "`kind` is the method itself; choose it above");
    }
    method.insert("kind".into(), values.get("interleaving").into());
    Value::Object(method)
}

/// A method with its settings in words.
pub(super) fn described(method: &Spec) -> Markup {
    let settings = settings(method);
    html! {
        code { (method.method.kind()) }
        @if !settings.is_empty() { " with " code { (Value::Object(settings)) } }
    }
}

/// The settings that differ from the defaults of the method's kind.
fn settings(method: &Spec) -> Map<String, Value> {
    let kind = Map::from_iter([("kind".to_owned(), method.method.kind().into())]);
    let defaults = Spec::from_json(kind).map(|defaults| members(&defaults)).unwrap_or_default();
    let mut settings = members(method);
    settings.retain(|name, value| defaults.get(name) != Some(value));
    settings
}

fn members(method: &Spec) -> Map<String, Value> {
    match serde_json::to_value(method) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
