//! `/`: the list of experiments.

use std::sync::Arc;

use maud::{Markup, html};

use super::layout::{number, timestamp};
use super::parts::status;
use crate::engine::loaded::LoadedExperiment;
use crate::service::reports::overview::Overview;
use crate::service::reports::single_flight::Computed;
use crate::store::ExperimentRecord;

/// One row of the list.
pub(crate) struct Row {
    pub record: ExperimentRecord,
    /// More, if it is in memory. A list loads nothing.
    pub loaded: Option<Summary>,
}

/// What the list has of an experiment in memory.
pub(crate) struct Summary {
    pub loaded: Arc<LoadedExperiment>,
    pub overview: Arc<Computed<Overview>>,
    /// Number of alarms.
    pub alarms: usize,
}

impl Summary {
    fn leaders(&self) -> String {
        let id = |&ranker: &usize| self.loaded.spec.rankers[ranker].id.as_str();
        self.overview.leaders.iter().map(id).collect::<Vec<_>>().join(", ")
    }
}

/// The page.
pub(crate) fn page(rows: &[Row], next: Option<&str>, first: bool) -> Markup {
    html! {
        h1 { "Experiments" }
        @if rows.is_empty() && first {
            section {
                h2 { "No experiments yet" }
                p { "Create one with the rankers that you want to compare:" }
                pre tabindex="0" { code {
                    "curl -X POST \"$RANKDUEL/v1/experiments\" -H 'Content-Type: application/json' \\\n"
                    "  -d '{\"name\": \"search\", \"rankers\": [\"bm25\", \"neural\"]}'"
                } }
                p { "Then request duels and send feedback. " a href="/docs" { "The API reference" } " has examples." }
            }
        } @else {
            div.scroll role="region" aria-label="Experiments" tabindex="0" {
                table {
                    thead { tr {
                        th scope="col" { "Experiment" }
                        th scope="col" { "Status" }
                        th scope="col" { "Leader" }
                        th.number scope="col" { "Duels answered" }
                        th.number scope="col" { "Alarms" }
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
                                    td.number { (number(summary.overview.duels)) }
                                    td.number { @if summary.alarms > 0 { b { "⚠ " (summary.alarms) } } @else { "0" } }
                                } @else {
                                    td colspan="3" { span.quiet { "not in memory; open it to load it" } }
                                }
                                td { (timestamp(row.record.created_at)) }
                            }
                        }
                    }
                }
            }
        }
        p {
            @if !first { a href="/" { "First page" } " " }
            @if let Some(next) = next { a href={ "/?after=" (next) } { "Next page" } }
        }
    }
}
