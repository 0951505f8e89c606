//! The report: rows of named numbers, one for each round, and goals.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// A required bound of a figure, and the measured figure.
#[derive(Debug, Clone)]
pub struct Goal {
    /// The name of the figure.
    pub what: String,
    /// The measured figure.
    pub measured: f64,
    /// The bound.
    pub bound: Bound,
}

/// The kind of a bound.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// A lower bound.
    Least(f64),
    /// An upper bound.
    Most(f64),
}

impl Goal {
    fn is_met(&self) -> bool {
        match self.bound {
            Bound::Least(least) => self.measured >= least,
            Bound::Most(most) => self.measured <= most,
        }
    }

    fn bound(&self) -> (&'static str, f64) {
        match self.bound {
            Bound::Least(least) => ("at least", least),
            Bound::Most(most) => ("at most", most),
        }
    }
}

/// The figures of one side over all rounds.
#[derive(Debug, Clone)]
pub struct Row {
    /// The name of the side.
    pub what: String,
    /// The name and unit of each figure, and its value in each round.
    values: Vec<(&'static str, Vec<f64>)>,
}

impl Row {
    /// A row without figures.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), values: Vec::new() }
    }

    /// Adds the value of a figure. `None` is ignored; it is a value that the system does not
    /// provide.
    pub fn add(&mut self, name: &'static str, value: impl Into<Option<f64>>) {
        let Some(value) = value.into() else { return };
        match self.values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rounds)) => rounds.push(value),
            None => self.values.push((name, vec![value])),
        }
    }

    /// The median of the rounds.
    pub fn median(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(known, _)| *known == name).and_then(|(_, rounds)| median(rounds))
    }
}

/// The middle value, or the mean of the two middle values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some((sorted[last / 2] + sorted[last.div_ceil(2)]) / 2.0)
}

/// A part of the bench.
#[derive(Debug, Clone)]
pub struct Section {
    /// The name on the command line.
    pub name: &'static str,
    /// The machine and the settings.
    pub on: String,
    /// The figures.
    pub rows: Vec<Row>,
    /// The goals.
    pub goals: Vec<Goal>,
}

impl Section {
    /// The section as JSON: medians and the values of all rounds.
    pub fn json(&self) -> Value {
        let row = |row: &Row| {
            let values = row.values.iter().map(|(name, rounds)| {
                ((*name).to_owned(), json!({ "median": median(rounds), "rounds": rounds }))
            });
            json!({ "what": row.what, "values": values.collect::<Map<_, _>>() })
        };
        let goal = |goal: &Goal| {
            let (side, bound) = goal.bound();
            json!({ "what": goal.what, "measured": goal.measured, side.replace(' ', "_"): bound, "met": goal.is_met() })
        };
        json!({
            "name": self.name,
            "on": self.on,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "goals": self.goals.iter().map(goal).collect::<Vec<_>>(),
        })
    }

    /// The section as a text to read: medians and ranges.
    pub fn table(&self) -> String {
        let mut text = format!("{} ({})\n", self.name, self.on);
        for row in &self.rows {
            let _ = writeln!(text, "  {}", row.what);
            for (name, rounds) in &row.values {
                let spread = match (
                    rounds.iter().copied().reduce(f64::min),
                    rounds.iter().copied().reduce(f64::max),
                ) {
                    (Some(least), Some(most)) if rounds.len() > 1 => {
                        format!(
                            "   ({} to {} in {} rounds)",
                            number(least),
                            number(most),
                            rounds.len()
                        )
                    }
                    _ => String::new(),
                };
                let middle = median(rounds).map(number).unwrap_or_default();
                let _ = writeln!(text, "    {name:<32} {middle:>12}{spread}");
            }
        }
        for goal in &self.goals {
            let (side, bound) = goal.bound();
            let result = if goal.is_met() { "met" } else { "MISSED" };
            let _ = writeln!(
                text,
                "  goal {result:<6}  {}: {}, {side} {}",
                goal.what,
                number(goal.measured),
                number(bound)
            );
        }
        text
    }
}

/// At least three digits.
fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
