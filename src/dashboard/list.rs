//! `/`: the list of experiments.

use std::sync::Arc;

use maud::{Markup, html};

use super::answer::{When, ruled_out, shows};
use super::layout::{Mark, Visitor, badge, day, hour, moment, name, number, timestamp};
use super::view::Pace;
use crate::service::Service;
use crate::service::conclusion::days_since;
use crate::service::reports::leader::{Lead, lead};
use crate::service::reports::single_flight::Computed;
use crate::service::reports::traffic::traffic;
use crate::service::reports::verdict::{Verdict, known_verdict, verdict};
use dueling_bandits::claims::control::{Claim, ControlClaims, Progress};
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::ExperimentRecord;
use rankduel_store::events::Status;

pub(crate) struct Row {
    pub record: ExperimentRecord,
    /// `None` if the experiment is not in memory. A list loads none.
    pub loaded: Option<Summary>,
}

/// The row of an experiment in memory.
pub(crate) struct Summary {
    loaded: Arc<LoadedExperiment>,
    lead: Arc<Computed<Lead>>,
    alarms: Vec<&'static str>,
    pace: Pace,
    /// Answered duels and pages of one ranker.
    pages: u64,
    /// The control, and whether the leader is proven to be better.
    control: Option<(usize, bool)>,
    /// Whether the winner is proven to lose in a segment.
    hurts: bool,
    /// When the result came, in Unix milliseconds.
    decided_at: Option<i64>,
    /// When it ended without a result, if its log still says so.
    ended_at: Option<i64>,
    /// Whether it has a result and goes on by itself, for the control, for segments or for its
    /// least number of days.
    goes_on: bool,
    verdict: Option<Arc<Computed<Verdict>>>,
}

impl Summary {
    /// The summary of an experiment; `None` while its state is folded again.
    pub async fn of(
        service: &Arc<Service>,
        loaded: Arc<LoadedExperiment>,
        now: i64,
    ) -> Option<Self> {
        let lead = lead(&service.reports, &loaded).await.ok()?;
        let (_, alarms) = traffic(service, &loaded).await.ok()?;
        let verdict = known_verdict(&loaded);
        let is_open = lead.winners.is_empty();
        let ended_at = if is_open { ended_at(service, &loaded).await } else { None };
        let fold = loaded.fold().ok()?;
        let is_better = |held: &ControlClaims| {
            matches!(held.progress(lead.leader, Claim::Better), Progress::Decided { .. })
        };
        let last = fold.race().points().last().map(|point| point.recorded_at);
        Some(Self {
            alarms: alarms.iter().map(|alarm| alarm.title).collect(),
            pace: Pace::of(&fold, &loaded.record(), now),
            pages: fold.counts().answered_duels() + fold.counts().self_duels,
            control: fold.claims().and_then(|held| Some((held.control()?, is_better(held)))),
            hurts: fold.segments().is_some_and(|held| held.hurt_segments().next().is_some()),
            decided_at: last.filter(|_| !is_open),
            ended_at,
            goes_on: loaded.spec.conclude_at.is_some_and(|at| {
                let days = days_since(loaded.with_record(|record| record.created_at), now);
                fold.settled_verdict(&at).is_none() || at.min_days.is_some_and(|least| days < least)
            }),
            verdict,
            lead,
            loaded: Arc::clone(&loaded),
        })
    }

    fn is_decided(&self) -> bool {
        !self.lead.winners.is_empty()
    }

    /// Whether nothing speaks against making the winner the default, and no more answers come.
    fn may_ship(&self) -> bool {
        let runs = self.loaded.with_record(|record| record.status == Status::Running);
        let is_open = runs && self.loaded.spec.conclude_at.is_some();
        let is_better = self.control.is_none_or(|(_, is_better)| is_better);
        is_better && self.alarms.is_empty() && !self.hurts && !is_open
    }

    fn id(&self, ranker: usize) -> Markup {
        name(self.loaded.spec.rankers.get(ranker).map_or("", |ranker| &ranker.id))
    }
}

/// When an experiment was concluded, from its log, in Unix milliseconds.
async fn ended_at(service: &Service, loaded: &LoadedExperiment) -> Option<i64> {
    let since = loaded.fold().ok().filter(|fold| fold.is_concluded())?.status_since();
    let entries = service.engine.store.read(loaded.id, since.checked_sub(1)?, 1).await.ok()?;
    entries.first().filter(|entry| entry.position == since).map(|entry| entry.recorded_at)
}

/// Compute the forecast of an experiment that runs. Without one, its row has no date.
pub(crate) async fn forecast(service: &Arc<Service>, loaded: &Arc<LoadedExperiment>) {
    let is_open = |fold: &Fold| fold.verdict().verdict().is_none();
    let runs = loaded.with_record(|record| record.status == Status::Running);
    if runs && loaded.fold().is_ok_and(|fold| is_open(&fold)) {
        drop(verdict(&service.reports, loaded, loaded.spec.verdict_target()).await);
    }
}

/// The groups of the list, in their order.
const GROUPS: [&str; 4] = ["Needs you", "Running", "Finished", "Not in memory"];

impl Row {
    fn group(&self) -> &'static str {
        let [needs_you, running, finished, others] = GROUPS;
        match (self.record.status, &self.loaded) {
            (Status::Concluded, _) => finished,
            (_, None) => others,
            (_, Some(of)) if !of.alarms.is_empty() => needs_you,
            (Status::Running, Some(of)) if of.goes_on => running,
            (_, Some(of)) if of.is_decided() => needs_you,
            _ => running,
        }
    }
}

