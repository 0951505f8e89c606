//! The race to the result: the evidence of the leader against each rival, over time.

use std::f64::consts::LN_10;

use maud::{Markup, html};

use super::chart::{Chart, Line};
use super::layout::{counted, day, hour, name, number, quantity, spoken};
use super::say::When;
use super::view::View;
use crate::service::reports::verdict::RankerVerdict;
use dueling_bandits::evidence::race::RANKERS_MAX;

/// Rivals with a line of their own: those with the least evidence against them.
const LINES_MAX: usize = 5;
/// Least evidence on the axis, as a power of ten.
const LEAST: f64 = -1.0;
const HOUR_MS: i64 = 3_600_000;
/// Parts of the time axis.
const PARTS: i64 = 4;

/// The picture, and how to read it.
pub(crate) fn figure(view: &View) -> Markup {
    if view.fold.roster.active().len() > RANKERS_MAX {
        return html! { p.note { "The race is drawn for up to " (RANKERS_MAX) " rankers." } };
    }
    let rows = view.evidence();
    let needed = view.verdict.evidence_needed;
    html! {
        @if let (Some(chart), Some((weakest, row))) = (chart(view), rows.first()) {
            figure {
                figcaption.small.quiet {
                    "Evidence against " @if rows.len() > LINES_MAX { "the " (LINES_MAX) " rivals with the least" } @else { "each rival" }
                    @if view.is_decided() { ", up to the result." }
                    @else { ". It has to reach " (quantity(needed)) @if rows.len() > 1 { " for all " (rows.len()) } "; each line up is ten times more." }
                }
                (chart.render())
            }
            p.note {
                dfn { "Evidence" } " of 100 means: if the rival were the better one, luck alone would get this far at most once in 100 experiments. "
                @if !view.is_over() {
                    "The result waits for " (name(&view.ids[*weakest])) ", at "
                    span #weakest { (quantity(row.evidence_against.unwrap_or(1.0))) } ". "
                    @match view.when() {
                        When::About(_, Some(_)) => "The shaded time holds 8 of 10 forecasts.",
                        When::Waits => "Dashed lines show where the answers that wait would lead.",
                        _ => "",
                    }
                }
            }
        } @else { p.note { "Too few answers count for a picture." } }
    }
}

/// The height of an amount of evidence, from its natural logarithm.
fn height(ln: f64, top: f64) -> f64 {
    ((ln / LN_10 - LEAST) / (top - LEAST)).clamp(0.0, 1.0)
}

/// The power of ten at the top of the axis: well above what is needed.
fn top(needed: f64) -> f64 {
    (needed.max(1.0).log10() + 0.3).ceil().clamp(1.0, 300.0)
}

/// The times at both ends of the picture.
fn span(view: &View) -> Option<(i64, i64)> {
    let first = view.fold.race.first().map(|point| point.recorded_at);
    let start = first.or(view.waiting().map(|_| view.record.created_at))?;
    let end = match (view.decided_at(), view.when(), view.waiting()) {
        (Some(at), _, _) => at,
        (None, When::About(at, high), _) => high.unwrap_or(at).max(view.now),
        (None, _, Some(waiting)) => waiting.next_count_ms.max(view.now),
        (None, _, None) => view.now,
    };
    (end > start).then_some((start, end))
}

fn chart(view: &View) -> Option<Chart> {
    let (start, end) = span(view)?;
    let at = |ms: i64| (ms - start) as f64 / (end - start) as f64;
    let needed = view.verdict.evidence_needed;
    let top = top(needed);
    let now = view.decided_at().unwrap_or(view.now);
    let line = |(colour, (rival, row)): (usize, &(usize, &RankerVerdict))| {
        let own = |rivals: &[(u16, f32)]| {
            let own = rivals.iter().find(|(index, _)| usize::from(*index) == *rival);
            own.map(|&(_, ln)| height(ln.into(), top))
        };
        let earlier = view.fold.race.iter().filter(|point| point.recorded_at < now);
        let earlier =
            earlier.filter_map(|point| Some((at(point.recorded_at), own(&point.rivals)?)));
        // before the first answer that counts, all evidence is 1
        let unknown = view.fold.race.is_empty().then_some((0.0, height(0.0, top)));
        let present = height(row.evidence_against.unwrap_or(1.0).ln(), top);
        let preview = view.waiting().zip(row.evidence_with_waiting).map(|(waiting, evidence)| {
            vec![
                (at(now), present),
                (at(waiting.next_count_ms.min(end)), height(evidence.ln(), top)),
            ]
        });
        Line {
            label: view.labels[*rival].clone(),
            colour: colour + 1,
            points: unknown.into_iter().chain(earlier).chain([(at(now), present)]).collect(),
            preview: preview.unwrap_or_default(),
        }
    };
    let rows = view.evidence();
    let lines: Vec<Line> = rows.iter().take(LINES_MAX).enumerate().map(line).collect();
    let (weakest, row) = rows.first()?;
    let zones = match (view.is_decided(), view.when(), view.verdict.duels_to_go, view.waiting()) {
        (true, ..) => Vec::new(),
        (_, When::About(_, Some(high)), Some(to_go), _) => {
            let low = view.fold.pace.after(to_go.low).unwrap_or(now);
            vec![(at(low), at(high).min(1.0), "soon")]
        }
        (_, _, _, Some(waiting)) => vec![(at(now), at(waiting.next_count_ms).min(1.0), "held")],
        _ => Vec::new(),
    };
    let powers = 0..=(top - LEAST) as i32;
    let label = |power: i32| match power + LEAST as i32 {
        -1 => "0.1".to_owned(),
        power @ 0..=6 => number(10_u64.pow(power.unsigned_abs())),
        power => format!("1e{power}"),
    };
    let every = (powers.clone().count() / 6 + 1) as i32;
    Some(Chart {
        summary: format!(
            "Evidence over time that each rival is not better than {}; the least is {} against {}, of {} needed. {}.",
            spoken(&view.verdict.leader),
            quantity(row.evidence_against.unwrap_or(1.0)),
            spoken(&view.ids[*weakest]),
            quantity(needed),
            counted(rows.len() as u64, "rival", "rivals")
        ),
        lines,
        x_ticks: times(start, end, now),
        y_ticks: powers
            .filter(|power| power % every == 0)
            .map(|power| (f64::from(power) / (top - LEAST), label(power)))
            .collect(),
        level: Some((height(needed.ln(), top), format!("proven: {}", quantity(needed)))),
        zones,
        now: (!view.is_decided()).then(|| at(now)),
        ..Chart::default()
    })
}

/// Times on the axis: days, or hours of a short one.
fn times(start: i64, end: i64, now: i64) -> Vec<(f64, String)> {
    let label = |at: i64| match end - start {
        short if short < 48 * HOUR_MS => hour(at, at).replace("\u{a0}UTC", ""),
        _ => {
            day(at, now).split_once('\u{a0}').map_or_else(String::new, |(_, rest)| rest.to_owned())
        }
    };
    let tick = |part: i64| start + (end - start) * part / PARTS;
    let mut ticks: Vec<_> =
        (0..=PARTS).map(|part| (part as f64 / PARTS as f64, label(tick(part)))).collect();
    ticks.dedup_by(|later, earlier| later.1 == earlier.1);
    ticks
}
