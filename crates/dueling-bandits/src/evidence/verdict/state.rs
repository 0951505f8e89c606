//! What is saved of a verdict tracker, with the latched verdict.

use crate::evidence::refuters::Refuters;
use crate::evidence::scores::ScoreCounts;
use crate::{Roster, Tally};

/// A certified winner.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Verdict {
    /// The certified Copeland winners: the leader, then all others that were certified with it.
    pub winners: Vec<u16>,
    /// Steps of the tally at which it was certified, self-duels included.
    pub steps: u64,
    /// Comparisons since the roster last changed.
    pub comparisons: u64,
    /// Steps at which the winner was certified as the Condorcet winner too; `None` before that.
    pub condorcet_steps: Option<u64>,
}

impl Verdict {
    /// The winner: the first of the winners.
    pub fn winner(&self) -> usize {
        self.winners.first().copied().unwrap_or_default().into()
    }
}

/// What is saved.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct State {
    /// Changes of the roster so far.
    pub(super) changes: u32,
    /// Wins of the tally that do not count: those before the newest change, and those left out.
    /// `None` if all count.
    pub(super) uncounted: Option<Tally>,
    /// Comparisons since the newest change that count.
    pub(super) comparisons: u64,
    pub(super) verdict: Option<Verdict>,
    /// `None` without a margin, with two rankers, or for counts that no tracker followed.
    pub(super) refuters: Option<Refuters>,
    /// Scores of answers that count. Saved apart, since most experiments have none.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) scores: ScoreCounts,
}

impl State {
    /// Scores of answers that count.
    pub fn scores(&self) -> &ScoreCounts {
        &self.scores
    }

    /// This state with these scores of answers that count.
    pub fn with_scores(self, scores: ScoreCounts) -> Self {
        Self { scores, ..self }
    }

    /// Whether a decoded state fits `tally` and its roster.
    pub fn is_sound(&self, tally: &Tally, roster: &Roster) -> bool {
        let part_of_it = self.uncounted.as_ref().is_none_or(|uncounted| {
            let rankers = uncounted.rankers();
            let is_part = |i, j| uncounted.half_wins(i, j) <= tally.half_wins(i, j);
            rankers <= tally.rankers() && (0..rankers).all(|i| (0..rankers).all(|j| is_part(i, j)))
        });
        let active = |&winner: &u16| {
            usize::from(winner) < roster.rankers() && roster.is_active(winner.into())
        };
        let known = self.verdict.as_ref().is_none_or(|verdict| {
            !verdict.winners.is_empty() && verdict.winners.iter().all(active)
        });
        let refuters = self.refuters.as_ref();
        (self.changes == 0 || self.uncounted.is_some())
            && refuters.is_none_or(|refuters| refuters.is_sound(roster.active().len()))
            && self.comparisons <= tally.steps()
            && part_of_it
            && known
            && self.scores.is_sound(tally.rankers(), |x, y| {
                let uncounted =
                    self.uncounted.as_ref().filter(|uncounted| x.max(y) < uncounted.rankers());
                let uncounted = uncounted.map_or(0, |uncounted| uncounted.half_wins(x, y));
                tally.half_wins(x, y).saturating_sub(uncounted)
            })
    }
}
