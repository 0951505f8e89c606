//! The leader among the active rankers, updated in O(1) per comparison.

use crate::{Observation, Tally};

/// Determines the champion: the active ranker against which the fewest active rankers lead. A pair
/// without comparisons has no leader. Ties go to the largest share of comparisons won (1/2 without
/// comparisons), then to the lowest index. The result is exact, because it uses only counts.
#[derive(Debug)]
pub(super) struct Standing {
    active: Vec<bool>,
    /// For each ranker, the number of active rankers that lead against it.
    led_by: Vec<u32>,
    half_wins: Vec<u64>,
    half_plays: Vec<u64>,
}

impl Standing {
    pub(super) fn new(tally: &Tally, active: &[usize]) -> Self {
        let rankers = tally.rankers();
        let mut standing = Self {
            active: vec![false; rankers],
            led_by: vec![0; rankers],
            half_wins: vec![0; rankers],
            half_plays: vec![0; rankers],
        };
        for &i in active {
            standing.active[i] = true;
            standing.led_by[i] = active.iter().filter(|&&j| tally.leads(j, i)).count() as u32;
            for j in 0..rankers {
                standing.half_wins[i] += u64::from(tally.half_wins(i, j));
                standing.half_plays[i] += tally.half_plays(i, j);
            }
        }
        standing
    }

    /// Record `count` comparisons in the tally and in this standing.
    pub(super) fn record(&mut self, tally: &mut Tally, observation: &Observation, count: u32) {
        let (i, j) = (observation.duel.first, observation.duel.second);
        let lead = |tally: &Tally, a: usize, b: usize| u32::from(tally.leads(a, b));
        let before = (lead(tally, i, j), lead(tally, j, i));
        let (first, second) = (tally.half_wins(i, j), tally.half_wins(j, i));
        tally.record_run(observation.duel, observation.outcome, count);

        let won = u64::from(tally.half_wins(i, j) - first);
        let lost = u64::from(tally.half_wins(j, i) - second);
        for (ranker, won) in [(i, won), (j, lost)] {
            self.half_wins[ranker] += won;
        }
        for ranker in [i, j] {
            self.half_plays[ranker] += won + lost;
        }
        if self.active[i] && self.active[j] {
            self.led_by[j] = self.led_by[j] + lead(tally, i, j) - before.0;
            self.led_by[i] = self.led_by[i] + lead(tally, j, i) - before.1;
        }
    }

    /// The champion among `active`, which must be the rankers passed to [`Standing::new`].
    pub(super) fn champion(&self, active: &[usize]) -> usize {
        let share = |i: usize| match self.half_plays[i] {
            0 => (1, 2),
            plays => (u128::from(self.half_wins[i]), u128::from(plays)),
        };
        let by_share = |i: usize, than: usize| {
            let (ours, theirs) = (share(i), share(than));
            (theirs.0 * ours.1).cmp(&(ours.0 * theirs.1))
        };
        let is_better = |i: usize, than: usize| {
            self.led_by[i].cmp(&self.led_by[than]).then_with(|| by_share(i, than)).is_lt()
        };
        active
            .iter()
            .copied()
            .reduce(|best, i| if is_better(i, best) { i } else { best })
            .unwrap_or(0)
    }
}
