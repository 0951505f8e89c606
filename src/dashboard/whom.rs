//! For whom: the lead of one ranker over another in each segment.

use maud::{Markup, html};

use super::dots::{Dots, Row};
use super::layout::{Mark, counted, enumerated, name, number, part, spoken, with_code};
use super::result::{Tile, measured};
use super::view::{View, Whom};
use crate::service::reports::segment_claims::SegmentsView;
use crate::service::reports::segments::{OpponentRow, SegmentRow, SegmentsReport};

const SEGMENTS_MAX: usize = 30;
/// Most other rankers with a picture.
const OTHERS_MAX: usize = 12;
/// The error of all segments together.
const ERROR: &str = "5\u{a0}of\u{a0}100";

/// The rows of one opponent, each with the name of its segment.
fn rows_of<'a>(
    report: &'a SegmentsReport,
    opponent: &'a str,
) -> impl Iterator<Item = (Option<&'a str>, &'a OpponentRow)> {
    report.segments.iter().filter_map(move |segment| {
        let row = segment.opponents.iter().find(|row| row.opponent == opponent)?;
        Some((segment.segment.as_ref().map(|name| name.as_str()), row))
    })
}

/// The segments whose row of this opponent meets a condition.
fn segments_where<'a>(
    report: &'a SegmentsReport,
    opponent: &'a str,
    is: fn(&OpponentRow) -> bool,
) -> Vec<Option<&'a str>> {
    rows_of(report, opponent).filter(|(_, row)| is(row)).map(|(name, _)| name).collect()
}

fn is_named(report: &SegmentsReport) -> bool {
    report.segments.iter().any(|row| row.segment.is_some())
}

fn gains(row: &OpponentRow) -> bool {
    row.low > 0.5
}

fn loses(row: &OpponentRow) -> bool {
    row.high < 0.5
}

fn listed(segments: &[Option<&str>]) -> Markup {
    enumerated(&segments.iter().map(|segment| label(*segment)).collect::<Vec<_>>())
}

fn label(segment: Option<&str>) -> Markup {
    html! { @match segment { Some(segment) => bdi { (segment) }, None => i { "none named" } } }
}

pub(crate) fn tile(view: &View, of: &Whom) -> Tile {
    let claimed = view.verdict.segments.as_ref().and_then(|of| claimed(view, of));
    let (mark, answer, more) = claimed.unwrap_or_else(|| counted_so_far(view, of));
    let has_section = matches!(of, Whom::Known(report) if is_named(report));
    let section = if has_section { "whom" } else { "much" };
    Tile::new(("For whom?", section), (mark, answer), more)
}

/// The mark, the answer and more from the claims about declared segments, once there is a winner.
fn claimed(view: &View, of: &SegmentsView) -> Option<(Mark, Markup, Markup)> {
    of.ranker.as_ref()?;
    let (mark, answer) = match &of.hurt[..] {
        [] if of.unhurt => (Mark::Yes, html! { "For all segments" }),
        [] if of.open.is_empty() || view.has_ended() => (Mark::None, html! { "Not proven" }),
        [] => (Mark::Wait, html! { "Not known yet" }),
        [one] => (Mark::No, html! { "Not in " (label(Some(one.as_str()))) }),
        several => (Mark::No, html! { "Not in " (several.len()) " segments" }),
    };
    Some((mark, answer, with_code(&of.sentence)))
}

/// The same from the answers of each segment.
fn counted_so_far(view: &View, of: &Whom) -> (Mark, Markup, Markup) {
    match of {
        Whom::Counting => (Mark::None, html! { "Being counted" }, html! { "The log is read" }),
        Whom::TooLong => (
            Mark::None,
            html! { "Not on this page" },
            html! { code { "rankduel segments" } " has it" },
        ),
        Whom::Known(report) if report.segments.is_empty() => {
            (Mark::None, html! { "Not known yet" }, html! { "No answer counts yet" })
        }
        Whom::Known(report) if !is_named(report) => (
            Mark::None,
            html! { "You named no segments" },
            html! { "Send " code { "segment" } " with each page, such as the device" },
        ),
        Whom::Known(report) => {
            let rows = || report.segments.iter().filter(|row| row.segment.is_some());
            let all = rows().count() as u64;
            let any = |is: fn(&OpponentRow) -> bool| {
                rows().filter(|row| row.opponents.iter().any(is)).collect::<Vec<_>>()
            };
            let (better, worse) = (any(gains), any(loses));
            let more = html! {
                (better.len()) " of " (counted(all, "segment gains", "segments gain"))
                @if !worse.is_empty() { ", " (worse.len()) " lose" @if worse.len() == 1 { "s" } " to another ranker" }
            };
            match (&worse[..], better.len()) {
                ([row], _) => (
                    Mark::No,
                    html! { "Not in " (label(row.segment.as_ref().map(|name| name.as_str()))) },
                    more,
                ),
                ([_, ..], _) => (Mark::No, html! { "Not in " (worse.len()) " segments" }, more),
                ([], 0) if view.is_over() => (
                    Mark::None,
                    html! { "No segment differs" },
                    html! { "Or there are too few answers to tell" },
                ),
                ([], 0) => {
                    (Mark::Wait, html! { "Not known yet" }, html! { "No segment differs so far" })
                }
                ([], _) => (Mark::Yes, html! { "For " (better.len()) " of " (all) }, more),
            }
        }
    }
}

