//! The verdict: which ranker is best, and with what confidence.

use std::borrow::Cow;
use std::sync::Arc;

use crate::service::answer::Answer;
use crate::service::error::ServiceError;
use crate::service::reports::claims::ControlView;
use crate::service::reports::drift::DriftClaim;
use crate::service::reports::duels_to_go::{DuelsToGo, duels_to_go, forecast_input};
use crate::service::reports::fold_copy::{FoldCopy, verdict_rng, winners};
use crate::service::reports::leader::{keep_proven, possible};
use crate::service::reports::orders::OrdersInput;
use crate::service::reports::pool::ReportPool;
use crate::service::reports::segment_claims::SegmentsView;
use crate::service::reports::single_flight::{Computed, newest};
use crate::service::reports::verdict_basis::{VerdictBasis, Waiting, answered_each};
use crate::service::reports::verdict_pairs::{deciding_pairs, effects};
use crate::service::reports::verdict_report::{
    Conclusion, RankerVerdict, Verdict, VerdictParameters, VerdictState,
};
use crate::service::reports::verdict_sentence::{claim, sentence};
use dueling_bandits::claims::control::ControlClaims;
use dueling_bandits::claims::drift::Drift;
use dueling_bandits::evidence::EqualAnswers;
use dueling_bandits::evidence::posterior::WinnerProbabilities;
use dueling_bandits::evidence::{Posterior, Standing, Target, VerdictTracker};
use dueling_bandits::forecast::Present;
use rankduel_engine::experiment_spec::{CONFIDENCE, MARGIN};
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::events::Status;

/// A forecast assumes that at least this share of pages counts.
const LEAST_SHARE: f64 = 0.001;
/// Evidence beyond this is reported as this.
const MOST_EVIDENCE: f64 = 1e15;

/// The verdict with these parameters, at the current log position or later. `answer` is the answer
/// that holds.
pub async fn verdict(
    reports: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
    parameters: VerdictParameters,
    answer: &Answer,
) -> Result<Arc<Computed<Verdict>>, ServiceError> {
    let target = parameters.target;
    let answer = answer.clone();
    let read = Arc::clone(loaded);
    let copy = move |fold: &Fold| VerdictInput {
        segments: SegmentsView::of(&read, fold),
        ..VerdictInput::of(fold, forecast_input(&read, fold, target))
    };
    let compute =
        move |loaded: &LoadedExperiment, input| verdict_of(loaded, &input, parameters, answer);
    newest(reports, loaded, parameters, copy, compute).await
}

/// The copied state that a verdict is computed from.
struct VerdictInput {
    copy: FoldCopy,
    basis: VerdictBasis,
    claims: Option<ControlClaims>,
    segments: Option<SegmentsView>,
    orders: Option<OrdersInput>,
    waits: Option<Waiting>,
    /// The answers that wait and are expected to count.
    waiting: Vec<EqualAnswers>,
    /// Number of answers that do not count, and will not.
    left_out: u64,
    drift: Option<Drift>,
    /// Whether the log up to here concludes the experiment. The record may be newer or older.
    is_concluded: bool,
    /// Why the service concluded the experiment by itself, if it has; empty once a person has
    /// decided otherwise.
    by_itself: Option<String>,
    /// The state of the policy, if a forecast needs it.
    saved: Option<Vec<u8>>,
}

impl VerdictInput {
    fn of(fold: &Fold, saved: Option<Vec<u8>>) -> Self {
        Self {
            copy: FoldCopy::of(fold),
            basis: VerdictBasis::of(fold),
            claims: fold.run().claims().cloned(),
            segments: None,
            orders: OrdersInput::of(fold),
            waits: Waiting::of(fold),
            waiting: fold.expected(),
            left_out: fold.run().cohorts().left_out().total(),
            drift: fold.run().drift().cloned(),
            is_concluded: fold.state().lifecycle.is_concluded(),
            by_itself: fold.state().concluded_by_itself.as_deref().map(str::to_owned),
            saved,
        }
    }

