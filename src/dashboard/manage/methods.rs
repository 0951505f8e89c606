//! Interleaving methods in forms.

use interleaving::Spec;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::fields::{Field, Kind, fields};
use super::form::Values;

pub(super) const FIELDS: [Field; 2] = fields! {
    interleaving: Method, "/interleaving/kind", "Interleaving",
        "How the service merges two rankings into one page; it plays no part if your backend merges them.";
    settings: Json, "/interleaving/", "Settings of the method",
        "Leave this empty for the defaults, or write a JSON object as for the API, such as `{\"shared\": \"credit-all\"}`.";
};

pub(super) fn values(method: &Spec) -> Values {
    let settings = settings(method).map_or_else(String::new, |settings| settings.to_string());
    Values::of(&[("interleaving", method.method.kind()), ("settings", &settings)])
}

/// A method with its settings in words.
pub(super) fn described(method: &Spec) -> Markup {
    html! {
        code { (method.method.kind()) }
        @if let Some(settings) = settings(method) { " with " code { (settings) } }
    }
}

/// The settings that differ from the defaults of the method's kind, if any do.
fn settings(method: &Spec) -> Option<Value> {
    let kind = Map::from_iter([("kind".to_owned(), method.method.kind().into())]);
    let defaults = Spec::from_json(kind).map(|defaults| members(&defaults)).unwrap_or_default();
    let mut settings = members(method);
    settings.retain(|name, value| defaults.get(name) != Some(value));
    (!settings.is_empty()).then_some(Value::Object(settings))
}

fn members(method: &Spec) -> Map<String, Value> {
    match serde_json::to_value(method) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
