//! Who leads: the one ranker that every report and page names.

use std::sync::Arc;

use crate::service::error::ServiceError;
use crate::service::reports::fold_copy::{FoldCopy, winners};
use crate::service::reports::pool::ReportPool;
use crate::service::reports::single_flight::{Computed, newest};
use crate::service::reports::verdict_basis::VerdictBasis;
use dueling_bandits::evidence::{EqualAnswers, RacePoint, Standing, VerdictTracker};
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// The parts of the verdict that a line about it needs.
#[derive(Debug)]
pub struct Lead {
    /// Index of the leader: the most probable winner, or the winner of the verdict.
    pub leader: usize,
    /// Indices of the winners of the verdict; empty before it.
    pub winners: Vec<usize>,
    /// Number of answered duels.
    pub duels: u64,
    /// Whether a duel of two active rankers has counted.
    pub compared: bool,
    /// Number of active rankers other than the leader.
    pub rivals: usize,
    /// Number of rivals that are not ruled out.
    pub open: usize,
    /// Whether there would be a verdict if the answers that wait to count counted now.
    pub waiting_settle: bool,
    /// Why the verdict can be wrong more often than it says.
    pub doubts: Vec<String>,
}

/// The leader at the current log position or later, with what `/verdict` says about it.
pub async fn lead(
    reports: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
) -> Result<Arc<Computed<Lead>>, ServiceError> {
    let seed = loaded.with_record(|record| record.seed);
    let copy = |fold: &Fold| (FoldCopy::of(fold), VerdictBasis::of(fold), fold.expected());
    let compute = move |loaded: &LoadedExperiment, (copy, basis, waiting): (_, _, Vec<_>)| {
        lead_of(loaded, &copy, basis, &waiting, seed)
    };
    newest(reports, loaded, (), copy, compute).await
}

fn lead_of(
    loaded: &LoadedExperiment,
    copy: &FoldCopy,
    mut basis: VerdictBasis,
    waiting: &[EqualAnswers],
    seed: u64,
) -> Lead {
    let (active, winners) = (copy.roster.active(), winners(&copy.tracker));
    let leader = copy.leader(seed);
    if !winners.is_empty() {
        let named = (leader, &*loaded.spec.rankers[leader].id);
        basis.note_loss(&copy.tracker, &copy.tally, active, named);
    }
    let settled = |tracker: VerdictTracker| tracker.verdict().is_some();
    let with_waiting = || copy.tracker_with_waiting(waiting, copy.tracker.target());
    let mut standing = copy.tracker.standing(&copy.tally, active, leader);
    keep_proven(&mut standing, &copy.race, !winners.is_empty());
    let open = possible(&standing, &winners).len() - winners.len().max(1);
    Lead {
        leader,
        duels: copy.counts.answered_duels(),
        compared: copy.has_compared(),
        rivals: active.len() - 1,
        open,
        waiting_settle: winners.is_empty() && with_waiting().is_some_and(settled),
        doubts: basis.doubts,
        winners,
    }
}

/// Replace the evidence against each rival by its maximum since this ranker took the lead in the
/// race. Only the recorded points of the race and the present are compared. The guarantee is for
/// all times at once, so a rival that was ruled out once stays ruled out. Exception: if each rival
/// has been ruled out, but not all at the same time, there is no verdict. Then the rival with the
/// least current evidence keeps its current value and remains open. With a verdict, which
/// `is_decided` tells, all rivals stay ruled out.
pub(super) fn keep_proven(standing: &mut Standing, race: &[RacePoint], is_decided: bool) {
    let leader = standing.ranker;
    let mut proven = standing.rivals.clone();
    for point in race.iter().rev().take_while(|point| usize::from(point.leader) == leader) {
        for &(rival, ln) in &point.rivals {
            let known = proven.iter_mut().find(|(other, _)| *other == usize::from(rival));
            if let Some((_, most)) = known {
                *most = most.max(ln.into());
            }
        }
    }
    let current = |at: usize| standing.rivals[at].1;
    let least = (0..proven.len()).min_by(|&one, &other| current(one).total_cmp(&current(other)));
    if let Some(least) = least.filter(|_| !is_decided)
        && proven.iter().all(|(_, ln)| *ln >= standing.threshold)
    {
        proven[least].1 = current(least);
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