    /// The tracker at this target.
    fn tracker_at(&self, target: Target) -> Cow<'_, VerdictTracker> {
        let FoldCopy { tracker: own, tally, roster, .. } = &self.copy;
        match target == own.target() {
            true => Cow::Borrowed(own),
            false => Cow::Owned(own.judge(target, tally, roster.active())),
        }
    }

    /// The share of answered duels that have a winner and count or wait.
    fn counting_share(&self) -> f64 {
        let answered = self.copy.counts.answered_duels().max(1) as f64;
        // an answer that was left out has had a winner as often as any other
        let decided = 1.0 / answered_each(&self.copy.counts, &self.copy.tally);
        (decided * (1.0 - self.left_out as f64 / answered)).clamp(LEAST_SHARE, 1.0)
    }
}

/// The target of a verdict: as requested, else as the experiment says. An error is the name of an
/// invalid value, and what is wrong with the value.
pub fn requested_target(
    loaded: &LoadedExperiment,
    confidence: Option<f64>,
    margin: Option<f64>,
) -> Result<Target, (&'static str, String)> {
    let own = loaded.spec.verdict_target();
    let target = Target {
        confidence: confidence.unwrap_or(own.confidence),
        margin: margin.unwrap_or(own.margin),
    };
    let values = [("confidence", target.confidence, CONFIDENCE), ("margin", target.margin, MARGIN)];
    for (name, value, range) in values {
        if !range.contains(&value) {
            let (from, to) = (range.start(), range.end());
            return Err((name, format!("`{name}` is {value:?}; it must be {from} to {to}")));
        }
    }
    Ok(target)
}

/// The evidence of an experiment at one target.
struct Judgement<'a> {
    tracker: Cow<'a, VerdictTracker>,
    winners: Vec<usize>,
    /// The winners, or the leader and the rivals that are not ruled out.
    possible: Vec<usize>,
    chances: WinnerProbabilities,
    /// The evidence for the first winner or the leader now.
    standing_now: Standing,
    /// The same with all that was proven since this ranker leads.
    standing: Standing,
    /// The same if the answers that wait counted now, while the verdict is open.
    preview: Option<Standing>,
    concluded: Option<Conclusion>,
    /// The forecast, or why there is none.
    duels_to_go: Result<DuelsToGo, String>,
}

/// Judge the copied state at this target. `draws` is the number of posterior draws.
fn judge<'a>(
    loaded: &LoadedExperiment,
    input: &'a VerdictInput,
    target: Target,
    draws: usize,
) -> Judgement<'a> {
    let copy = &input.copy;
    let FoldCopy { tally, roster, .. } = copy;
    let active = roster.active();
    let is_own = target == copy.tracker.target();
    let tracker = input.tracker_at(target);
    let winners = winners(&tracker);
    let is_open = winners.is_empty();
    let rng = &mut verdict_rng(loaded.with_record(|record| record.seed));
    let chances = Posterior::among(tally, roster).winner_probabilities(draws, rng);
    let leader = copy.most_probable(&chances.copeland, &winners);
    let standing_now = tracker.standing(tally, active, leader);
    let mut standing = standing_now.clone();
    if is_own {
        keep_proven(&mut standing, &copy.race, !is_open);
    }
    let with_waiting =
        if is_open { copy.tracker_with_waiting(&input.waiting, target) } else { None };
    let concluded = conclusion(loaded, input);
    let duels_to_go = if concluded.is_some() && is_open {
        Err("the experiment is concluded".to_owned())
    } else {
        let present = Present { tally, roster, tracker: with_waiting.as_ref().unwrap_or(&tracker) };
        duels_to_go(loaded, present, is_own, input.counting_share(), input.saved.as_deref(), rng)
    };
    Judgement {
        possible: possible(&standing, &winners),
        preview: with_waiting.map(|tracker| tracker.standing(tally, active, leader)),
        tracker,
        winners,
        chances,
        standing_now,
        standing,
        concluded,
        duels_to_go,
    }
}

impl Judgement<'_> {
    fn of_ranker(&self, id: String, index: usize, is_retired: bool) -> RankerVerdict {
        let against = |standing: &Standing| {
            let rival = standing.rivals.iter().find(|(rival, _)| *rival == index);
            rival.map(|(_, ln)| ln.exp().min(MOST_EVIDENCE))
        };
        RankerVerdict {
            id,
            retired: is_retired,
            possible: self.possible.contains(&index),
            certain: self.winners.contains(&index),
            evidence_against: against(&self.standing),
            evidence_with_waiting: self.preview.as_ref().and_then(against),
            copeland_probability: self.chances.copeland[index],
            best_probability: self.chances.shared[index],
            condorcet_probability: self.chances.condorcet[index],
        }
    }
}