/// A page of the list. `next` is the name after which the next page starts, `is_first` says whether
/// this is the first page.
pub(crate) fn page(
    rows: &[Row],
    next: Option<&str>,
    is_first: bool,
    now: i64,
    visitor: Visitor,
) -> Markup {
    html! {
        div.title {
            h1 { "Experiments" }
            @if visitor.manages { a.button href="/new-experiment" { "New experiment" } }
        }
        @if rows.is_empty() && is_first { (none_yet(visitor)) }
        @for group in GROUPS {
            @let own: Vec<_> = rows.iter().filter(|row| row.group() == group).collect();
            @if !own.is_empty() { (table(group, &own, now)) }
        }
        p {
            @if !is_first { a href="/" { "First page" } " " }
            @if let Some(next) = next { a href={ "/?after=" (next) } { "Next page" } }
        }
    }
}

fn none_yet(visitor: Visitor) -> Markup {
    html! {
        section.part {
            h2 { "No experiments yet" }
            p {
                @if visitor.manages { a href="/new-experiment" { "Create one" } } @else { "Create one" }
                " with the rankers that you want to compare, for instance with the API:"
            }
            pre tabindex="0" { code {
                "curl -X POST \"$RANKDUEL/v1/experiments\" -H 'Content-Type: application/json' \\\n"
                "  -d '{\"name\": \"search\", \"rankers\": [\"bm25\", \"neural\"]}'"
            } }
            p { "Then request duels and send feedback. " a href="/docs" { "The API reference" } " has examples." }
        }
    }
}

fn table(title: &str, rows: &[&Row], now: i64) -> Markup {
    html! {
        section.list {
            h2 { (title) }
            table {
                thead { tr {
                    th scope="col" { "Experiment" }
                    th.st scope="col" { "State" }
                    th scope="col" { "Result" }
                    th.wn scope="col" { "When" }
                    th.n.pg scope="col" { "Pages" }
                    th.wn scope="col" { "Since" }
                } }
                tbody { @for row in rows { tr {
                    th scope="row" { a href={ "/experiments/" (row.record.name) } { (row.record.name) } }
                    td.st { (badge(&row.record, row.loaded.as_ref().map(Summary::is_decided))) }
                    td.result { @match &row.loaded {
                        Some(summary) => { (result(summary, &row.record)) }
                        None => { span.quiet { "Open it to load it." } }
                    } }
                    td.wn.when { @if let Some(summary) = &row.loaded { (when(summary, &row.record)) } }
                    td.n.pg { @if let Some(summary) = &row.loaded { (number(summary.pages)) } }
                    td.wn { (day(row.record.created_at, now)) span.sr { " " (timestamp(row.record.created_at)) } }
                } } }
            }
        }
    }
}

/// When the result came, or is expected.
fn when(summary: &Summary, record: &ExperimentRecord) -> Markup {
    let now = summary.pace.now;
    let forecast = summary.verdict.as_ref();
    let forecast = forecast.map(|verdict| (When::of(verdict, summary.pace), &verdict.waiting));
    html! {
        @match (summary.decided_at, record.status, forecast) {
            (Some(at), ..) => { "known " (moment(at, now)) }
            (None, Status::Running, Some((When::Waits, Some(waiting)))) => { (hour(waiting.next_count_ms, now)) }
            (None, Status::Running, Some((When::About(at, _), _))) => { "about " (moment(at, now)) }
            (None, Status::Running, Some((When::Far, _))) => { "not in 90 days" }
            (None, Status::Running, _) => span.quiet { "no date yet" },
            (None, Status::Concluded, _) => { "ended" @if let Some(at) = summary.ended_at { " " (moment(at, now)) } }
            (None, ..) => span.quiet { "–" },
        }
    }
}

fn result(summary: &Summary, record: &ExperimentRecord) -> Markup {
    let lead = &summary.lead;
    let leader = summary.id(lead.leader);
    let result = |shown: usize| {
        let is_today = summary.control.is_some_and(|(control, _)| control == shown);
        html! {
            @if is_today { "Keep " (summary.id(shown)) "." }
            @else if summary.may_ship() { "Ship " (summary.id(shown)) "." }
            @else { (summary.id(shown)) " is the best." }
        }
    };
    html! {
        @for alarm in &summary.alarms { span.warning { (Mark::No.icon()) " " (alarm) ". " } }
        @match (record.status, lead.winners.len()) {
            (Status::Concluded, decided) => {
                @let shown = record.winner.map_or(lead.leader, usize::from);
                @if decided > 0 && lead.winners.contains(&shown) { (result(shown)) }
                @else if decided > 0 { (shows(&summary.loaded.spec)) (summary.id(shown)) ", but the result is " (leader) "." }
                @else {
                    (shows(&summary.loaded.spec)) (summary.id(shown))
                    @if shown == lead.leader && matches!(summary.control, Some((_, true))) { ". It is better than today's." }
                    @else { ", without a proof." }
                }
            }
            (_, 0) if !lead.compared => { @if summary.pages == 0 { "No answers yet." } @else { "No page has had a winner yet." } }
            (_, 0) => {
                (leader) " leads; " (ruled_out(lead.rivals - lead.open, lead.rivals)) "."
            }
            (_, 1) => { (result(lead.leader)) }
            (_, several) => { @if summary.may_ship() { "Ship any of " (several) ", such as " } @else { (several) " are the best, such as " } (leader) "." }
        }
    }
}
