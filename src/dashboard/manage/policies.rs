//! Policies in forms.

use dueling_bandits::PolicySpec;
use maud::{Markup, html};
use serde_json::Value;

use super::super::layout::with_code;

/// All policies and their parameters.
pub(super) fn guide() -> Markup {
    html! {
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

/// A policy with its parameters in words.
pub(super) fn described(policy: &PolicySpec) -> Markup {
    let parameters = match serde_json::to_value(policy) {
        Ok(Value::Object(parameters)) => parameters,
        _ => Default::default(),
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
