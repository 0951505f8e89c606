//! The data of the pages of an experiment, from the reports of the service.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use maud::{Markup, html};
use serde_json::Value;

use crate::service::Service;
use crate::service::answer::{Answer, SeenAlarm};
use crate::service::answers;
use crate::service::batches::{BatchPart, OpenBatch, batch};
use crate::service::error::ServiceError;
use crate::service::reports::alarms::{AlarmKind, traffic};
use crate::service::reports::claim::{Claim as ListedClaim, ClaimKind};
use crate::service::reports::claims::ControlView;
use crate::service::reports::fold_copy::FoldCopy;
use crate::service::reports::guardrails;
use crate::service::reports::regret::{RegretReport, regret};
use crate::service::reports::segments::{SegmentRow, SegmentsReport, segments};
use crate::service::reports::single_flight::Computed;
use crate::service::reports::statistics::{Statistics, statistics};
use crate::service::reports::traffic::TrafficSummary;
use crate::service::reports::verdict::verdict;
use crate::service::reports::verdict_basis::Waiting;
use crate::service::reports::verdict_pairs::Effect;
use crate::service::reports::verdict_report::{
    RankerVerdict, Verdict, VerdictParameters, VerdictState,
};
use dueling_bandits::claims::control::Claim;
use dueling_bandits::claims::drift::Drift;
use dueling_bandits::{Bandit as _, InFlight, Tally, step_rng};
use rankduel_engine::clock::days_after;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::events::Status;
use rankduel_store::{AuditRecord, ExperimentRecord};

use super::forecast::{Pace, When};
use super::layout::{Tab, Visitor, labels, of_experiments};

/// Pairs of the open batch that a page lists.
const MISSING_PAIRS: BatchPart = BatchPart { offset: 0, limit: 20, missing: true };

/// The data of a page of an experiment.
pub(crate) struct View {
    reports: PageReports,
    pub fold: FoldData,
    pub loaded: Arc<LoadedExperiment>,
    pub record: ExperimentRecord,
    pub visitor: Visitor,
    /// Ids of the rankers, in the experiment's order.
    pub ids: Vec<String>,
    /// Their short names for pictures.
    pub labels: Vec<String>,
    /// Indices of the rankers: the leader, then the most probable ones; retired ones last, and the
    /// second id of a canary at the end.
    pub order: Vec<usize>,
    /// The second id of a canary, which takes no part in the tournament.
    pub twin: Option<usize>,
    /// Answered duels and pages of one ranker.
    pub pages: u64,
}

impl Deref for View {
    type Target = PageReports;

    fn deref(&self) -> &PageReports {
        &self.reports
    }
}

/// The reports that a page shows, which others share.
pub(crate) struct PageReports {
    pub verdict: Arc<Computed<Verdict>>,
    /// Only on the page on evidence.
    pub regret: Option<Arc<Computed<RegretReport>>>,
    /// Of the leader, by declared segment. Only on the page of the result.
    pub whom: Option<Arc<Computed<SegmentsReport>>>,
    pub traffic: TrafficSummary,
    pub answer: Answer,
    /// Only on the page on traffic.
    pub statistics: Option<Arc<Computed<Statistics>>>,
    /// The open batch, for a policy that runs in batches; only on the page on traffic.
    pub batch: Option<OpenBatch>,
    /// The newest changes, the newest first. Only on the pages of the result and on evidence.
    pub changes: Vec<Changed>,
    /// Unix milliseconds.
    pub now: i64,
}

/// A change of the experiment, from the audit log.
pub(crate) struct Changed {
    /// Unix milliseconds.
    pub at: i64,
    /// The names of the fields, or of the change.
    pub what: String,
    /// Whether it is paused from then on, if the status has changed.
    is_paused: Option<bool>,
}

/// Most changes that charts mark.
const CHANGES_MAX: u32 = 20;
/// How long a page waits for them.
const CHANGES_WITHIN: Duration = Duration::from_millis(250);

