//! One application of the stopping rule to the counts of now.

use super::{CHECKED_EACH, Verdict, VerdictTracker, leading};
use crate::Tally;
use crate::evidence::certificate::{Blocking, CLEARLY, PairEvidence, largest};
use crate::evidence::outlooks::Outlooks;
use crate::evidence::quiet::{Pairs, Quiet};

impl VerdictTracker {
    /// Look for a verdict. `outlooks` are up to date.
    pub(super) fn check(&mut self, tally: &Tally, active: &[usize], outlooks: Option<&Outlooks>) {
        if active.len() < 2 {
            return;
        }
        self.blocking.resize(active.len(), None);
        let mut quiet = Quiet::default();
        let counts = PairEvidence::new(&self.mixture, tally, active)
            .without(self.state.uncounted.as_ref())
            .with_scores(&self.state.scores)
            .with_refuters(self.state.refuters.as_ref());
        let known = match outlooks {
            Some(outlooks) => Some(outlooks.evidence()),
            None if active.len() <= CHECKED_EACH => Some(self.remembered.all_of(&counts)),
            None => None,
        };
        let evidence = known.map_or(counts, |known| counts.with_evidence(known));
        let ln_growth = self.mixture.most_gain();
        match &mut self.state.verdict {
            None => {
                let leaders = match outlooks {
                    Some(outlooks) => largest(outlooks.empirical_scores()),
                    None => leading(&evidence, self.target),
                };
                let mut blocked = Vec::with_capacity(leaders.len());
                let mut certified = Vec::new();
                for x in leaders {
                    match self.rule.blocks(&evidence, x, self.blocking[x]) {
                        None => certified.push(x),
                        Some(blocking) => {
                            self.blocking[x] = Some(blocking);
                            blocked.push((x, blocking));
                        }
                    }
                }
                if let Some(&leader) = certified.first() {
                    let also = (0..active.len()).filter(|&x| {
                        certified.contains(&x)
                            || self.rule.blocks(&evidence, x, self.blocking[x]).is_none()
                    });
                    let mut winners: Vec<u16> = also.map(|x| active[x] as u16).collect();
                    // the leader first, then the others ascending
                    winners.retain(|&winner| usize::from(winner) != active[leader]);
                    winners.insert(0, active[leader] as u16);
                    let condorcet = self.rule.condorcet_lacks(&evidence, leader) <= 0.0;
                    self.state.verdict = Some(Verdict {
                        winners,
                        steps: tally.steps(),
                        comparisons: self.state.comparisons,
                        condorcet_steps: condorcet.then_some(tally.steps()),
                    });
                } else if let Some(&(leader, _)) = blocked.first() {
                    let lacks = self.rule.others_lack(&evidence, leader, &blocked);
                    quiet.allow(Pairs::Of([leader; 2]), outcomes_for(lacks, ln_growth));
                    for &(x, Blocking { rival, lacks, by_rival }) in &blocked {
                        let of = [rival, if by_rival { rival } else { x }];
                        quiet.allow(Pairs::Of(of), outcomes_for(lacks, ln_growth));
                    }
                }
            }
            Some(verdict) if verdict.condorcet_steps.is_none() => {
                let winner = verdict.winner();
                let place = active.iter().position(|&i| i == winner);
                let lacks = place.map(|x| self.rule.condorcet_lacks(&evidence, x));
                if lacks.is_some_and(|lacks| lacks <= 0.0) {
                    verdict.condorcet_steps = Some(tally.steps());
                }
                if let Some(lacks) = lacks {
                    quiet.allow(Pairs::All, outcomes_for(lacks, ln_growth));
                }
            }
            Some(_) => {}
        }
        self.quiet = quiet;
    }
}

/// So many outcomes cannot bring the nats that a capital lacks: see [`CopelandRule::others_lack`].
fn outcomes_for(lacks: f64, ln_growth: f64) -> u64 {
    // fewer, so that rounding does not matter
    ((lacks - CLEARLY) / ln_growth).max(0.0) as u64
}
