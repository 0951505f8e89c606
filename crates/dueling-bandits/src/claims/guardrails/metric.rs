//! Metrics, and the bets on their limits.

use crate::claims::betting::{Bets, Counts};
use crate::claims::guardrails::Kind;

/// Share of the error of a difference for metrics that only know 0 and the cap. It costs the others
/// 6 % of pages: their medians are 195 and 170 in place of 182 and 161 (test `claims::guardrails`).
const FAILURES: f64 = 0.2;

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

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    pub metric: Metric,
    /// By kind.
    pub bets: [Option<Bets>; 2],
    /// On the difference while each value was 0 or the cap, as those of a failure are.
    pub on_failures: Option<Bets>,
}

impl Rule {
    pub fn new(metric: &Metric) -> Self {
        let Metric { cap, of_page, .. } = *metric;
        let on_difference = |limit| match of_page {
            true => Bets::on_arms(cap, limit),
            false => Bets::on_difference(cap, limit),
        };
        let of_failures = metric.difference.filter(|_| !of_page);
        let on_failures = of_failures.and_then(|limit| Bets::on_whole_difference(cap, limit));
        let limit = metric.limit.map(|limit| Bets::on_value(cap, metric.badness(limit)));
        let bets = [limit, metric.difference.map(on_difference)];
        Self { metric: *metric, bets, on_failures }
    }

    /// The bets of a kind, and their share of its error.
    pub fn bets(&self, kind: Kind, is_graded: bool) -> Option<(&Bets, f64)> {
        let bets = self.bets[kind as usize].as_ref();
        let Some(on_failures) = self.on_failures.as_ref().filter(|_| kind == Kind::Difference)
        else {
            return bets.map(|bets| (bets, 1.0));
        };
        match is_graded {
            true => bets.map(|bets| (bets, 1.0 - FAILURES)),
            false => Some((on_failures, FAILURES)),
        }
    }

    /// Whether a difference shows that values are not all 0 or the cap.
    pub fn is_graded(&self, difference: f64) -> bool {
        difference != 0.0 && difference.abs() < self.metric.cap
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