impl Changed {
    /// None if the database does not reply at once: the rest of the page is from memory, and is
    /// there without it.
    async fn newest(service: &Service, experiment: &str) -> Vec<Self> {
        let log = service.engine.store.audit_page(Some(experiment), None, CHANGES_MAX);
        let Ok(Ok(page)) = tokio::time::timeout(CHANGES_WITHIN, log).await else {
            return Vec::new();
        };
        page.records.into_iter().filter_map(Self::of).collect()
    }

    /// `None` if the entry is about the creation.
    fn of(entry: AuditRecord) -> Option<Self> {
        let what = match (entry.what.strip_prefix("experiment-")?, &entry.after) {
            ("created", _) => return None,
            ("changed", Some(Value::Object(fields))) => {
                let named = |(field, value): (&String, &Value)| match (&**field, value.as_str()) {
                    ("status", Some("running")) => "resumed".to_owned(),
                    ("status", Some(status)) => status.to_owned(),
                    _ => field.clone(),
                };
                fields.iter().map(named).collect::<Vec<_>>().join(", ")
            }
            (what, _) => what.to_owned(),
        };
        let status = entry.after.as_ref().and_then(|after| after.get("status")?.as_str());
        Some(Self { at: entry.at, what, is_paused: status.map(|status| status == "paused") })
    }

    /// From when until when it was paused; `changes` has the newest first.
    fn pauses(changes: &[Self]) -> Vec<(i64, i64)> {
        let mut pauses = Vec::new();
        let mut since = None;
        for change in changes.iter().rev() {
            match change.is_paused {
                Some(true) => since = since.or(Some(change.at)),
                Some(false) => pauses.extend(since.take().map(|since| (since, change.at))),
                None => {}
            }
        }
        pauses
    }
}

impl PageReports {
    pub async fn of(
        service: &Arc<Service>,
        loaded: &Arc<LoadedExperiment>,
        tab: Tab,
    ) -> Result<Self, ServiceError> {
        let target = loaded.spec.verdict_target();
        let answer = answers::current(service, loaded).await?;
        let of = VerdictParameters::of(loaded, target, &answer);
        let verdict = verdict(&service.reports, loaded, of, &answer).await?;
        let (traffic, _) = traffic(service, loaded).await?;
        let (mut regrets, mut whom, mut pages, mut open) = (None, None, None, None);
        let mut changes = Vec::new();
        match tab {
            Tab::Evidence => {
                regrets = Some(regret(&service.reports, loaded).await?);
                changes = Changed::newest(service, &loaded.name).await;
            }
            Tab::Traffic => {
                pages = Some(statistics(&service.reports, loaded, None).await?);
                if loaded.fold()?.run().policy().batches().is_some() {
                    open = Some(batch(service, &loaded.name, MISSING_PAIRS).await?);
                }
            }
            Tab::Result => {
                let leader = loaded.spec.ranker_index(&verdict.leader).unwrap_or_default();
                whom = Some(segments(&service.reports, loaded, Some(leader)).await?);
                changes = Changed::newest(service, &loaded.name).await;
            }
            Tab::Manage => {}
        }
        let now = service.now_ms();
        let (regret, statistics, batch) = (regrets, pages, open);
        Ok(Self { verdict, regret, whom, traffic, answer, statistics, batch, changes, now })
    }
}

/// The part of the fold that a page needs.
pub(crate) struct FoldData {
    fold: FoldCopy,
    pub pace: Pace,
    /// The error of the claim that a ranker is better than the control.
    pub control_error: f64,
    /// The answers that count or wait.
    pub expected: Tally,
    /// The error of the claims that the winner loses in a segment; `None` without segments.
    pub segments_error: Option<f64>,
    /// The claims about metrics.
    pub guardrails: Vec<ListedClaim>,
    pub drift: Option<Drift>,
    /// Whether any of the next duels would have two rankers.
    pub compares: bool,
}

/// Selections that tell whether rankers still meet.
const SELECTIONS: u64 = 16;

impl Deref for FoldData {
    type Target = FoldCopy;

    fn deref(&self) -> &FoldCopy {
        &self.fold
    }
}

