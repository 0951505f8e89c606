//! For whom: the lead of one ranker over another in each declared segment.

use maud::{Markup, html};

use super::chart::{Figure, links};
use super::dots::{Dots, Row, measured};
use super::layout::{Mark, Tile, counted, enumerated, halves, name, part, spoken, with_code};
use super::view::View;
use crate::service::reports::segment_claims::SegmentsView;
use crate::service::reports::segments::OpponentRow;
use rankduel_engine::experiment_spec::OTHER;

/// Most other rankers with a picture.
const OTHERS_MAX: usize = 12;
/// The error of all segments together.
const ERROR: &str = "5\u{a0}of\u{a0}100";

/// The rows of one opponent, each with its segment: the declared ones, then the rest.
fn rows_of<'a>(
    view: &'a View,
    opponent: &'a str,
) -> impl Iterator<Item = (&'a str, &'a OpponentRow)> {
    view.segments().iter().filter_map(move |of| {
        let row = of.opponents.iter().find(|row| row.opponent == opponent)?;
        Some((of.segment.as_str(), row))
    })
}

/// The segments whose row of this opponent meets a condition.
fn segments_where<'a>(
    view: &'a View,
    opponent: &'a str,
    is: fn(&OpponentRow) -> bool,
) -> Vec<&'a str> {
    rows_of(view, opponent).filter(|(_, row)| is(row)).map(|(segment, _)| segment).collect()
}

fn gains(row: &OpponentRow) -> bool {
    row.low > 0.5
}

fn loses(row: &OpponentRow) -> bool {
    row.high < 0.5
}

fn listed(segments: &[&str]) -> Markup {
    enumerated(&segments.iter().map(|segment| label(segment)).collect::<Vec<_>>())
}

fn label(segment: &str) -> Markup {
    html! { bdi { (segment) } }
}

/// The tile; `None` without declared segments.
pub(crate) fn tile(view: &View) -> Option<Tile> {
    let of = view.verdict.segments.as_ref()?;
    if view.is_untrusted() {
        return Some(Tile::untrusted(("For whom?", "whom")));
    }
    let (mark, answer, more) = claimed(view, of).unwrap_or_else(|| counted_so_far(view));
    Some(Tile::new(("For whom?", "whom"), (mark, answer), more))
}

/// The mark, the answer and more from the claims, once there is a winner.
fn claimed(view: &View, of: &SegmentsView) -> Option<(Mark, Markup, Markup)> {
    of.ranker.as_ref()?;
    let (mark, answer) = match &of.hurt[..] {
        [] if of.unhurt => (Mark::Yes, html! { "For all segments" }),
        [] if of.open.is_empty() || view.has_ended() => (Mark::None, html! { "No loss is proven" }),
        [] => (Mark::Wait, html! { "Not known yet" }),
        [one] => (Mark::No, html! { "Not in " (label(one.as_str())) }),
        several => (Mark::No, html! { "Not in " (several.len()) " segments" }),
    };
    Some((mark, answer, with_code(&of.sentence)))
}

/// Before there is a winner nothing is claimed: how its segments do so far, against the ranker of
/// the section.
fn counted_so_far(view: &View) -> (Mark, Markup, Markup) {
    let opponent = opponent(view);
    let declared = |is: fn(&OpponentRow) -> bool| {
        let found = opponent.map(|opponent| segments_where(view, opponent, is)).unwrap_or_default();
        found.iter().filter(|segment| **segment != OTHER).count()
    };
    let (better, worse) = (declared(gains), declared(loses));
    let more = html! {
        @match (opponent, better + worse) {
            (Some(opponent), 1..) => {
                "So far " (view.short(&view.verdict.leader)) " is ahead of " (view.short(opponent)) " in "
                (better) " of " (counted(view.loaded.spec.segments.len() as u64, "segment", "segments"))
                @if worse > 0 { " and behind in " (worse) }
            }
            _ => "Too few answers to tell",
        }
    };
    match view.has_ended() {
        true => (Mark::None, html! { "Not proven" }, more),
        false => (Mark::Wait, html! { "Comes with the result" }, more),
    }
}

