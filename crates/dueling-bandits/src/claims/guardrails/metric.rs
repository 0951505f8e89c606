//! Metrics, and the bets on their limits.

use crate::claims::betting::{Bets, Counts};
use crate::claims::guardrails::Kind;

/// A metric: a number for each page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Larger values count as this.
    pub cap: f64,
    /// Whether it is of the page and not of a ranker: then it has a difference and no limit.
    pub of_page: bool,
    /// Whether higher values are better; otherwise they are worse.
    pub higher_is_better: bool,
    /// A mean that is worse is harm, one that is better is safe: above 0, below the cap.
    pub limit: Option<f64>,
    /// The same for how much worse it is than the control; above 0, or from 0 if it is of the page.
    pub difference: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub metric: Metric,
    /// By kind.
    pub bets: [Option<Bets>; 2],
}

impl Rule {
    pub fn new(metric: &Metric) -> Self {
        let Metric { cap, of_page, .. } = *metric;
        let on_difference = |limit| match of_page {
            true => Bets::on_arms(cap, limit),
            false => Bets::on_difference(limit),
        };
        let limit = metric.limit.map(|limit| Bets::on_value(cap, metric.badness(limit)));
        Self { metric: *metric, bets: [limit, metric.difference.map(on_difference)] }
    }

    /// How bad a value is. Nothing is worse than a missing one.
    pub fn badness(&self, value: Option<f64>) -> f64 {
        let cap = self.metric.cap;
        value.map_or(cap, |value| self.metric.badness(value.clamp(0.0, cap)))
    }

    /// The mean of a table.
    pub fn mean(&self, bets: &Bets, counts: &Counts, kind: Kind) -> Option<f64> {
        let mean = bets.mean(counts)?;
        Some(if kind == Kind::Limit { self.metric.badness(mean) } else { mean })
    }
}

impl Metric {
    /// How bad a value is, and back.
    fn badness(&self, value: f64) -> f64 {
        if self.higher_is_better { self.cap - value } else { value }
    }
}
