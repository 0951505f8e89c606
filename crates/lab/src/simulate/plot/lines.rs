//! Plots of curves. The legend is next to the curves, never over them. Colour-blind readers can
//! distinguish the colours, and the dashes distinguish curves in grey print.

use maud::{Markup, html};

use super::axis::{Axis, Scale};
use super::style::{
    BELOW, FONT_SIZE, Look, PLOT_WIDTH, Page, TOP, label_width, line, path, rich, sentence, short,
};

const PLOT_HEIGHT: f64 = 340.0;
/// The place of the vertical label, and its distance from the labels of the ticks.
const Y_LABEL: f64 = 18.0;
const Y_LABEL_GAP: f64 = 10.0;
/// From the labels of the ticks to the frame.
const TICK: f64 = 10.0;
/// A mark reaches so far from its place.
const MARK: f64 = 6.0;
const LEGEND_GAP: f64 = 26.0;
const LEGEND_LINE: f64 = 36.0;
const LEGEND_ROW: f64 = 20.0;
/// A curve has about this many marks.
const MARKS: usize = 6;
/// Distance between points of separate runs at one place.
const BESIDE: f64 = 8.0;

/// A plot of curves over a horizontal axis, usually time.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    pub x_scale: Scale,
    pub y_scale: Scale,
    /// The upper end of the vertical axis, if curves may leave the frame.
    pub top: Option<f64>,
    /// The curves in any order. The legend lists them from the highest end to the lowest.
    pub series: Vec<Series>,
    /// A note in small print at the bottom, such as the number of runs and the meaning of the band.
    pub note: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The label in the legend; empty for none.
    pub label: String,
    pub look: Look,
    /// Whether a line joins the points. Without it, there are marks only, for points from separate
    /// runs.
    pub joined: bool,
    /// The points in ascending order of `x`.
    pub points: Vec<PlotPoint>,
    /// The medians, as (x, y) in ascending order of `x`; empty for none.
    pub medians: Vec<(f64, f64)>,
}

impl Series {
    /// A curve without medians.
    pub fn curve(label: String, look: Look, points: Vec<PlotPoint>) -> Self {
        Self { label, look, joined: true, points, medians: Vec::new() }
    }

