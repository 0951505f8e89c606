//! `/`: the list of experiments.

use std::sync::Arc;

use maud::{Markup, html};

use super::layout::{Mark, Visitor, badge, day, hour, moment, name, number, timestamp};
use super::say::{When, shows};
use super::view::Pace;
use crate::service::reports::leader::Lead;
use crate::service::reports::overview::Overview;
use crate::service::reports::single_flight::Computed;
use crate::service::reports::verdict::Verdict;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::ExperimentRecord;
use rankduel_store::events::Status;

/// One row of the list.
pub(crate) struct Row {
    pub record: ExperimentRecord,
    /// More, if it is in memory. A list loads nothing.
    pub loaded: Option<Summary>,
}

/// The row of an experiment in memory.
pub(crate) struct Summary {
    pub loaded: Arc<LoadedExperiment>,
    pub overview: Arc<Computed<Overview>>,
    pub lead: Arc<Computed<Lead>>,
    /// Titles of the alarms that are on.
    pub alarms: Vec<&'static str>,
    pub pace: Pace,
    /// The control, and whether the leader is proven to be better.
    pub control: Option<(usize, bool)>,
    /// When the result came, in Unix milliseconds.
    pub decided_at: Option<i64>,
    /// For its forecast.
    pub verdict: Option<Arc<Computed<Verdict>>>,
}

impl Summary {
    fn is_decided(&self) -> bool {
        !self.lead.winners.is_empty()
    }

    fn id(&self, ranker: usize) -> Markup {
        name(self.loaded.spec.rankers.get(ranker).map_or("", |ranker| &ranker.id))
    }
}

/// The groups of the list, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    NeedsYou,
    Running,
    Finished,
    Others,
}

impl Row {
    fn group(&self) -> Group {
        match (self.record.status, &self.loaded) {
            (Status::Concluded, _) => Group::Finished,
            (_, None) => Group::Others,
            (_, Some(summary)) if !summary.alarms.is_empty() || summary.is_decided() => {
                Group::NeedsYou
            }
            _ => Group::Running,
        }
    }
}

/// The page.
pub(crate) fn page(
    rows: &[Row],
    next: Option<&str>,
    first: bool,
    now: i64,
    visitor: Visitor,
) -> Markup {
    let groups = [
        (Group::NeedsYou, "Needs you"),
        (Group::Running, "Running"),
        (Group::Finished, "Finished"),
        (Group::Others, "Not in memory"),
    ];
    html! {
        div.title {
            h1 { "Experiments" }
            @if visitor.manages { a.button href="/new-experiment" { "New experiment" } }
        }
        @if rows.is_empty() && first { (none_yet(visitor)) }
        @for (group, title) in groups {
            @let own: Vec<_> = rows.iter().filter(|row| row.group() == group).collect();
            @if !own.is_empty() { (table(title, &own, now)) }
        }
        p {
            @if !first { a href="/" { "First page" } " " }
            @if let Some(next) = next { a href={ "/?after=" (next) } { "Next page" } }
        }
    }
}

fn none_yet(visitor: Visitor) -> Markup {
    html! {
        section.part {
            h2 { "No experiments yet" }
            @if visitor.manages {
                p { a href="/new-experiment" { "Create one" } " with the rankers that you want to compare, or with the API:" }
            } @else {
                p { "Create one with the rankers that you want to compare:" }
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
                    td.st { (badge(&row.record, row.loaded.as_ref().is_some_and(Summary::is_decided))) }
                    td.result { @match &row.loaded {
                        Some(summary) => { (result(summary, &row.record)) }
                        None => { span.quiet { "Open it to load it." } }
                    } }
                    td.wn.when { @if let Some(summary) = &row.loaded { (when(summary, &row.record)) } }
                    td.n.pg { @if let Some(summary) = &row.loaded { (number(summary.overview.regret.steps)) } }
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
            // the record keeps the time of its last change, which can be a later one
            (None, Status::Concluded, _) => { "ended by " (moment(record.updated_at, now)) }
            (None, ..) => span.quiet { "–" },
        }
    }
}

/// The result of an experiment in a line.
fn result(summary: &Summary, record: &ExperimentRecord) -> Markup {
    let (lead, overview) = (&summary.lead, &summary.overview);
    let leader = summary.id(lead.leader);
    let out = lead.rivals - lead.open;
    let result = |shown: usize| {
        let is_today = summary.control.is_some_and(|(control, _)| control == shown);
        html! {
            @if is_today { "Keep " (summary.id(shown)) "." }
            @else if let Some((_, false)) = summary.control { (summary.id(shown)) " is the best." }
            @else { "Ship " (summary.id(shown)) "." }
        }
    };
    html! {
        @for alarm in &summary.alarms { span.warning { (Mark::No.icon()) " " (alarm) ". " } }
        @match (record.status, lead.winners.len()) {
            (Status::Concluded, decided) => {
                @let shown = record.winner.map_or(lead.leader, usize::from);
                @if decided > 0 && lead.winners.contains(&shown) { (result(shown)) }
                @else if decided > 0 { (shows(&summary.loaded.spec)) (summary.id(shown)) ", but the result is " (leader) "." }
                @else { (shows(&summary.loaded.spec)) (summary.id(shown)) ", without a proof." }
            }
            (_, 0) if overview.duels == 0 => { "No answers yet." }
            (_, 0) => {
                (leader) " leads; "
                @match (lead.rivals, out) {
                    (1, _) => { "its rival is not ruled out." }
                    (rivals, 0) => { "none of " (rivals) " rivals is ruled out." }
                    (rivals, out) => { (out) " of " (rivals) " rivals " @if out == 1 { "is" } @else { "are" } " ruled out." }
                }
            }
            (_, 1) => { (result(lead.leader)) }
            (_, several) => { "Ship any of " (several) ", such as " (leader) "." }
        }
    }
}
