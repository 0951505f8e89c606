//! More evidence for a proof that is complete and does not satisfy the rule yet.
//!
//! The evidence that single claims need is an approximation: the capital of a truth also contains
//! pairs that the proof does not use, and evidence against the proof in these makes it smaller. To
//! ask all claims for more would spend most duels on the claim that gains least from each.

use crate::evidence::certificate::PairEvidence;
use crate::evidence::plan::proof::Step;
use crate::evidence::plan::survey::Survey;
use crate::evidence::verdict::VerdictTracker;

/// How much evidence is added at a time, in nats, and how often at most.
const STEP: f64 = 1.0;
const MOST_STEPS: usize = 200;

impl Survey<'_> {
    /// Raises the targets of `claims` until `leader` would be certified with them: for each rival
    /// that blocks the verdict, again and again the claim that brings the largest gain for its
    /// price.
    pub(super) fn ask_for_more(
        &self,
        tracker: &VerdictTracker,
        pairs: &PairEvidence,
        leader: usize,
        claims: &mut [Step],
    ) {
        let k = self.rankers();
        let mut supposed = self.outlooks.evidence().to_vec();
        let mut steps_left = MOST_STEPS;
        for rival in (0..k).filter(|&j| j != leader) {
            let capital = |supposed: &[f64]| {
                tracker.ln_capital(&pairs.with_evidence(supposed), leader, rival)
            };
            let mut reached = capital(&supposed);
            while reached < tracker.threshold() && steps_left > 0 {
                steps_left -= 1;
                let concerned = |&(x, y, _): &Step| x == leader || y == rival;
                let mut best: Option<(f64, usize, f64)> = None;
                for (at, &(x, y, _)) in claims.iter().enumerate().filter(|(_, c)| concerned(c)) {
                    let before = supposed[x * k + y];
                    supposed[x * k + y] = before + STEP;
                    let raised = capital(&supposed);
                    supposed[x * k + y] = before;
                    let gain = (raised - reached) / self.price_of_nats(x, y, STEP);
                    if gain > best.map_or(0.0, |(most, _, _)| most) {
                        best = Some((gain, at, raised));
                    }
                }
                let mut raise = |claim: &mut Step| {
                    let (x, y, target) = claim;
                    let now = &mut supposed[*x * k + *y];
                    *now += STEP;
                    *target = *now;
                };
                match best {
                    Some((_, at, raised)) => {
                        raise(&mut claims[at]);
                        reached = raised;
                    }
                    // only several of them together help
                    None => {
                        claims.iter_mut().filter(|c| concerned(c)).for_each(raise);
                        reached = capital(&supposed);
                    }
                }
            }
        }
    }
}