    /// Marks of separate runs.
    pub fn marks(label: String, look: Look, points: Vec<PlotPoint>) -> Self {
        Self { joined: false, ..Self::curve(label, look, points) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlotPoint {
    pub x: f64,
    /// The mean.
    pub y: f64,
    /// The lower edge of the band; `y` for no band.
    pub low: f64,
    /// The upper edge of the band; `y` for no band.
    pub high: f64,
}

impl Plot {
    /// The plot as an SVG document.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let beside = self.beside();
        // marks at either end stay in the frame
        let inset = MARK + beside.iter().copied().fold(0.0, f64::max);
        let xs = || points().map(|p| p.x);
        let x = Axis::new(self.x_scale, xs(), xs(), PLOT_WIDTH - 2.0 * inset);
        // A logarithmic axis is not rounded up, so that a mark at its end would be clipped.
        let headroom = if self.y_scale == Scale::Log { 1.2 } else { 1.0 };
        let highest = points().map(|p| p.high * headroom).fold(0.0, f64::max);
        let top = self.top.map_or(highest, |top| top.min(highest));
        let y = Axis::new(self.y_scale, points().map(|p| p.y), std::iter::once(top), PLOT_HEIGHT);
        let widest = y.ticks().0.iter().map(|(_, text)| label_width(text)).fold(0.0, f64::max);
        let left = Y_LABEL + FONT_SIZE / 2.0 + Y_LABEL_GAP + widest + TICK;
        let canvas = Canvas { x, y, left, inset };
        let named = |at: &usize| !self.series[*at].label.is_empty();
        let mut order: Vec<usize> = (0..self.series.len()).filter(named).collect();
        let end = |at: usize| self.series[at].points.last().map_or(0.0, |point| point.y);
        order.sort_by(|&a, &b| end(b).total_cmp(&end(a)));

        let longest =
            self.series.iter().map(|series| label_width(&series.label)).fold(0.0, f64::max);
        let legend = if order.is_empty() { 0.0 } else { LEGEND_GAP + LEGEND_LINE + 8.0 + longest };
        let legend_height = LEGEND_ROW * self.series.len() as f64;
        let page = Page {
            title: &self.title,
            note: &self.note,
            left,
            width: left + PLOT_WIDTH + legend,
            height: TOP + PLOT_HEIGHT.max(legend_height) + BELOW,
        };
        page.document(html! {
            (canvas.grid())
            @for series in &self.series { (canvas.band(series)) }
            @for (series, beside) in self.series.iter().zip(&beside) { (canvas.curve(series, *beside)) }
            (canvas.frame(&self.x_label, &self.y_label))
            @for (at, series) in self.series.iter().enumerate() {
                (canvas.marks(series, beside[at], (at as f64 + 0.5) / self.series.len() as f64))
            }
            @for (row, &at) in order.iter().enumerate() {
                (canvas.legend_row(&self.series[at], TOP + 8.0 + LEGEND_ROW * row as f64))
            }
        })
    }

    /// How far the marks of each series are from their true horizontal place: those of separate
    /// runs stand beside each other.
    fn beside(&self) -> Vec<f64> {
        let separate = self.series.iter().filter(|series| !series.joined).count() as f64;
        let mut before = 0.0;
        let place = |series: &Series| {
            if series.joined {
                return 0.0;
            }
            before += 1.0;
            (before - (separate + 1.0) / 2.0) * BESIDE
        };
        self.series.iter().map(place).collect()
    }
}

/// The area of the curves.
struct Canvas {
    x: Axis,
    y: Axis,
    /// The left edge of the frame.
    left: f64,
    /// From either side of the frame to the ends of the horizontal axis.
    inset: f64,
}

impl Canvas {
    fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.left + self.inset + self.x.at(x)?, TOP + PLOT_HEIGHT - self.y.at(y)?))
    }

    /// The place of a mark, if it is in the frame.
    fn mark_place(&self, point: &PlotPoint) -> Option<(f64, f64)> {
        self.place(point.x, point.y).filter(|(_, down)| *down >= TOP - 0.1)
    }

    fn grid(&self) -> Markup {
        let (x_marks, x_minor) = self.x.ticks();
        let (y_marks, y_minor) = self.y.ticks();
        let bottom = TOP + PLOT_HEIGHT;
        let left = self.left;
        let across = |value: f64| left + self.inset + self.x.at(value).unwrap_or(0.0);
        let up = |value: f64| bottom - self.y.at(value).unwrap_or(0.0);
        html! {
            clipPath id="frame" { rect x=(short(left)) y=(TOP) width=(PLOT_WIDTH) height=(PLOT_HEIGHT) {} }
            g class="grid" stroke="#e4e4e4" {
                @for (value, _) in &x_marks { (line(across(*value), TOP, across(*value), bottom)) }
                @for (value, _) in &y_marks { (line(left, up(*value), left + PLOT_WIDTH, up(*value))) }
            }
            g class="axis" stroke="#222" {
                @for (value, _) in &x_marks { (line(across(*value), bottom, across(*value), bottom + 6.0)) }
                @for value in &x_minor { (line(across(*value), bottom, across(*value), bottom + 3.0)) }
                @for (value, _) in &y_marks { (line(left - 6.0, up(*value), left, up(*value))) }
                @for value in &y_minor { (line(left - 3.0, up(*value), left, up(*value))) }
            }
            @for (value, text) in &x_marks {
                text x=(short(across(*value))) y=(bottom + 21.0) text-anchor="middle" { (rich(text)) }
            }
            @for (value, text) in &y_marks {
                text x=(short(left - TICK)) y=(short(up(*value) + 4.5)) text-anchor="end" { (rich(text)) }
            }
        }
    }

    fn frame(&self, x_label: &str, y_label: &str) -> Markup {
        let middle = TOP + PLOT_HEIGHT / 2.0;
        html! {
            rect class="axis" x=(short(self.left)) y=(TOP) width=(PLOT_WIDTH) height=(PLOT_HEIGHT) fill="none" stroke="#222" {}
            text x=(short(self.left + PLOT_WIDTH / 2.0)) y=(TOP + PLOT_HEIGHT + 42.0) text-anchor="middle" {
                (rich(&sentence(x_label)))
            }
            text x=(Y_LABEL) y=(middle) text-anchor="middle" transform=(format!("rotate(-90 {Y_LABEL} {middle})")) {
                (rich(&sentence(y_label)))
            }
        }
    }

    fn band(&self, series: &Series) -> Markup {
        if !series.joined || series.points.iter().all(|point| point.low == point.high) {
            return html! {};
        }
        // On a logarithmic axis, a lower edge at or below 0 is drawn at the bottom.
        let lowest = match self.y.scale {
            Scale::Linear => f64::NEG_INFINITY,
            Scale::Log => self.y.low,
        };
        let upper = series.points.iter().filter_map(|p| self.place(p.x, p.high));
        let lower = series
            .points
            .iter()
            .rev()
            .filter(|p| p.high > 0.0 || self.y.scale == Scale::Linear)
            .filter_map(|p| self.place(p.x, p.low.max(lowest)));
        let (outline, look) = (path(upper.chain(lower)), series.look);
        html! {
            path class=(look.fill_class()) d=(outline) fill=(look.colour()) fill-opacity="0.12"
                clip-path="url(#frame)" {}
        }
    }

    fn curve(&self, series: &Series, beside: f64) -> Markup {
        let places = series.points.iter().filter_map(|p| self.place(p.x, p.y));
        let medians = series.medians.iter().filter_map(|&(x, y)| self.place(x, y));
        let look = series.look;
        html! {
            g class=(look.stroke_class()) fill="none" stroke=(look.colour()) clip-path="url(#frame)" {
                @if !series.medians.is_empty() { path d=(path(medians)) stroke-width="0.8" {} }
                @if series.joined {
                    path d=(path(places)) stroke-width="2" stroke-linejoin="round"
                        stroke-dasharray=(look.dash()) {}
                } @else {
                    @for point in &series.points { (self.interval(point, beside)) }
                }
            }
        }
    }

    /// The interval of a point of separate runs.
    fn interval(&self, point: &PlotPoint, beside: f64) -> Markup {
        let low = self.place(point.x, point.low.max(self.y.low));
        let high = self.place(point.x, point.high);
        html! {
            @if let (Some((x, low)), Some((_, high))) = (low, high) {
                g stroke-width="1.5" { (line(x + beside, low, x + beside, high)) }
            }
        }
    }

    /// The marks: one at each point of separate runs, and a few along a curve. `phase` in 0..1 moves
    /// those of several curves apart.
    fn marks(&self, series: &Series, beside: f64, phase: f64) -> Markup {
        let all: Vec<_> = series.points.iter().filter_map(|p| self.mark_place(p)).collect();
        let few = series.joined && series.points.len() > 2 * MARKS;
        let wanted = |number: usize| {
            let across = self.left + PLOT_WIDTH * (number as f64 + phase) / MARKS as f64;
            let nearest = |a: &&(f64, f64), b: &&(f64, f64)| {
                (a.0 - across).abs().total_cmp(&(b.0 - across).abs())
            };
            let room = PLOT_WIDTH / (2 * MARKS) as f64;
            all.iter().min_by(nearest).filter(|place| (place.0 - across).abs() < room).copied()
        };
        let mut places: Vec<(f64, f64)> =
            if few { (0..MARKS).filter_map(wanted).collect() } else { all.clone() };
        places.dedup();
        html! { @for (x, y) in places { (series.look.mark(x + beside, y)) } }
    }

    fn legend_row(&self, series: &Series, y: f64) -> Markup {
        let (x, look) = (self.left + PLOT_WIDTH + LEGEND_GAP, series.look);
        html! {
            @if series.joined {
                g class=(look.stroke_class()) stroke=(look.colour()) stroke-width="2" stroke-dasharray=(look.dash()) {
                    (line(x, y, x + LEGEND_LINE, y))
                }
            }
            (look.mark(x + LEGEND_LINE / 2.0, y))
            text x=(short(x + LEGEND_LINE + 8.0)) y=(y + 4.5) { (series.label) }
        }
    }
}
