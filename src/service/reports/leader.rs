//! Who leads: the one ranker that every report and page names.

use std::sync::Arc;

use crate::service::error::ServiceError;
use crate::service::reports::pool::ReportPool;
use crate::service::reports::single_flight::{Computed, newest};
use dueling_bandits::evidence::{Posterior, RacePoint, Standing, VerdictTracker};
use dueling_bandits::{PolicyRng, Roster, Tally, step_rng};
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// Separates these random draws from other uses of the seed of an experiment.
const VERDICT_STREAM: u64 = 0x7665_7264_6963;

/// The verdict in a line, without a forecast.
#[derive(Debug)]
pub struct Lead {
    /// Index of the leader, or of the first winner.
    pub leader: usize,
    /// Indices of the certified winners.
    pub winners: Vec<usize>,
    /// Whether a duel of two active rankers has had a winner.
    pub compared: bool,
    /// Number of rivals of the leader.
    pub rivals: usize,
    /// Number of rivals that are not ruled out.
    pub open: usize,
}

/// Who leads at the current log position or later, as [`super::verdict::verdict()`] says it.
pub async fn lead(
    reports: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
) -> Result<Arc<Computed<Lead>>, ServiceError> {
    newest(reports, loaded, (), LeadInput::of, |loaded, input| input.lead(loaded)).await
}

struct LeadInput {
    tally: Tally,
    roster: Roster,
    tracker: VerdictTracker,
    race: Vec<RacePoint>,
}

impl LeadInput {
    fn of(fold: &Fold) -> Self {
        Self {
            tally: fold.policy().tally().clone(),
            roster: fold.roster().clone(),
            tracker: fold.verdict().clone(),
            race: fold.race().points().to_vec(),
        }
    }

    fn lead(&self, loaded: &LoadedExperiment) -> Lead {
        let (tally, active) = (&self.tally, self.roster.active());
        let winners = winners(&self.tracker);
        let seed = loaded.with_record(|record| record.seed);
        let leader = drawn_leader(tally, &self.roster, &winners, seed);
        let mut standing = self.tracker.standing(tally, active, leader);
        if winners.is_empty() {
            keep_proven(&mut standing, &self.race);
        }
        let open = possible(&standing, &winners).len() - winners.len().max(1);
        let compared = has_compared(tally, &self.roster);
        Lead { leader, compared, rivals: active.len() - 1, open, winners }
    }
}

/// Whether a duel of two active rankers has had a winner.
pub(super) fn has_compared(tally: &Tally, roster: &Roster) -> bool {
    let active = roster.active();
    active.iter().any(|&i| active.iter().any(|&j| j < i && tally.half_plays(i, j) > 0))
}

fn winners(tracker: &VerdictTracker) -> Vec<usize> {
    let verdict = tracker.verdict();
    verdict.map_or_else(Vec::new, |verdict| verdict.winners.iter().map(|&w| w.into()).collect())
}

/// The leader at the current log position. Takes long with many rankers.
pub(crate) fn current_leader(loaded: &LoadedExperiment) -> Result<usize, ServiceError> {
    let (tally, roster, winners) = {
        let fold = loaded.fold()?;
        (fold.policy().tally().clone(), fold.roster().clone(), winners(fold.verdict()))
    };
    Ok(drawn_leader(&tally, &roster, &winners, loaded.with_record(|record| record.seed)))
}

/// The leader of a fold of the experiment with this seed.
pub(crate) fn leader_of(fold: &Fold, seed: u64) -> usize {
    drawn_leader(fold.policy().tally(), fold.roster(), &winners(fold.verdict()), seed)
}

fn drawn_leader(tally: &Tally, roster: &Roster, winners: &[usize], seed: u64) -> usize {
    if let Some(&winner) = winners.first() {
        return winner;
    }
    let draws = Posterior::draws(tally.rankers());
    let chances = Posterior::among(tally, roster).winner_probabilities(draws, &mut rng_of(seed));
    leader(&chances.copeland, tally, roster.active(), winners)
}

/// The same stream at every position: otherwise the leader would change without new answers.
pub(super) fn rng_of(seed: u64) -> PolicyRng {
    step_rng(seed ^ VERDICT_STREAM, 0)
}

/// The first winner, or else the most probable Copeland winner. If several have the same
/// probability, the one that leads the counts.
pub(super) fn leader(chances: &[f64], tally: &Tally, active: &[usize], winners: &[usize]) -> usize {
    if let Some(&winner) = winners.first() {
        return winner;
    }
    let most = active.iter().map(|&i| chances[i]).fold(0.0, f64::max);
    let level: Vec<usize> = active.iter().copied().filter(|&i| chances[i] == most).collect();
    tally.copeland_leader_among(&level)
}

/// Take the largest evidence against each rival since this ranker leads: the guarantee is for all
/// times at once, so what was proven once stays proven. If each rival was ruled out at another
/// time, the one with the least evidence now stays open, because there is no verdict yet.
pub(super) fn keep_proven(standing: &mut Standing, race: &[RacePoint]) {
    let leader = standing.ranker;
    let mut proven = standing.rivals.clone();
    for point in race.iter().rev().take_while(|point| usize::from(point.leader) == leader) {
        for &(rival, ln) in &point.rivals {
            let own = proven.iter_mut().find(|(other, _)| *other == usize::from(rival));
            if let Some((_, most)) = own {
                *most = most.max(ln.into());
            }
        }
    }
    let weakest = (0..proven.len())
        .min_by(|&one, &other| standing.rivals[one].1.total_cmp(&standing.rivals[other].1));
    if let Some(weakest) = weakest
        && proven.iter().all(|(_, ln)| *ln >= standing.threshold)
    {
        proven[weakest].1 = standing.rivals[weakest].1;
    }
    standing.rivals = proven;
}

/// The winners, or else the leader and the rivals against which it lacks evidence; ascending.
pub(super) fn possible(standing: &Standing, winners: &[usize]) -> Vec<usize> {
    let mut possible: Vec<usize> = if winners.is_empty() {
        let open = standing.rivals.iter().filter(|(_, ln)| *ln < standing.threshold);
        open.map(|(rival, _)| *rival).chain([standing.ranker]).collect()
    } else {
        winners.to_vec()
    };
    possible.sort_unstable();
    possible
}
