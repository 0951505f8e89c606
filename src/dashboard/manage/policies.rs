//! Policies in forms.

use dueling_bandits::PolicySpec;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::super::layout::with_code;
use super::form::{Errors, Fields, Values};

/// The fields of a policy, by the start of a JSON pointer.
pub(super) const POINTERS: [(&str, &str); 3] =
    [("/policy/kind", "policy"), ("/policy/", "parameters"), ("/policy", "policy")];

/// The fields that choose a policy.
pub(super) fn fields(fields: &Fields<'_>) -> Markup {
    let kinds: Vec<_> = PolicySpec::KINDS.iter().map(|&(kind, _)| (kind, kind)).collect();
    html! {
        (fields.select("policy", "Policy",
            "The algorithm that selects the two rankers of each page. The default, d-ts-verdict, finds the best ranker and \
             proves it, and shows few bad pages on the way.", &kinds))
        (fields.text("parameters", "Parameters of the policy",
            "Leave this empty for the defaults, or write name=value, name=value."))
        details.guide {
            summary { "All policies and their parameters" }
            div.scroll role="group" aria-label="Policies" tabindex="0" { dl { @for (kind, description) in PolicySpec::KINDS {
                dt { code { (kind) } }
                dd {
                    (with_code(description.summary)) " "
                    @for parameter in description.parameters {
                        span.parameter {
                            code { (parameter.name) } " "
                            @match parameter.default { Some(default) => { "(" (default) ")" } None => { b { "(required)" } } }
                            ": " (with_code(parameter.meaning.trim_end_matches('.'))) ". "
                        }
                    }
                }
            } } }
        }
    }
}

/// The policy of a form as JSON.
pub(super) fn policy(values: &Values, errors: &mut Errors) -> Value {
    let mut policy = match PolicySpec::parameters_from_text(values.get("parameters")) {
        Ok(parameters) => parameters,
        Err(error) => {
            errors.add("parameters", error.detail);
            Map::new()
        }
    };
    if policy.contains_key("kind") {
        errors.add("parameters", "`kind` is the policy itself; choose it above");
    }
    policy.insert("kind".into(), values.get("policy").into());
    Value::Object(policy)
}

/// A policy with its parameters in words.
pub(super) fn described(policy: &PolicySpec) -> Markup {
    let parameters = match serde_json::to_value(policy) {
        Ok(Value::Object(parameters)) => parameters,
        _ => Map::new(),
    };
    let parameters: Vec<String> = parameters
        .iter()
        .filter(|(name, value)| *name != "kind" && !value.is_null())
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    html! {
        code { (policy.kind()) }
        @if !parameters.is_empty() { " with " code { (parameters.join(", ")) } }
    }
}
