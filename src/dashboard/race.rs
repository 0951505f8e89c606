//! The race to the result: the evidence of the leader against each rival, over time.

use std::f64::consts::LN_10;

use maud::{Markup, html};

use super::chart::{Chart, Figure, Line, Times, links};
use super::forecast::When;
use super::layout::{counted, name, number, quantity, spoken};
use super::view::View;
use crate::service::reports::verdict_report::RankerVerdict;
use dueling_bandits::evidence::race::RANKERS_MAX;

/// Rivals with a line of their own: those with the least evidence against them.
const LINES_MAX: usize = 5;
/// Least evidence on the axis, as a power of ten.
const LEAST: f64 = -1.0;

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
                (links(&view.record.name, Figure::Race))
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

/// The scales of the picture.
#[derive(Clone, Copy)]
struct Axes {
    times: Times,
    /// Power of ten at the top.
    top: f64,
}

impl Axes {
    /// `None` before there is anything to draw.
    fn of(view: &View) -> Option<Self> {
        let first = view.fold.race.first().map(|point| point.recorded_at);
        let start = first.or(view.waiting().map(|_| view.record.created_at))?;
        let end = match (view.decided_at(), view.when(), view.waiting()) {
            (Some(at), _, _) => at,
            (None, When::About(at, high), _) => high.unwrap_or(at).max(view.now),
            (None, _, Some(waiting)) => waiting.next_count_ms.max(view.now),
            (None, _, None) => view.now,
        };
        // well above the evidence that is needed
        let top = (view.verdict.evidence_needed.max(1.0).log10() + 0.3).ceil().clamp(1.0, 300.0);
        (end > start).then_some(Self { times: Times { start, end }, top })
    }

    fn x(self, ms: i64) -> f64 {
        self.times.place(ms)
    }

    /// The height of an amount of evidence, from its natural logarithm.
    fn y(self, ln: f64) -> f64 {
        ((ln / LN_10 - LEAST) / (self.top - LEAST)).clamp(0.0, 1.0)
    }

    /// Powers of ten, some of them left out if there are many.
    fn y_ticks(self) -> Vec<(f64, String)> {
        let height = self.top - LEAST;
        let label = |step: i32| match step + LEAST as i32 {
            -1 => "0.1".to_owned(),
            power @ 0..=6 => number(10_u64.pow(power.unsigned_abs())),
            power => format!("1e{power}"),
        };
        let steps = 0..=height as i32;
        let every = (steps.clone().count() / 6 + 1) as i32;
        steps
            .filter(|step| step % every == 0)
            .map(|step| (f64::from(step) / height, label(step)))
            .collect()
    }
}

/// The picture; `None` before there is anything to draw.
pub(crate) fn chart(view: &View) -> Option<Chart> {
    let axes = Axes::of(view)?;
    let needed = view.verdict.evidence_needed;
    let now = view.decided_at().unwrap_or(view.now);
    let rows = view.evidence();
    let lines = rows.iter().take(LINES_MAX).zip(1..);
    let lines = lines.map(|(&(rival, row), colour)| line(view, axes, now, rival, row, colour));
    let (weakest, row) = rows.first()?;
    Some(Chart {
        summary: format!(
            "Evidence over time that each rival is not better than {}; the least is {} against {}, of {} needed. {}.",
            spoken(&view.verdict.leader),
            quantity(row.evidence_against.unwrap_or(1.0)),
            spoken(&view.ids[*weakest]),
            quantity(needed),
            counted(rows.len() as u64, "rival", "rivals")
        ),
        lines: lines.collect(),
        x_ticks: axes.times.ticks(now),
        y_ticks: axes.y_ticks(),
        level: Some((axes.y(needed.ln()), format!("proven: {}", quantity(needed)))),
        zones: zone(view, axes, now).into_iter().collect(),
        now: (!view.is_decided()).then(|| axes.x(now)),
        changes: axes.times.of_changes(&view.changes),
        ..Chart::default()
    })
}

/// The evidence against one rival over time.
fn line(
    view: &View,
    axes: Axes,
    now: i64,
    rival: usize,
    row: &RankerVerdict,
    colour: usize,
) -> Line {
    let own = |rivals: &[(u16, f32)]| {
        let own = rivals.iter().find(|(index, _)| usize::from(*index) == rival);
        own.map(|&(_, ln)| axes.y(ln.into()))
    };
    let earlier = view.fold.race.iter().filter(|point| point.recorded_at < now);
    let earlier =
        earlier.filter_map(|point| Some((axes.x(point.recorded_at), own(&point.rivals)?)));
    // before the first answer that counts, all evidence is 1
    let unknown = view.fold.race.is_empty().then_some((0.0, axes.y(0.0)));
    let present = (axes.x(now), axes.y(row.evidence_against.unwrap_or(1.0).ln()));
    let preview = view.waiting().zip(row.evidence_with_waiting).map(|(waiting, evidence)| {
        vec![present, (axes.x(waiting.next_count_ms.min(axes.times.end)), axes.y(evidence.ln()))]
    });
    Line {
        label: view.labels[rival].clone(),
        colour,
        points: unknown.into_iter().chain(earlier).chain([present]).collect(),
        preview: preview.unwrap_or_default(),
    }
}

/// The shaded time: of most forecasts, or until the answers that wait count.
fn zone(view: &View, axes: Axes, now: i64) -> Option<(f64, f64, &'static str)> {
    match (view.is_decided(), view.when(), view.verdict.duels_to_go, view.waiting()) {
        (true, ..) => None,
        (_, When::About(_, Some(high)), Some(to_go), _) => {
            let low = view.fold.pace.after(to_go.low).unwrap_or(now);
            Some((axes.x(low), axes.x(high).min(1.0), "soon"))
        }
        (_, _, _, Some(waiting)) => {
            Some((axes.x(now), axes.x(waiting.next_count_ms).min(1.0), "held"))
        }
        _ => None,
    }
}
