//! Rows with a dot and a bar: a table in which one column is a picture. The numbers stand beside
//! it, so that the picture needs no words.

use maud::{Markup, html};

use super::layout::{Mark, points, points_between};
use crate::service::reports::verdict_pairs::Effect;

/// A bar wider than this, in points, is not drawn: the pair has too few answers.
const WIDEST: f64 = 60.0;
/// Possible distances between two grid lines, in points.
const STEPS: [f64; 4] = [2.0, 4.0, 10.0, 20.0];
/// Most such distances on an axis.
const STEPS_MAX: f64 = 8.0;
/// Start of the axis, in percent of the picture.
const BEGIN: f64 = 4.0;
/// Length of the axis, in percent of the picture.
const LENGTH: f64 = 91.0;

/// A row. Shares are probabilities that the first ranker wins.
pub(crate) struct Row {
    pub head: Markup,
    /// Whether the row stands out, as that of all traffic among its segments.
    pub strong: bool,
    pub mark: Mark,
    /// The share that was measured.
    pub measured: Option<f64>,
    /// Where the true share lies.
    pub interval: (f64, f64),
    pub result: Markup,
}

pub(crate) struct Dots<'a> {
    /// The table in words, for screen readers.
    pub caption: &'a str,
    pub first: Markup,
    /// The names of both directions: who is better left of 0, and right of it.
    pub sides: [Markup; 2],
    /// A lead of up to this much counts as a tie: a dashed line is drawn at its negative.
    pub margin: Option<f64>,
    pub rows: Vec<Row>,
}

struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// The axis for these rows, which has 0 in it.
    fn of(rows: &[Row]) -> Self {
        let drawn = rows.iter().filter(|row| row.is_drawn());
        let ends = drawn.flat_map(|row| [row.interval.0, row.interval.1]);
        let ends = ends.map(|share| 100.0 * (share - 0.5)).chain([-4.0, 4.0]);
        let (low, high) =
            ends.fold((0.0, 0.0), |(low, high): (f64, f64), end| (low.min(end), high.max(end)));
        let fits = |step: &f64| (high / step).ceil() - (low / step).floor() <= STEPS_MAX;
        let step = STEPS.into_iter().find(fits).unwrap_or(STEPS[STEPS.len() - 1]);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    /// Where a number of points is, in percent of the picture.
    fn place(&self, points: f64) -> String {
        let part = (points - self.low) / (self.high - self.low);
        format!("{:.2}%", BEGIN + LENGTH * part.clamp(0.0, 1.0))
    }

    fn of_share(&self, share: f64) -> String {
        self.place(100.0 * (share - 0.5))
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let steps = ((self.high - self.low) / self.step).round() as usize;
        (0..=steps).map(|step| self.low + step as f64 * self.step)
    }
}

/// The measured share of wins against a rival, if they have answers enough to say it.
pub(crate) fn measured(effect: &Effect) -> Option<f64> {
    effect.win_rate.filter(|_| is_narrow((effect.low, effect.high)))
}

/// Whether so much is known about a pair that its share is worth a number.
fn is_narrow((low, high): (f64, f64)) -> bool {
    100.0 * (high - low) <= WIDEST
}

impl Row {
    fn is_drawn(&self) -> bool {
        self.measured.is_some() && is_narrow(self.interval)
    }
}

impl Dots<'_> {
    pub fn render(&self) -> Markup {
        let axis = Axis::of(&self.rows);
        let limit = self.margin.filter(|margin| *margin > 0.0).map(|margin| -100.0 * margin);
        html! {
            table.dots role="table" {
                caption.sr { (self.caption) }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { (self.first) }
                    th.c scope="col" role="columnheader" { span.sr { "Picture" } (self.scale(&axis)) }
                    th.v.n scope="col" role="columnheader" { "Measured" }
                    th.w.n scope="col" role="columnheader" { "Lies between" }
                    th.z scope="col" role="columnheader" { "Result" }
                } }
                tbody role="rowgroup" { @for row in &self.rows { tr.mine[row.strong] role="row" {
                    th scope="row" role="rowheader" { (row.head) }
                    td.c role="cell" { (picture(row, &axis, limit)) }
                    @if row.is_drawn() {
                        td.v.n role="cell" { (row.measured.map(|share| points(share - 0.5)).unwrap_or_default()) }
                        td.w.n role="cell" { (points_between(row.interval)) }
                    } @else {
                        td.v.n role="cell" { "–" }
                        td.w.n.quiet role="cell" { "too few answers" }
                    }
                    td.z role="cell" { (row.mark.icon()) (row.result) }
                } } }
            }
        }
    }

    /// The numbers of the axis, and what they mean.
    fn scale(&self, axis: &Axis) -> Markup {
        html! {
            span.sides aria-hidden="true" {
                span.left { "← " (self.sides[0]) } span.right { (self.sides[1]) " →" }
            }
            svg aria-hidden="true" {
                @for tick in axis.ticks() {
                    @let label = if tick == 0.0 { "0".into() } else { points(tick / 100.0).replace(".0", "") };
                    text.strong[tick == 0.0] x=(axis.place(tick)) y="36" text-anchor="middle" { (label) }
                }
            }
        }
    }
}

fn picture(row: &Row, axis: &Axis, limit: Option<f64>) -> Markup {
    let class = match row.mark {
        Mark::Yes => "win",
        Mark::No => "harm",
        Mark::Wait | Mark::Run => "wait",
        Mark::None => "other",
    };
    html! {
        svg aria-hidden="true" {
            @for tick in axis.ticks() {
                @let (at, class) = (axis.place(tick), if tick == 0.0 { "zero" } else { "grid" });
                line.(class) x1=(at) x2=(at) y1="0" y2="100%" {}
            }
            @if let Some(limit) = limit {
                @let at = axis.place(limit);
                line.limit x1=(at) x2=(at) y1="0" y2="100%" {}
            }
            @if row.is_drawn() {
                line.wh.(class) x1=(axis.of_share(row.interval.0)) x2=(axis.of_share(row.interval.1)) y1="50%" y2="50%" {}
                @if let Some(measured) = row.measured {
                    circle.pt.(class) cx=(axis.of_share(measured)) cy="50%" r=(if class == "wait" { "4.5" } else { "6" }) {}
                }
            }
        }
    }
}