fn verdict_of(
    loaded: &LoadedExperiment,
    input: &VerdictInput,
    parameters: VerdictParameters,
    answer: Answer,
) -> Verdict {
    let target = parameters.target;
    let copy = &input.copy;
    let FoldCopy { tally, roster, .. } = copy;
    let active = roster.active();
    let draws = Posterior::draws(tally.rankers());
    let judgement = judge(loaded, input, target, draws);
    let Judgement { tracker, winners, possible, standing, .. } = &judgement;
    let certified = tracker.verdict();
    let is_decided = !winners.is_empty();
    let id = |ranker: usize| loaded.spec.rankers[ranker].id.clone();
    let ids = |rankers: &[usize]| rankers.iter().map(|&ranker| id(ranker)).collect();
    let mut rests_on = input.basis.clone();
    if let Some(&winner) = winners.first() {
        rests_on.note_loss(tracker, tally, active, (winner, &id(winner)));
    }
    let is_ruled_out = |rival| !possible.contains(&rival);
    let effects = effects(loaded, (tracker, tally, active), &judgement.standing_now, is_ruled_out);
    let (deciding_pairs, deciding_pairs_total) = match is_decided {
        true => (Vec::new(), 0),
        false => deciding_pairs(loaded, tracker, tally, active),
    };
    let rankers = (0..tally.rankers())
        .map(|ranker| judgement.of_ranker(id(ranker), ranker, !roster.is_active(ranker)));
    let concluded = judgement.concluded.clone();
    let mut verdict = Verdict {
        of: parameters,
        experiment: loaded.name.clone(),
        position: copy.position,
        duels: copy.counts.answered_duels(),
        confidence: target.confidence,
        margin: target.margin,
        state: match (is_decided, copy.has_compared()) {
            (true, _) => VerdictState::Decided,
            (false, true) => VerdictState::Open,
            (false, false) => VerdictState::NothingKnown,
        },
        answer,
        sentence: String::new(),
        claim: String::new(),
        condorcet: certified.is_some_and(|verdict| verdict.condorcet_steps.is_some()),
        decided_after_duels: certified.map(|verdict| verdict.comparisons),
        leader: id(standing.ranker),
        evidence_needed: standing.threshold.exp(),
        rankers: rankers.collect(),
        possible: ids(possible),
        winners: ids(winners),
        deciding_pairs,
        deciding_pairs_total,
        control: input.claims.as_ref().and_then(|held| {
            let verdict = copy.tracker.verdict();
            ControlView::of(loaded, held, verdict, standing.ranker, concluded.is_some())
        }),
        segments: input.segments.clone(),
        orders: input
            .orders
            .as_ref()
            .map(|orders| orders.view(loaded, standing.ranker, &effects, target.confidence)),
        effects,
        duels_to_go: judgement.duels_to_go.as_ref().ok().copied(),
        duels_to_go_reason: judgement.duels_to_go.as_ref().err().cloned(),
        waiting: input.waits.clone(),
        concludes_by_itself: loaded.spec.conclude_at.is_some()
            && input.by_itself.is_none()
            && rests_on.doubts.is_empty(),
        rests_on,
        drift: input.drift.as_ref().map(|drift| DriftClaim::of(drift, &id)),
        draws,
        conclude_at: loaded.spec.conclude_at,
        concluded,
    };
    verdict.claim = claim(&verdict);
    verdict.sentence = sentence(&verdict, target == copy.tracker.target());
    verdict
}

/// How the experiment ended, once its record and its log both say so: a replica may know the record
/// before the log entry that says by whom.
fn conclusion(loaded: &LoadedExperiment, input: &VerdictInput) -> Option<Conclusion> {
    let (status, winner) = loaded.with_record(|record| (record.status, record.winner));
    let reason = input.by_itself.clone().filter(|why| !why.is_empty());
    (status == Status::Concluded && input.is_concluded).then(|| Conclusion {
        winner: winner.map(|winner| loaded.spec.rankers[usize::from(winner)].id.clone()),
        automatic: reason.is_some(),
        reason,
    })
}
