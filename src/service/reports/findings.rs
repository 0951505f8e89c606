//! The findings that an answer is made of.

use std::sync::Arc;

use crate::service::Service;
use crate::service::answer::Answer;
use crate::service::error::ServiceError;
use crate::service::kept::stored;
use crate::service::reports::alarms::{Alarm, traffic};
use crate::service::reports::claim::{ClaimKind, ClaimState};
use crate::service::reports::claims::ControlView;
use crate::service::reports::guardrails::{self, harms};
use crate::service::reports::leader::{Lead, lead};
use crate::service::reports::segment_claims::SegmentsView;
use crate::service::reports::verdict_basis::Waiting;
use rankduel_engine::clock::{days_after, days_since};
use rankduel_engine::experiment_spec::ConcludeAt;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::events::Status;

/// All that an answer is made of. Names are ids, times are Unix milliseconds.
#[derive(Debug)]
pub(crate) struct Findings {
    pub now: i64,
    /// When the newest log entry was recorded.
    pub recorded_at: i64,
    /// When the verdict was given.
    pub decided_at: Option<i64>,
    /// When it was found that preferences have changed, if ever.
    pub changed_at: Option<i64>,
    /// When the experiment was concluded.
    pub ended_at: Option<i64>,
    /// When the days are over that it runs at least, and those that it runs at most.
    pub days_end: Vec<i64>,
    /// Since when and why the service refuses answers.
    pub refused: Option<(i64, &'static str)>,
    pub experiment: String,
    pub status: Status,
    pub is_archived: bool,
    /// The ranker that a concluded experiment shows.
    pub shown: Option<String>,
    /// Whether the service may have concluded the experiment at a limit.
    pub ended_at_limit: bool,
    /// Whether answers wait to count.
    pub waits: bool,
    /// Whether rankers came or went.
    pub rankers_changed: bool,
    /// Whether the answers of some units are excluded.
    pub has_excluded: bool,
    /// The share of pages on which rankers meet after the end.
    pub watch: f64,
    /// Number of answered duels.
    pub duels: u64,
    /// Where orders decide, once somebody has clicked: whether orders wait to count.
    pub awaits_orders: Option<bool>,
    pub leader: String,
    pub winners: Vec<String>,
    /// Whether a duel of two rankers has counted.
    pub is_compared: bool,
    /// Number of active rankers other than the leader.
    pub rivals: usize,
    /// Number of rivals that are not ruled out.
    pub open: usize,
    /// Whether there would be a verdict if the answers that wait to count counted now.
    pub waiting_settle: bool,
    /// Whether the policy has run all its batches: it compares no more.
    pub policy_has_ended: bool,
    /// Whether the experiment will conclude by itself.
    pub concludes: bool,
    /// The conditions for that besides a verdict that do not hold yet, in words.
    pub awaits: Vec<String>,
    pub control: Option<ControlView>,
    pub margin: f64,
    /// The segments in which the winner loses.
    pub hurt: Vec<String>,
    /// The rankers that do harm, with the metric, and whether they are still shown.
    pub harms: Vec<(String, String, bool)>,
    /// The metrics whose limit the winner is not proven to keep.
    pub open_limits: Vec<String>,
    /// The alarms that this server sees.
    pub alarms: Vec<Alarm>,
    pub doubts: Vec<String>,
    /// The answer that was stored last.
    pub before: Option<Answer>,
}

/// The findings at the current log position or later.
pub(crate) async fn findings(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
) -> Result<Findings, ServiceError> {
    let lead = lead(&service.reports, loaded).await?;
    let (_, alarms) = traffic(service, loaded).await?;
    let ended_at = ended_at(service, loaded).await;
    let (now, refused) = (service.now_ms(), service.refused());
    let read = Arc::clone(loaded);
    let found = service.reports.read(move || {
        let fold = read.fold()?;
        Ok::<_, ServiceError>(Findings {
            ended_at,
            refused,
            ..found(&read, &fold, &lead, alarms, now)
        })
    });
    found.await?
}

/// When an experiment was concluded, from its log or else from its record.
async fn ended_at(service: &Service, loaded: &LoadedExperiment) -> Option<i64> {
    let since = loaded
        .fold()
        .ok()
        .filter(|fold| fold.state().lifecycle.is_concluded())?
        .state()
        .status_since;
    let entries = service.engine.store.read(loaded.id, since.checked_sub(1)?, 1).await;
    let entry = entries.ok()?.into_iter().find(|entry| entry.position == since);
    let updated_at = || loaded.with_record(|record| record.updated_at);
    Some(entry.map_or_else(updated_at, |entry| entry.recorded_at))
}

fn found(
    loaded: &LoadedExperiment,
    fold: &Fold,
    lead: &Lead,
    alarms: Vec<Alarm>,
    now: i64,
) -> Findings {
    let spec = &loaded.spec;
    let id = |ranker: usize| spec.rankers.get(ranker).map_or_else(String::new, |it| it.id.clone());
    let verdict = fold.run().verdict().verdict();
    let winners: Vec<String> = verdict
        .map(|verdict| verdict.winners.iter().map(|&winner| id(winner.into())).collect())
        .unwrap_or_default();
    let leader = verdict.map_or(lead.leader, |verdict| verdict.winner());
    let record = loaded.record();
    let has_ended = record.status == Status::Concluded;
    let harms = harms(loaded, fold).into_iter();
    let harms = harms.map(|harm| (id(harm.ranker), harm.metric.0, harm.is_active));
    let shown = record.winner.map_or(leader, usize::from);
    Findings {
        now,
        recorded_at: fold.state().recorded_at,
        decided_at: verdict.and_then(|_| Some(fold.run().race().points().last()?.recorded_at)),
        changed_at: fold.run().drift().and_then(|drift| Some(drift.alarms().last()?.at)),
        ended_at: None,
        days_end: days_end(loaded, fold, now),
        refused: None,
        experiment: loaded.name.clone(),
        status: record.status,
        is_archived: record.archived_at.is_some(),
        shown: has_ended.then(|| id(shown)),
        ended_at_limit: fold
            .state()
            .concluded_by_itself
            .as_deref()
            .is_some_and(|reason| !reason.is_empty())
            && spec.conclude_at.is_some_and(|at| at.max_days.is_some() || at.max_duels.is_some()),
        waits: Waiting::of(fold).is_some(),
        rankers_changed: fold.state().roster_changes() > 0,
        has_excluded: fold.state().excluded.units() > 0,
        watch: spec.watch,
        duels: lead.duels,
        awaits_orders: fold
            .state()
            .baskets
            .as_ref()
            .filter(|baskets| baskets.units() != (0, 0))
            .map(|_| Waiting::of(fold).is_some()),
        leader: id(leader),
        is_compared: lead.compared,
        rivals: lead.rivals,
        open: lead.open,
        waiting_settle: lead.waiting_settle,
        policy_has_ended: fold.run().policy().batches().is_some_and(|it| it.number().is_none()),
        concludes: spec.conclude_at.is_some()
            && fold.state().concluded_by_itself.as_deref().is_none()
            && lead.doubts.is_empty(),
        awaits: awaits(loaded, fold, leader, days_since(record.created_at, now)),
        control: fold
            .run()
            .claims()
            .and_then(|held| ControlView::of(loaded, held, verdict, leader, has_ended)),
        margin: fold.run().verdict().target().margin,
        hurt: SegmentsView::of(loaded, fold)
            .map(|view| view.hurt.iter().map(ToString::to_string).collect())
            .unwrap_or_default(),
        harms: harms.collect(),
        open_limits: winners.first().map(|id| open_limits(loaded, fold, id)).unwrap_or_default(),
        winners,
        alarms,
        doubts: lead.doubts.clone(),
        before: stored(&record),
    }
}

/// When the days of an experiment that ends by itself are over.
fn days_end(loaded: &LoadedExperiment, fold: &Fold, now: i64) -> Vec<i64> {
    let (runs, created_at) = loaded.with_record(|record| {
        (record.status == Status::Running && record.archived_at.is_none(), record.created_at)
    });
    let ends = runs && fold.state().concluded_by_itself.is_none();
    let Some(at) = loaded.spec.conclude_at.filter(|_| ends) else { return Vec::new() };
    let end = |days: f64| days_after(created_at, days);
    let least = at.min_days.map(end).filter(|end| *end > now);
    least.into_iter().chain(at.max_days.map(end)).collect()
}

/// The things that an experiment with this winner awaits before it ends by itself, in words.
fn awaits(loaded: &LoadedExperiment, fold: &Fold, winner: usize, days: f64) -> Vec<String> {
    let Some(at) = loaded.spec.conclude_at else { return Vec::new() };
    let mut awaits = Vec::new();
    let is_settled = |control, segments| {
        fold.settled_verdict(&ConcludeAt { control, segments, ..at })
            .is_some_and(|verdict| verdict.winner() == winner)
    };
    if at.control && !is_settled(true, false) {
        awaits.push("the comparison with what you run now is known".to_owned());
    }
    if at.segments && !is_settled(false, true) {
        awaits.push("its segments are known".to_owned());
    }
    if let Some(least) = at.min_days.filter(|least| days < *least) {
        let days = if least == 1.0 { "a day".into() } else { format!("{least} days") };
        awaits.push(format!("it has run for {days}"));
    }
    awaits
}

/// The metrics whose limit this ranker is not proven to keep.
fn open_limits(loaded: &LoadedExperiment, fold: &Fold, ranker: &str) -> Vec<String> {
    let mut open: Vec<String> = guardrails::claims(loaded, fold)
        .into_iter()
        .filter(|claim| claim.claim == ClaimKind::Safe && claim.ranker.as_deref() == Some(ranker))
        .filter_map(|claim| {
            let metric = claim.metric?;
            let holds = claim.state == ClaimState::Decided && !metric.uneven;
            (!holds).then_some(metric.name)
        })
        .collect();
    open.dedup();
    open
}
