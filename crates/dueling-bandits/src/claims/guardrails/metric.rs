//! Metrics, and the bets on their limits.

use crate::claims::betting::{Bets, Counts};
use crate::claims::guardrails::Kind;

/// Share of the error of harm by a difference for whole differences; the rest is for cut ones. It
/// costs those 6 % of pages: a median of 195 in place of 182 (test `claims::guardrails`). Of a
/// failure, which has happened or not, the cut would leave a small part of each difference.
const WHOLE: f64 = 0.2;
/// Share of missing values that nobody is told of where no difference at all is allowed.
const USUAL: f64 = 0.01;

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
    /// On differences that are cut: for harm.
    pub on_cut: Option<Bets>,
}

impl Rule {
    pub fn new(metric: &Metric) -> Self {
        let Metric { cap, of_page, .. } = *metric;
        let on_difference = |limit| match of_page {
            true => Bets::on_arms(cap, limit),
            false => Bets::on_difference(cap, limit),
        };
        let on_cut = metric.difference.filter(|_| !of_page);
        let on_cut = on_cut.and_then(|limit| Bets::on_cut_difference(cap, limit));
        let limit = metric.limit.map(|limit| Bets::on_value(cap, metric.badness(limit)));
        let bets = [limit, metric.difference.map(on_difference)];
        Self { metric: *metric, bets, on_cut }
    }

    /// The bets on cut values, if there are any of this kind.
    pub fn cut(&self, kind: Kind) -> Option<&Bets> {
        self.on_cut.as_ref().filter(|_| kind == Kind::Difference)
    }

    /// The shares of the error of harm: by whole values, and by cut ones.
    pub fn shares(&self, kind: Kind) -> [f64; 2] {
        match self.cut(kind) {
            Some(_) => [WHOLE, 1.0 - WHOLE],
            None => [1.0, 0.0],
        }
    }

    /// The share of pages whose missing values alone can break a limit, if all others have 0; of a
    /// limit of 0, [`USUAL`].
    pub fn missing_bearable(&self, kind: Kind) -> f64 {
        let most = self.bets[kind as usize].as_ref().map_or(1.0, Bets::most);
        self.limit(kind).filter(|&limit| limit > 0.0).map_or(USUAL, |limit| limit / most)
    }

    /// How bad a mean, or a difference, may be.
    pub fn limit(&self, kind: Kind) -> Option<f64> {
        match kind {
            Kind::Limit => self.metric.limit.map(|limit| self.metric.badness(limit)),
            Kind::Difference => self.metric.difference,
        }
    }

    /// How bad a value is.
    pub fn badness(&self, value: f64) -> f64 {
        self.metric.badness(value.clamp(0.0, self.metric.cap))
    }

    /// The mean of a table.
    pub fn mean(&self, bets: &Bets, counts: &Counts, kind: Kind) -> Option<f64> {
        Some(self.value_of_badness(bets.mean(counts)?, kind))
    }

    /// The mean, or the difference, that is as bad as this.
    pub fn value_of_badness(&self, badness: f64, kind: Kind) -> f64 {
        if kind == Kind::Limit { self.metric.badness(badness) } else { badness }
    }
}

impl Metric {
    /// How bad a value is, and back.
    fn badness(&self, value: f64) -> f64 {
        if self.higher_is_better { self.cap - value } else { value }
    }
}
