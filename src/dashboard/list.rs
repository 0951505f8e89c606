//! `/`: the list of experiments, from what is stored.

use maud::{Markup, html};

use super::layout::{Visitor, badge, day, moment, timestamp, with_code};
use crate::service::answer::Answer;
use rankduel_store::ExperimentRecord;
use rankduel_store::events::Status;

pub(crate) struct Row {
    pub record: ExperimentRecord,
    pub answer: Answer,
}

/// The groups of the list, in their order.
const GROUPS: [&str; 3] = ["Needs you", "Running", "Finished"];

impl Row {
    fn group(&self) -> &'static str {
        let [needs_you, running, finished] = GROUPS;
        match self.record.status {
            _ if self.answer.needs_you => needs_you,
            Status::Concluded => finished,
            Status::Running | Status::Paused => running,
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
                    th.wn scope="col" { "Since" }
                    th.wn scope="col" { "Created" }
                } }
                tbody { @for Row { record, answer } in rows { tr {
                    th scope="row" { a href={ "/experiments/" (record.name) } { (record.name) } }
                    td.st { (badge(answer.state)) }
                    td.result {
                        (with_code(&answer.headline))
                        @for doubt in &answer.doubts { " " span.quiet { (with_code(doubt)) } }
                    }
                    td.wn.when { (moment(answer.since, now)) }
                    td.wn { (day(record.created_at, now)) span.sr { " " (timestamp(record.created_at)) } }
                } } }
            }
        }
    }
}
