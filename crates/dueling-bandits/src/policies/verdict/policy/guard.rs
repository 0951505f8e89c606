//! What a winner has to prove again, so that a wrong verdict does not cost regret for ever.
//!
//! The counts that misled the policy are thousands, and a few duels now and then do not turn them.
//! So the guard starts from fresh counts: by the duels since the verdict alone, the winner has to
//! show again that it beats every rival that the verdict rests on. The evidence that it needs grows
//! with the time: after `s` steps, `E(winner≻rival) ≥ s / TRUST`. While a rival lacks evidence, the
//! two meet on all pages. If the winner does not beat the rival, `E` is a supermartingale, so it
//! reaches `s / TRUST` with a probability of at most `TRUST / s` (Ville), and the duels go on until
//! the majority of all counts has turned. Then the policy explores.

use crate::evidence::VerdictTracker;
use crate::evidence::outlooks::Outlook;
use crate::{Duel, Tally};

/// So many steps after the verdict nothing has to be proven yet.
pub(super) const TRUST: f64 = 3e5;

/// The verdict rests on a rival if the evidence against it was this share of `ln(1/δ)`. A rival
/// that happens to be behind in a few duels proves nothing.
const RESTS_ON: f64 = 0.5;

/// The rivals that the verdict rests on; none before a verdict.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard {
    winner: usize,
    rivals: Vec<Rival>,
}

#[derive(Debug, Clone, Copy)]
struct Rival {
    ranker: usize,
    /// Half wins of the winner and of the rival at the verdict.
    before: [u32; 2],
    /// `ln E(winner≻rival)` since then, and what one more duel adds. They follow from the counts.
    evidence: f64,
    rate: f64,
    /// Whether the rival leads by now, in all counts.
    has_turned: bool,
}

/// What is saved of a [`Guard`]: each rival, with the half wins at the verdict.
pub(super) type SavedGuard = Vec<(u16, u32, u32)>;

impl Guard {
    /// Of the verdict of `tracker`, which was found at the counts of `tally`. Without a verdict
    /// there is nothing to prove.
    pub fn new(tracker: &VerdictTracker, tally: &Tally, active: &[usize]) -> Self {
        let Some(winner) = tracker.verdict().map(|verdict| verdict.winner()) else {
            return Self::default();
        };
        let Ok(place) = active.binary_search(&winner) else { return Self::default() };
        let evidence = tracker.evidence(tally, active);
        let needed = RESTS_ON * tracker.threshold();
        let rests_on = (0..active.len())
            .filter(|&y| y != place && evidence.ln(place, y) >= needed)
            .map(|y| active[y]);
        let saved =
            rests_on.map(|y| (y as u16, tally.half_wins(winner, y), tally.half_wins(y, winner)));
        Self::of(winner, &saved.collect::<Vec<_>>(), tracker, tally)
    }

    fn of(
        winner: usize,
        saved: &[(u16, u32, u32)],
        tracker: &VerdictTracker,
        tally: &Tally,
    ) -> Self {
        let rival = |&(ranker, won, lost): &(u16, u32, u32)| {
            let before = [won, lost];
            let (evidence, rate, has_turned) = (0.0, 0.0, false);
            let mut rival = Rival { ranker: ranker.into(), before, evidence, rate, has_turned };
            rival.refresh(winner, tracker, tally);
            rival
        };
        Self { winner, rivals: saved.iter().map(rival).collect() }
    }

    /// The pair `duel` has new counts.
    pub fn update(&mut self, duel: Duel, tracker: &VerdictTracker, tally: &Tally) {
        let winner = self.winner;
        let ranker = match (duel.first == winner, duel.second == winner) {
            (true, false) => duel.second,
            (false, true) => duel.first,
            _ => return,
        };
        if let Ok(at) = self.rivals.binary_search_by_key(&ranker, |rival| rival.ranker) {
            self.rivals[at].refresh(winner, tracker, tally);
        }
    }

    /// Whether the winner lost its lead over one of the rivals. O(K).
    pub fn has_turned(&self) -> bool {
        self.rivals.iter().any(|rival| rival.has_turned)
    }

    /// The rival that the winner is to meet, so many steps after the verdict: the one that lacks
    /// most evidence. `None` if the duels in flight are expected to bring it, and if none lacks
    /// any. O(K).
    pub fn rival(&self, steps: u64, in_flight: impl Fn(usize) -> u32) -> Option<usize> {
        let target = libm::log(steps as f64 / TRUST);
        if target <= 0.0 {
            return None;
        }
        let rivals = self.rivals.iter();
        let least = rivals.min_by(|one, other| one.evidence.total_cmp(&other.evidence))?;
        let missing = (target - least.evidence) / least.rate;
        (missing > f64::from(in_flight(least.ranker))).then_some(least.ranker)
    }

    /// What is to be saved.
    #[cfg(feature = "serde")]
    pub fn saved(&self) -> SavedGuard {
        let saved = |rival: &Rival| {
            let [won, lost] = rival.before;
            (rival.ranker as u16, won, lost)
        };
        self.rivals.iter().map(saved).collect()
    }

    /// The guard that was saved; `None` if it does not fit the counts or the verdict.
    #[cfg(feature = "serde")]
    pub fn restore(
        saved: &[(u16, u32, u32)],
        tracker: &VerdictTracker,
        tally: &Tally,
        active: &[usize],
    ) -> Option<Self> {
        let Some(winner) = tracker.verdict().map(|verdict| verdict.winner()) else {
            return saved.is_empty().then(Self::default);
        };
        let is_sound = |&(ranker, won, lost): &(u16, u32, u32)| {
            let y = usize::from(ranker);
            y != winner
                && active.binary_search(&y).is_ok()
                && won <= tally.half_wins(winner, y)
                && lost <= tally.half_wins(y, winner)
        };
        let is_ascending = saved.is_sorted_by(|one, other| one.0 < other.0);
        let is_sound = is_ascending && saved.iter().all(is_sound);
        is_sound.then(|| Self::of(winner, saved, tracker, tally))
    }
}

impl Rival {
    fn refresh(&mut self, winner: usize, tracker: &VerdictTracker, tally: &Tally) {
        let since = |half_wins: u32, before: u32| f64::from(half_wins - before) / 2.0;
        let won = since(tally.half_wins(winner, self.ranker), self.before[0]);
        let lost = since(tally.half_wins(self.ranker, winner), self.before[1]);
        self.evidence = tracker.ln_evidence(won, lost);
        self.has_turned = tally.leads(self.ranker, winner);
        self.rate = Outlook::of(won, lost, 0.5 - tracker.target().margin).rate;
    }
}