impl FoldData {
    pub fn of(loaded: &LoadedExperiment, now: i64) -> Result<Self, ServiceError> {
        let fold = loaded.fold()?;
        let (cohorts, counted) = (fold.run().cohorts(), fold.run().verdict().counted());
        let tally = fold.run().policy().tally();
        Ok(Self {
            fold: FoldCopy::of(&fold),
            pace: Pace::of(&fold, &loaded.record(), now),
            // after a change of the rankers, `counted` lacks all earlier answers, which the page
            // shows
            expected: match counted.leaves_out() && fold.state().roster_changes() == 0 {
                true => counted.with_waiting(&cohorts.expected()).of(tally),
                false => tally.clone(),
            },
            segments_error: fold.run().segments().map(|of| of.hurt_error()),
            control_error: fold.run().claims().map_or(0.0, |held| held.error(Claim::Better)),
            guardrails: guardrails::claims(loaded, &fold),
            drift: fold.run().drift().cloned(),
            // costs time with many rankers, and matters once there is a verdict
            compares: fold.run().verdict().verdict().is_none() || {
                let next = |at| fold.run().select(&InFlight::new(), &mut step_rng(0, at));
                (0..SELECTIONS).any(|at| !next(at).duel.is_self())
            },
        })
    }
}

impl View {
    /// The data of a page.
    pub fn new(
        loaded: Arc<LoadedExperiment>,
        reports: PageReports,
        mut fold: FoldData,
        visitor: Visitor,
    ) -> Self {
        fold.pace = fold.pace.without(&Changed::pauses(&reports.changes));
        let ids: Vec<String> = loaded.spec.rankers.iter().map(|ranker| ranker.id.clone()).collect();
        let (verdict, twin) = (&reports.verdict, loaded.spec.held_out());
        let mut order: Vec<usize> = (0..ids.len()).collect();
        let chance = |of: usize| verdict.rankers[of].best_probability;
        order.sort_by(|&i, &j| chance(j).total_cmp(&chance(i)));
        // The sort is stable, so it keeps the order within each group.
        let last =
            |i: usize| (ids[i] != verdict.leader, !fold.roster.is_active(i), twin == Some(i));
        order.sort_by_key(|&i| last(i));
        let record = loaded.record();
        let pages = fold.steps();
        Self {
            labels: labels(&ids),
            reports,
            fold,
            loaded,
            record,
            visitor,
            ids,
            order,
            twin,
            pages,
        }
    }

    /// The results of the leader in each declared segment.
    pub fn segments(&self) -> &[SegmentRow] {
        self.whom.as_ref().map_or(&[], |of| &of.segments)
    }

    /// The answers that wait, if any do.
    pub fn waiting(&self) -> Option<&Waiting> {
        self.verdict.waiting.as_ref()
    }

    /// The active rankers, the leader first.
    pub fn active(&self) -> &[usize] {
        &self.order[..self.fold.roster.active().len()]
    }

    pub fn leader(&self) -> usize {
        self.order[0]
    }

    pub fn is_decided(&self) -> bool {
        self.verdict.state == VerdictState::Decided
    }

    /// Whether a page had a winner.
    pub fn has_compared(&self) -> bool {
        self.verdict.state != VerdictState::NothingKnown
    }

    /// The short name of a ranker, and its whole one where it is pointed at.
    pub fn short(&self, id: &str) -> Markup {
        let label = self.loaded.spec.ranker_index(id).map_or(id, |index| &self.labels[index]);
        html! { bdi.r.nb title=[(label != id).then_some(id)] { (label) } }
    }

    /// Whether it issues duels.
    pub fn runs(&self) -> bool {
        self.record.archived_at.is_none() && self.record.status == Status::Running
    }

    /// Whether it has ended: duels are issued at most to watch the winner.
    pub fn has_ended(&self) -> bool {
        self.record.status == Status::Concluded
    }

    /// Whether an alarm says that answers are missing for some rankers more often than for others,
    /// so that no number can be trusted.
    pub fn is_untrusted(&self) -> bool {
        self.answer.alarms.iter().filter_map(SeenAlarm::known).any(AlarmKind::is_evidence)
    }

    /// Whether preferences have changed since the result.
    pub fn has_changed(&self) -> bool {
        let changed = |alarm: &SeenAlarm| alarm.kind == "changed-preferences";
        self.is_decided() && self.answer.alarms.iter().any(changed)
    }

