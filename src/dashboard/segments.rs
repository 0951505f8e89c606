//! `/experiments/{name}/segments`: the results of one ranker, split by segment.

use maud::{Markup, html};

use super::layout::{number, percent, table};
use crate::service::reports::segments::{OpponentRow, SegmentRow, SegmentsReport};

/// Maximum number of rows in the table.
const ROWS_MAX: usize = 200;

/// The page. `ids` has the rankers of the experiment.
pub(crate) fn page(report: &SegmentsReport, ids: &[String]) -> Markup {
    let name = &report.experiment;
    html! {
        h1 { (name) ": results by segment" }
        p.quiet {
            a href={ "/experiments/" (name) } { "All results of this experiment" }
            ". As JSON: " code { "/v1/experiments/" (name) "/segments?ranker=" (report.ranker) }
        }
        form.choose method="get" {
            label for="ranker" { "Ranker" }
            select #ranker name="ranker" {
                @for id in ids { option value=(id) selected[*id == report.ranker] { (id) } }
            }
            button type="submit" { "Show" }
        }
        (results(report))
        @if report.waiting > 0 {
            p {
                "Answers that do not count yet: " (number(report.waiting)) ". Others from the same time may still come, until the "
                code { "answer_window_seconds" } " of the experiment have passed."
            }
        }
    }
}

fn results(report: &SegmentsReport) -> Markup {
    if report.segments.is_empty() {
        return html! { p { "No answer counts yet." } };
    }
    if report.segments.iter().all(|row| row.segment.is_none()) {
        return html! {
            p {
                "No counted answer has a segment. Send one with each page, such as the device, the language or the length of the query: "
                "the field " code { "segment" } " of " code { "next-duel" } ", " code { "interleave" } " or " code { "feedback" } "."
            }
        };
    }
    let rows: Vec<_> = report.segments.iter().flat_map(rows_of).collect();
    let shown = &rows[..rows.len().min(ROWS_MAX)];
    let caption = html! {
        @if shown.len() < rows.len() || report.segments.len() < report.segments_total {
            "The first " (number(shown.len() as u64)) " rows, of " (number(report.segments_total as u64)) " segments. "
        }
        "The segment with the most duels of " code { (report.ranker) } " comes first"
    };
    let is = format!("{} is", report.ranker);
    let heads =
        ["Segment", "Opponent", "#Duels", "#Wins : losses (ties)", "#Win rate", "#Interval", &is];
    html! {
        (table("Results by segment", &heads, &caption, &html! { @for (segment, row) in shown { (one(segment, row)) } }))
        p {
            "The interval is that of the probability that " code { (report.ranker) } " wins, if the duel is won or lost. All intervals "
            "of the experiment hold together with a probability of 95 %, however often you look. A row that is not decided has too "
            "few duels; it does not say that both are equal there."
        }
    }
}

fn rows_of(row: &SegmentRow) -> impl Iterator<Item = (&SegmentRow, &OpponentRow)> {
    row.opponents.iter().map(move |opponent| (row, opponent))
}

fn one(of: &SegmentRow, row: &OpponentRow) -> Markup {
    let result = match (row.low > 0.5, row.high < 0.5) {
        (true, _) => "better",
        (_, true) => "worse",
        _ => "not decided",
    };
    html! {
        tr {
            th scope="row" {
                @match of.segment {
                    Some(segment) => (segment.as_str()),
                    None => i { "none named" },
                }
            }
            td { (row.opponent) }
            td.number { (number(row.duels)) }
            td.number { (number(row.wins)) ":" (number(row.losses)) " (" (number(row.ties)) ")" }
            td.number { (row.win_rate.map_or_else(|| "–".into(), percent)) }
            td.number { (percent(row.low)) " to " (percent(row.high)) }
            td { (result) }
        }
    }
}