/// The end of "ship it": the segments in which another ranker beats the winner, from the claims
/// about declared segments, otherwise from the answers of each.
pub(crate) fn but_not_in(view: &View) -> Markup {
    let segments: Vec<_> = match (&view.verdict.segments, &view.whom) {
        (Some(claims), _) => claims.hurt.iter().map(|name| Some(name.as_str())).collect(),
        (None, Some(Whom::Known(report))) => {
            let has_loss = |row: &&SegmentRow| row.opponents.iter().any(loses);
            let named = report.segments.iter().filter(|row| row.segment.is_some());
            named
                .filter(has_loss)
                .map(|row| row.segment.as_ref().map(|name| name.as_str()))
                .collect()
        }
        _ => Vec::new(),
    };
    html! { @if !segments.is_empty() { ", but not in " (listed(&segments)) } "." }
}

/// The section: against the closest rival, or the one that wins a segment. Empty without segments.
pub(crate) fn section(view: &View, report: &SegmentsReport) -> Markup {
    if !is_named(report) && view.verdict.segments.is_none() {
        return Markup::default();
    }
    let beaten = report.segments.iter().flat_map(|row| &row.opponents).find(|row| loses(row));
    let closest = view.verdict.effects.iter().find(|effect| measured(effect).is_some());
    let opponent = beaten.map(|row| &row.opponent).or(closest.map(|effect| &effect.rival));
    // after a restart of the verdict nobody has met in it, and segments keep their answers
    let opponent = opponent.or(report.all.first().map(|row| &row.opponent));
    let content = html! {
        @if let Some(of) = &view.verdict.segments { p { (with_code(&of.sentence)) } }
        @if let Some(opponent) = opponent.filter(|_| is_named(report)) {
            @if view.verdict.segments.is_none() { (summary(report, opponent)) }
            (panel(view, report, opponent))
            p.note {
                @if !segments_where(report, opponent, |row| !gains(row) && !loses(row)).is_empty() {
                    "A segment that is not known has too few answers; that does not mean that both rankers are equal there. "
                }
                @if report.waiting > 0 { "Answers that do not count yet: " (number(report.waiting)) "." }
            }
            @if report.all.len() > 1 { details #whom-others {
                summary { "Against each other ranker" }
                @for row in report.all.iter().filter(|row| row.opponent != *opponent).take(OTHERS_MAX) {
                    h3 { (name(&report.ranker)) " against " (name(&row.opponent)) }
                    (panel(view, report, &row.opponent))
                }
            } }
        }
    };
    part("whom", "For whom?", &content)
}

fn summary(report: &SegmentsReport, opponent: &str) -> Markup {
    let (better, worse) =
        (segments_where(report, opponent, gains), segments_where(report, opponent, loses));
    html! {
        p {
            @if !worse.is_empty() { "In " (listed(&worse)) ", " (name(opponent)) " beats " (name(&report.ranker)) ". " }
            @if !better.is_empty() { (name(&report.ranker)) " beats " (name(opponent)) " in " (listed(&better)) ". " }
            @if worse.is_empty() && better.is_empty() { "No segment has enough answers to say anything. " }
            "Claims about segments are wrong in at most " (ERROR) " experiments."
        }
    }
}

/// The lead over one opponent: all traffic, then each segment.
fn panel(view: &View, report: &SegmentsReport, opponent: &str) -> Markup {
    let row = |head: Markup, strong: bool, row: &OpponentRow| {
        let (mark, result) = match (gains(row), loses(row)) {
            (true, _) => (Mark::Yes, html! { "gains" }),
            (_, true) => (Mark::No, html! { (view.short(opponent)) " is better" }),
            _ if strong => (Mark::None, html! {}),
            _ if view.is_over() => (Mark::None, html! { "not known" }),
            _ => (Mark::Wait, html! { "not known yet" }),
        };
        Row {
            head: html! { (head) br; span.quiet.small { (number(row.wins)) ":" (number(row.losses)) @if row.ties > 0 { ", " (counted(row.ties, "tie", "ties")) } } },
            strong,
            mark,
            measured: row.win_rate,
            interval: (row.low, row.high),
            result,
        }
    };
    let all = report.all.iter().find(|row| row.opponent == opponent);
    let all = all.map(|own| Row {
        result: html! { "see " a href={ "/experiments/" (report.experiment) "#much" } { "by how much" } },
        ..row(html! { "all traffic" }, true, own)
    });
    let segments = rows_of(report, opponent).take(SEGMENTS_MAX);
    let segments = segments.map(|(segment, own)| row(label(segment), false, own));
    let dots = Dots {
        caption: &format!(
            "Lead of {} over {} by segment, in points",
            spoken(&report.ranker),
            spoken(opponent)
        ),
        first: html! { "Segment" },
        sides: [opponent, &report.ranker].map(|id| html! { (view.short(id)) " is better" }),
        margin: None,
        rows: all.into_iter().chain(segments).collect(),
    };
    html! {
        (dots.render())
        @if report.segments_total > SEGMENTS_MAX {
            p.note { "The " (SEGMENTS_MAX) " segments with the most answers, of " (number(report.segments_total as u64)) "." }
        }
    }
}
