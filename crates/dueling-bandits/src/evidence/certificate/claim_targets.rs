//! The evidence that the claims of a proof need.

use crate::evidence::certificate::weights::{NEAR, TYPE_II};
use crate::evidence::certificate::{CopelandRule, PairEvidence};

/// The evidence that claims of a proof need.
pub(in crate::evidence) struct ClaimTargets<'a> {
    rule: &'a CopelandRule,
    evidence: PairEvidence<'a>,
    plain: PlainTargets,
}

/// The same in a rule without refuters, for every pair alike. Proofs are compared by these: the
/// refuters follow the leader so far, and would make its proof look cheap where no ranker beats all
/// others.
#[derive(Debug, Clone, Copy)]
pub(in crate::evidence) struct PlainTargets {
    /// Where the leader is to beat all others.
    pub alone: f64,
    /// A win of a leader that does not beat all others.
    pub win: f64,
    /// A loss of another ranker.
    pub loss: f64,
}

impl ClaimTargets<'_> {
    /// For "a beats y", where the leader `a` is to beat all others.
    pub fn alone(&self, a: usize, y: usize) -> f64 {
        let [b1, ..] = self.rule.weights.one;
        self.with_refuters(self.plain.alone, b1 * self.rule.weights.type_one(1), (a, y))
    }

    /// For a win of a leader that does not beat all others.
    pub fn win(&self) -> f64 {
        self.plain.win
    }

    /// For "x beats y" as a loss of `y`.
    pub fn loss(&self, x: usize, y: usize) -> f64 {
        let (others, [_, b2, ..]) = ((self.rule.rankers - 1) as f64, self.rule.weights.one);
        self.with_refuters(self.plain.loss, b2 / others, (x, y)).max(self.plain.loss)
    }

    /// Without refuters.
    pub fn plain(&self) -> PlainTargets {
        self.plain
    }

    /// What "x beats y" needs in type I, where it has this weight besides.
    fn with_refuters(&self, without: f64, weight: f64, (x, y): (usize, usize)) -> f64 {
        let followed = self.rule.weights.followed;
        if followed == 0.0 {
            return without;
        }
        self.rule.threshold - libm::log(weight + followed * self.evidence.stake(x, y))
    }
}

impl CopelandRule {
    /// The evidence that single claims "x beats y" need at least, by what they are for.
    pub(in crate::evidence) fn claim_targets<'a>(
        &'a self,
        evidence: PairEvidence<'a>,
    ) -> ClaimTargets<'a> {
        let others = (self.rankers - 1) as f64;
        let ln = |weight: f64| match self.rankers {
            2 => self.threshold,
            _ => self.threshold - libm::log(weight),
        };
        let [b1, b2, ..] = self.weights.plain;
        let plain = PlainTargets {
            alone: ln(b1 * self.weights.type_one(1)),
            win: ln(TYPE_II[2] * NEAR / others),
            loss: ln(b2.min(TYPE_II[1]) / others),
        };
        ClaimTargets { rule: self, evidence, plain }
    }
}
