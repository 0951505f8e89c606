//! The settings of an experiment that can change.

use serde_json::{Map, Value};

use super::fields::{Field, Kind, body, fields, of_pointer};
use super::form::{Errors, Values};
use super::summary::exact;
use rankduel_engine::experiment_spec::ExperimentSpec;

pub(super) const TEXTS: [Field; 2] = fields! {
    description: Text, "/description", "Description", "What the experiment is for, on one line; you can leave it empty.";
    owner: Text, "/owner", "Owner", "Whom to ask about it; you can leave it empty.";
};

/// Whether an experiment concludes by itself.
pub(super) const CONCLUSION: [Field; 1] = fields! {
    concludes: Conclusion, "/conclude_at", "Conclude by itself",
        "Once a winner is certain, the experiment can answer every request with it by itself.";
};

/// The limits of an experiment that concludes by itself.
pub(super) const LIMITS: [Field; 3] = fields! {
    min_days: Number, "/conclude_at/min_days", "Days at least",
        "The experiment does not conclude earlier than this; 7 covers a whole week, and empty means no limit.";
    max_days: Number, "/conclude_at/max_days", "Days at most",
        "After this many days it concludes on the leader, even without a verdict; empty means no limit.";
    max_duels: Number, "/conclude_at/max_duels", "Answered duels at most",
        "After this many duels it concludes on the leader, even without a verdict; empty means no limit.";
};

/// The settings of the form of a change.
pub(super) fn fields() -> Vec<Field> {
    let others = fields! {
        answer_window_seconds: Number, "/answer_window_seconds", "Answer window in seconds",
            "The verdict counts a duel once its answer can no longer come; empty leaves it.";
        coverage: Share, "/coverage", "Coverage",
            "The share of units that take part; all others get the control. 1 is everybody, and empty leaves it.";
    };
    [&TEXTS[..], &CONCLUSION, &LIMITS, &others].concat()
}

pub(super) fn values(spec: &ExperimentSpec) -> Values {
    let at = spec.conclude_at.unwrap_or_default();
    let text = |limit: Option<String>| limit.unwrap_or_default();
    Values::of(&[("description", &spec.description), ("owner", &spec.owner)])
        .with("concludes", if spec.conclude_at.is_some() { "verdict" } else { "never" })
        .with("min_days", text(at.min_days.map(|days| days.to_string())))
        .with("max_days", text(at.max_days.map(|days| days.to_string())))
        .with("max_duels", text(at.max_duels.map(|duels| duels.to_string())))
        .with("answer_window_seconds", spec.answer_window_seconds.to_string())
        .with("coverage", spec.coverage.to_string())
}

/// The members of a body, each with the label of its field and its value for people.
pub(super) fn described(body: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let fields = fields();
    let described = |pointer: &str, value: &Value| {
        let field = of_pointer(&fields, pointer)?;
        let text = match (value, field.kind) {
            (Value::Null, _) => "none".into(),
            (Value::String(text), Kind::Conclusion) if text == "never" => "no".into(),
            (Value::String(text), _) => text.clone(),
            (Value::Object(_), _) => "yes".into(),
            (value, Kind::Share) => exact(value.as_f64()?),
            (value, _) => value.to_string(),
        };
        Some((field.label, text))
    };
    let mut all = Vec::new();
    for (name, value) in body {
        match value {
            Value::Object(members) if !members.is_empty() => {
                let member = |(member, value)| described(&format!("/{name}/{member}"), value);
                all.extend(members.iter().filter_map(member));
            }
            value => all.extend(described(&format!("/{name}"), value)),
        }
    }
    all
}

/// The members of a body that differ from the present settings. A limit that is gone is `null`.
pub(super) fn changed(
    spec: &ExperimentSpec,
    mut wanted: Map<String, Value>,
    errors: &mut Errors,
) -> Map<String, Value> {
    let present = body(&fields(), &values(spec), &mut Errors::default());
    wanted.retain(|name, value| present.get(name) != Some(value));
    let at = (wanted.get_mut("conclude_at"), present.get("conclude_at"));
    if let (Some(Value::Object(wanted)), Some(Value::Object(present))) = at {
        for gone in present.keys() {
            wanted.entry(gone).or_insert(Value::Null);
        }
        wanted.retain(|name, value| present.get(name) != Some(value));
    }
    if wanted.is_empty() && errors.is_empty() {
        errors.add_whole("These are the present settings: there is nothing to change.");
    }
    wanted
}
