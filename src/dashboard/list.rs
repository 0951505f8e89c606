//! `/`: the list of experiments.

use std::sync::Arc;

use maud::{Markup, html};

use super::layout::{Visitor, number, percent, quantity, status, timestamp};
use crate::service::reports::overview::{Overview, Progress};
use crate::service::reports::single_flight::Computed;
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
    /// Titles of the alarms that are on.
    pub alarms: Vec<&'static str>,
}

impl Summary {
    fn leaders(&self) -> String {
        let id = |&ranker: &usize| self.loaded.spec.rankers[ranker].id.as_str();
        self.overview.leaders.iter().map(id).collect::<Vec<_>>().join(", ")
    }
}

/// The page.
pub(crate) fn page(rows: &[Row], next: Option<&str>, first: bool, visitor: Visitor) -> Markup {
    html! {
        div.title {
            h1 { "Experiments" }
            @if visitor.manages { a.button href="/new-experiment" { "New experiment" } }
        }
        @if rows.is_empty() && first {
            section {
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
        } @else {
            div.scroll role="group" aria-label="Experiments" tabindex="0" {
                table {
                    thead { tr {
                        th scope="col" { "Experiment" }
                        th scope="col" { "Status" }
                        th scope="col" { "Leader" }
                        th scope="col" { "Verdict" }
                        th.number scope="col" { "Duels answered" }
                        th.number scope="col" { "Regret" }
                        th scope="col" { "Alarms" }
                        th scope="col" { "Created" }
                    } }
                    tbody {
                        @for row in rows {
                            tr {
                                th scope="row" { a href={ "/experiments/" (row.record.name) } { (row.record.name) } }
                                td { (status(&row.record)) }
                                @if let Some(summary) = &row.loaded {
                                    td {
                                        @if summary.overview.duels == 0 { span.quiet { "no data yet" } }
                                        @else if summary.overview.leaders.len() > 2 { (summary.overview.leaders.len()) " tied" }
                                        @else { (summary.leaders()) }
                                    }
                                    td { (progress(summary, row.record.status)) }
                                    td.number { (number(summary.overview.duels)) }
                                    td.number { (quantity(summary.overview.regret.copeland_regret)) }
                                    td { @for alarm in &summary.alarms { b.warning { "⚠ " (alarm) } } @if summary.alarms.is_empty() { "none" } }
                                } @else {
                                    td colspan="5" { span.quiet { "not in memory; open it to load it" } }
                                }
                                td { (timestamp(row.record.created_at)) }
                            }
                        }
                    }
                }
            }
        }
        @if rows.iter().any(|row| row.loaded.is_some()) {
            p.quiet {
                "Verdict: the share of the needed evidence that the leader has against its strongest rival, on a logarithmic "
                "scale. Regret: the estimated cost of all pages so far, between 0 and 1 for each page."
            }
        }
        p {
            @if !first { a href="/" { "First page" } " " }
            @if let Some(next) = next { a href={ "/?after=" (next) } { "Next page" } }
        }
    }
}

/// How near the verdict is.
fn progress(summary: &Summary, status: Status) -> Markup {
    match (summary.overview.progress, status) {
        (Progress::Decided, _) => html! { span.badge.decided { "decided" } },
        (Progress::Open(_), Status::Concluded) => html! { "concluded without" },
        (Progress::Open(None), _) => html! { "–" },
        (Progress::Open(Some(share)), _) => html! {
            span.near {
                progress max="100" value=(format!("{:.0}", 100.0 * share)) aria-label="Nearness of the verdict" {}
                (percent(share))
            }
        },
    }
}
