//! The settings of an experiment in forms.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::form::{Errors, Fields, Values};
use rankduel_engine::experiment_spec::ExperimentSpec;

/// The field for each start of a JSON pointer.
pub(super) const POINTERS: [(&str, &str); 8] = [
    ("/description", "description"),
    ("/owner", "owner"),
    ("/answer_window_seconds", "answer_window_seconds"),
    ("/conclude_at/min_days", "min_days"),
    ("/conclude_at/max_days", "max_days"),
    ("/conclude_at/max_duels", "max_duels"),
    ("/conclude_at", "concludes"),
    ("/coverage", "coverage"),
];

/// The members of `conclude_at` that can change.
const LIMITS: [&str; 3] = ["min_days", "max_days", "max_duels"];

/// The purpose of an experiment, and whom to ask.
pub(super) fn texts(fields: &Fields<'_>) -> Markup {
    html! {
        (fields.text("description", "Description", "What the experiment is for, on one line; you can leave it empty."))
        (fields.text("owner", "Owner", "Whom to ask about it; you can leave it empty."))
    }
}

/// Whether an experiment concludes by itself.
pub(super) fn concludes(fields: &Fields<'_>) -> Markup {
    fields.select(
        "concludes",
        "Conclude by itself",
        "Once a winner is certain, the experiment can answer every request with it by itself.",
        &[("verdict", "yes, at the verdict or at a limit below"), ("never", "no, I conclude it")],
    )
}

/// The limits of an experiment that concludes by itself.
pub(super) fn limits(fields: &Fields<'_>) -> Markup {
    html! {
        (fields.number("min_days", "Days at least",
            "The experiment does not conclude earlier than this; 7 covers a whole week, and empty means no limit."))
        (fields.number("max_days", "Days at most",
            "After this many days it concludes on the leader, even without a verdict; empty means no limit."))
        (fields.number("max_duels", "Answered duels at most",
            "After this many duels it concludes on the leader, even without a verdict; empty means no limit."))
    }
}

pub(super) fn answer_window(fields: &Fields<'_>, empty: &str) -> Markup {
    let help = format!("The verdict counts a duel once its answer can no longer come{empty}.");
    fields.number("answer_window_seconds", "Answer window in seconds", &help)
}

/// The fields of the settings that can change.
pub(super) fn fields(fields: &Fields<'_>) -> Markup {
    html! {
        (texts(fields))
        (concludes(fields))
        div.pair {
            (limits(fields))
            (answer_window(fields, "; empty leaves it"))
            (fields.number("coverage", "Coverage",
                "The share of units that take part; all others get the control. 1 is everybody."))
        }
    }
}

/// The present values of the fields.
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

/// The change for the API: the fields that differ from the present values.
pub(super) fn change(
    spec: &ExperimentSpec,
    values: &Values,
    errors: &mut Errors,
) -> Map<String, Value> {
    let present = self::values(spec);
    let differs = |name: &&str| values.get(name) != present.get(name);
    let mut change = Map::new();
    for name in ["description", "owner"].into_iter().filter(differs) {
        change.insert(name.into(), values.get(name).into());
    }
    for name in ["answer_window_seconds", "coverage"].into_iter().filter(differs) {
        if let Some(number) = values.number(name, errors) {
            change.insert(name.into(), number);
        }
    }
    let limits: Vec<_> = LIMITS.into_iter().filter(differs).collect();
    if values.get("concludes") == "never" {
        if differs(&"concludes") {
            change.insert("conclude_at".into(), "never".into());
        }
    } else if differs(&"concludes") || !limits.is_empty() {
        let limit = |name| (String::from(name), values.number(name, errors).unwrap_or_default());
        change.insert("conclude_at".into(), limits.into_iter().map(limit).collect());
    }
    if change.is_empty() && errors.is_empty() {
        errors.add_whole("These are the present settings: there is nothing to change.");
    }
    change
}

/// The settings that change, in words.
pub(super) fn changed(spec: &ExperimentSpec, values: &Values) -> Markup {
    let change = change(spec, values, &mut Errors::default());
    html! {
        @for (index, (name, value)) in change.iter().enumerate() {
            @if index > 0 { ", " }
            code { (name) }
            @if let Value::String(text) = value { " (" bdi { (text) } ")" } @else { " (" code { (value) } ")" }
        }
    }
}
