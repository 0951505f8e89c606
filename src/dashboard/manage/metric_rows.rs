//! The metrics of a new experiment: a row of fields for each.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::form::Values;
use super::numbers;
use rankduel_engine::experiment_spec::METRICS_MAX;

/// Rows that are empty, after those that are not.
const SPARE: usize = 2;

/// A cell of a row: its member of a metric, its head, and its options if it is a choice. The first
/// option is the default.
struct Cell {
    member: &'static str,
    head: &'static str,
    options: &'static [(&'static str, &'static str)],
}

const CELLS: [Cell; 7] = [
    Cell { member: "name", head: "Name", options: &[] },
    Cell {
        member: "of",
        head: "Measured on",
        options: &[("ranker", "a ranker"), ("page", "a page alone")],
    },
    Cell { member: "better", head: "Better", options: &[("lower", "lower"), ("higher", "higher")] },
    Cell { member: "cap", head: "Largest value", options: &[] },
    Cell { member: "limit", head: "Limit of the mean", options: &[] },
    Cell { member: "difference", head: "Worse than the control by", options: &[] },
    Cell {
        member: "on_harm",
        head: "If it does harm",
        options: &[("retire", "retire it"), ("pause", "pause"), ("tell", "tell")],
    },
];

fn field(row: usize, cell: &Cell) -> String {
    format!("metric_{row}_{}", cell.member)
}

/// The rows that say something, by their number.
fn filled(values: &Values) -> impl Iterator<Item = usize> + '_ {
    let has = move |row| {
        CELLS
            .iter()
            .any(|cell| cell.options.is_empty() && !values.get(&field(row, cell)).is_empty())
    };
    (0..METRICS_MAX).filter(move |row| has(*row))
}

pub(super) fn is_empty(values: &Values) -> bool {
    filled(values).next().is_none()
}

/// The list of metrics; `None` without any. The error names the rows.
pub(super) fn read(values: &Values) -> Result<Option<Value>, String> {
    let (mut metrics, mut errors) = (Vec::new(), Vec::new());
    for (number, row) in filled(values).enumerate() {
        let mut metric = Map::new();
        for cell in &CELLS {
            let text = values.get(&field(row, cell));
            let value = match cell.member {
                "name" => Ok(text.into()),
                "cap" if text.is_empty() => Err("write the largest value".to_owned()),
                _ if text.is_empty() => continue,
                "cap" | "limit" | "difference" => numbers::read(text, false).map(Value::Number),
                _ => Ok(text.into()),
            };
            match value {
                Ok(value) => drop(metric.insert(cell.member.into(), value)),
                Err(why) => errors.push(format!("{} of metric {}: {why}", cell.head, number + 1)),
            }
        }
        metrics.push(Value::Object(metric));
    }
    match errors.is_empty() {
        true => Ok((!metrics.is_empty()).then_some(Value::Array(metrics))),
        false => Err(errors.join("; ")),
    }
}

/// An error at this pointer in the body, with the metric that it is about.
pub(super) fn named(pointer: &str, detail: &str) -> String {
    let number = pointer.strip_prefix("/metrics/").and_then(|rest| rest.split('/').next());
    match number.and_then(|number| number.parse::<usize>().ok()) {
        Some(number) => format!("metric {}: {detail}", number + 1),
        None => detail.to_owned(),
    }
}

pub(super) fn table(values: &Values) -> Markup {
    let last = filled(values).last().map_or(0, |row| row + 1);
    let rows = (last + SPARE).min(METRICS_MAX);
    html! {
        div.scroll role="group" aria-label="Metrics, one a row" tabindex="0" { table.rows {
            thead { tr { @for cell in &CELLS { th scope="col" { (cell.head) } } } }
            tbody { @for row in 0..rows { tr { @for cell in &CELLS { td { (control(values, row, cell)) } } } } }
        } }
    }
}

fn control(values: &Values, row: usize, cell: &Cell) -> Markup {
    let (name, label) = (field(row, cell), format!("Metric {}: {}", row + 1, cell.head));
    let value = values.get(&name);
    html! {
        @if cell.options.is_empty() {
            input name=(name) type="text" value=(value) aria-label=(label) autocomplete="off" spellcheck="false"
                autocapitalize="none" inputmode=[(cell.member != "name").then_some("decimal")];
        } @else {
            select name=(name) aria-label=(label) {
                @for (option, text) in cell.options { option value=(option) selected[*option == value] { (text) } }
            }
        }
    }
}