    /// Whether there is a winner, and the experiment goes on to compare it with the control.
    pub fn awaits_control(&self) -> bool {
        let open = |of: &ControlView| !of.settled && of.proven != Some(ClaimKind::Better);
        let control = self.verdict.control.as_ref();
        self.is_decided()
            && self.runs()
            && control.is_some_and(|of| of.ranker != of.control && open(of))
    }

    /// Whether more answers change nothing that the page says about the result.
    pub fn is_over(&self) -> bool {
        self.is_decided() || self.has_ended()
    }

    /// The rivals of the leader that are not ruled out, the one with the least evidence against it
    /// first. Several winners are not rivals of one another.
    pub fn open_rivals(&self) -> Vec<&Effect> {
        self.rivals().filter(|rival| !rival.ruled_out).collect()
    }

    fn rivals(&self) -> impl Iterator<Item = &Effect> {
        let effects = &self.verdict.effects;
        let of = |row: &RankerVerdict| effects.iter().find(|effect| effect.rival == row.id);
        self.evidence().into_iter().filter_map(move |(_, row)| of(row))
    }

    /// Where the share of wins of the leader over a rival lies. The claim against the control is
    /// about their own duels alone.
    pub fn interval(&self, effect: &Effect) -> (f64, f64) {
        let (verdict, high) = (&self.verdict, effect.high);
        let is_of_pair =
            |it: &&ControlView| it.control == effect.rival && it.ranker == verdict.leader;
        let claim = verdict.control.as_ref().filter(is_of_pair);
        let better = claim.map(|it| it.at_least.filter(|_| it.proven == Some(ClaimKind::Better)));
        let low = match better {
            // each end was proven at another time
            _ if self.has_changed() => return (effect.low.min(high), effect.low.max(high)),
            Some(Some(least)) => effect.low.max(least),
            Some(None) => effect.low.min(0.5),
            None => effect.low,
        };
        (low, high.max(low))
    }

    /// The rivals with the evidence against them, the least first.
    pub fn evidence(&self) -> Vec<(usize, &RankerVerdict)> {
        let rows = self.verdict.rankers.iter().enumerate().filter(|(_, row)| !row.certain);
        let mut rows: Vec<_> = rows.filter(|(_, row)| row.evidence_against.is_some()).collect();
        let of = |row: &RankerVerdict| row.evidence_against.unwrap_or(0.0);
        rows.sort_by(|one, other| of(one.1).total_cmp(&of(other.1)));
        rows
    }

    /// The error of a result, as a share of experiments.
    pub fn error(&self) -> String {
        of_experiments(1.0 - self.verdict.confidence)
    }

    /// When the result is expected.
    pub fn when(&self) -> When {
        match When::of(&self.verdict, self.fold.pace) {
            _ if self.is_untrusted() => {
                When::Unknown("no date can be trusted: see the alarm".into())
            }
            // the last page counts once its answer can no longer come
            When::About(at, _) if self.limit_at().is_some_and(|limit| limit < at) => {
                When::Unknown("the experiment reaches its limit of days or answers first".into())
            }
            When::About(at, high) => {
                let window = self.loaded.spec.answer_window_ms();
                When::About(at + window, high.map(|high| high + window))
            }
            other => other,
        }
    }

    /// When an experiment that ends by itself reaches its limit.
    fn limit_at(&self) -> Option<i64> {
        let at = self.loaded.spec.conclude_at.filter(|_| self.verdict.concludes_by_itself)?;
        let by_days = at.max_days.map(|days| days_after(self.record.created_at, days));
        let answered = self.fold.counts.answered_duels();
        let left = at.max_duels.map(|most| most.saturating_sub(answered));
        let by_duels = left.and_then(|left| self.fold.pace.after(left));
        by_days.into_iter().chain(by_duels).min()
    }

    /// When the result came, in Unix milliseconds.
    pub fn decided_at(&self) -> Option<i64> {
        self.fold.race.last().filter(|_| self.is_decided()).map(|point| point.recorded_at)
    }
}