/// The ranker that the section compares with: the control; without one, or if it leads, the one
/// that wins a segment, or else the closest rival.
fn opponent(view: &View) -> Option<&String> {
    let verdict = &view.verdict;
    let control = verdict.control.as_ref().map(|control| &control.control);
    let met = || view.segments().iter().flat_map(|row| &row.opponents);
    let beaten = met().find(|row| loses(row));
    let closest = verdict.effects.iter().find(|effect| measured(effect).is_some());
    let rival = beaten.map(|row| &row.opponent).or(closest.map(|effect| &effect.rival));
    // after a restart of the verdict nobody has met in it, and segments keep their answers
    let rival = rival.or(met().next().map(|row| &row.opponent));
    control.filter(|control| **control != verdict.leader).or(rival)
}

/// The section; empty without segments.
pub(crate) fn section(view: &View) -> Markup {
    let Some(of) = &view.verdict.segments else { return Markup::default() };
    let content = html! {
        p { (with_code(&of.sentence)) }
        @if let Some(opponent) = opponent(view) {
            @if of.ranker.is_none() { (summary(view, opponent)) }
            (panel(view, opponent))
            (links(&view.record.name, Figure::Segments))
            @if view.verdict.rests_on.by_score > 0 {
                p.note { "All traffic adds up the scores of answers; in a segment a coin makes each a win or a loss, with its score as the chance." }
            }
            @if !segments_where(view, opponent, |row| !gains(row) && !loses(row)).is_empty() {
                p.note { "A segment that is not known has too few answers; that does not mean that both rankers are equal there." }
            }
            @let others = view.verdict.effects.iter().map(|effect| &effect.rival);
            @let others: Vec<_> = others.filter(|other| *other != opponent).take(OTHERS_MAX).collect();
            @if !others.is_empty() { details #whom-others {
                summary { "Against each other ranker" }
                @for other in others {
                    h3 { (name(&view.verdict.leader)) " against " (name(other)) }
                    (panel(view, other))
                }
            } }
        }
    };
    part("whom", "For whom?", &content)
}

fn summary(view: &View, opponent: &str) -> Markup {
    let leader = &view.verdict.leader;
    let (better, worse) =
        (segments_where(view, opponent, gains), segments_where(view, opponent, loses));
    html! {
        p {
            @if !worse.is_empty() { "In " (listed(&worse)) ", " (name(opponent)) " beats " (name(leader)) ". " }
            @if !better.is_empty() { (name(leader)) " beats " (name(opponent)) " in " (listed(&better)) ". " }
            @if worse.is_empty() && better.is_empty() { "No segment has enough answers to say anything. " }
            "Claims about segments are wrong in at most " (ERROR) " experiments."
        }
    }
}

/// The lead over one opponent: all traffic, then each segment.
fn panel(view: &View, opponent: &str) -> Markup {
    let leader = &view.verdict.leader;
    let head = |head: Markup, wins: f64, losses: f64| {
        html! { (head) br; span.quiet.small { (halves(wins)) ":" (halves(losses)) } }
    };
    // the segments have all answers, and the verdict those since the last change of the rankers
    let all = view.verdict.effects.iter().find(|effect| effect.rival == opponent);
    let all = all.filter(|_| view.fold.roster_changes == 0);
    let all = all.map(|own| Row {
        head: head(html! { "all traffic" }, own.wins, own.losses),
        strong: true,
        mark: Mark::None,
        measured: own.win_rate,
        interval: view.interval(own),
        result: html! { "see " a href="#much" { "by how much" } },
    });
    let segments = rows_of(view, opponent).map(|(segment, own)| {
        let (mark, result) = match (gains(own), loses(own)) {
            (true, _) => (Mark::Yes, html! { "ahead" }),
            (_, true) => (Mark::No, html! { "behind" }),
            _ if view.is_over() => (Mark::None, html! { "not known" }),
            _ => (Mark::Wait, html! { "not known yet" }),
        };
        let claims = view.verdict.segments.iter().flat_map(|of| &of.at_most);
        let claimed = claims.filter(|(of, rival, _)| of.as_str() == segment && rival == opponent);
        let high = claimed.fold(own.high, |high, (.., most)| high.min(*most));
        Row {
            head: head(label(segment), own.wins, own.losses),
            strong: false,
            mark,
            measured: Some(own.win_rate),
            interval: (own.low.min(high), high),
            result,
        }
    });
    let dots = Dots {
        caption: &format!(
            "Lead of {} over {} by segment, in points",
            spoken(leader),
            spoken(opponent)
        ),
        first: html! { "Segment" },
        sides: [opponent, leader].map(|id| html! { (view.short(id)) " is better" }),
        margin: None,
        rows: all.into_iter().chain(segments).collect(),
    };
    dots.render()
}
