//! What keeps a ranker from being certified, and which pairs that depends on.

use super::{CLEARLY, CopelandRule, MOST_LN, PairEvidence};

/// A rival against which a claim is short of evidence. It stays so until a pair of one of the two
/// rankers in `of` changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::evidence) struct Barrier {
    pub rival: usize,
    pub of: [usize; 2],
}

impl CopelandRule {
    /// A barrier of `a`; `None` if `a` is certified, as [`CopelandRule::blocks`] has it. Rivals for
    /// which `is_preferred` are tried first: `before`, which was the barrier at an earlier check,
    /// and the one against which `a` has the least evidence.
    pub(in crate::evidence) fn barrier(
        &self,
        evidence: &PairEvidence,
        a: usize,
        before: Option<usize>,
        is_preferred: impl Fn(usize) -> bool,
    ) -> Option<Barrier> {
        let of_one_loss = |j: usize| {
            let direct = evidence.ln(a, j).min(MOST_LN);
            let capital = self.ln_capital_of_one_loss(evidence, direct, a, j);
            (capital < self.threshold - CLEARLY).then_some(Barrier { rival: j, of: [j, j] })
        };
        let first = before.filter(|&j| j != a && is_preferred(j));
        if let Some(barrier) = first.and_then(of_one_loss) {
            return Some(barrier);
        }
        let others = || (0..self.rankers).filter(|&j| j != a);
        let by_claim = |x: &usize, y: &usize| evidence.ln(a, *x).total_cmp(&evidence.ln(a, *y));
        let weakest = others().filter(|&j| is_preferred(j)).min_by(by_claim);
        let before = before.filter(|&j| j != a);
        let claims = self.claims(evidence, a);
        let barrier = |j: usize| {
            of_one_loss(j).or_else(|| {
                let least = self.ln_capital_of(evidence, a, &claims, j);
                (least < self.threshold).then_some(Barrier { rival: j, of: [a, j] })
            })
        };
        weakest
            .and_then(of_one_loss)
            .or_else(|| before.into_iter().chain(others()).find_map(barrier))
    }

    /// A barrier of the claim that `a` beats every other ranker; `None` if that is certified, as
    /// [`CopelandRule::certifies_condorcet`] has it. `before` is tried first.
    pub(in crate::evidence) fn condorcet_barrier(
        &self,
        evidence: &PairEvidence,
        a: usize,
        before: Option<usize>,
    ) -> Option<Barrier> {
        let claims = self.claims(evidence, a);
        if self.condorcet_lacks_alone(&claims) > 0.0 {
            return Some(Barrier { rival: a, of: [a, a] });
        }
        let first = before.into_iter().chain(0..self.rankers).filter(|&j| j != a);
        let short = |&j: &usize| self.threshold - self.ln_capital_of(evidence, a, &claims, j) > 0.0;
        first.into_iter().find(short).map(|j| Barrier { rival: j, of: [a, j] })
    }
}
