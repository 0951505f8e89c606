//! Plots of curves. The legend is next to the curves, never over them. Colour-blind readers can
//! distinguish the colours, and the dashes distinguish curves in grey print.

use maud::{Markup, html};

use super::axis::{Axis, Scale};
use super::style::{
    BELOW, CHARACTER, FONT, FONT_SIZE, Look, PLOT_WIDTH, TITLE_SIZE, TOP, document, line, path,
    sentence, short, tick_label, title_width,
};

const PLOT_HEIGHT: f64 = 340.0;
const LEFT: f64 = 82.0;
const LEGEND_GAP: f64 = 22.0;
const LEGEND_LINE: f64 = 30.0;
const LEGEND_ROW: f64 = 20.0;

/// A plot of curves over a horizontal axis, usually time.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The title above the curves.
    pub title: String,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// The label of the vertical axis.
    pub y_label: String,
    /// The scale of the horizontal axis.
    pub x_scale: Scale,
    /// The scale of the vertical axis.
    pub y_scale: Scale,
    /// The curves in any order. The legend lists them from the highest end to the lowest.
    pub series: Vec<Series>,
    /// A note in small print at the bottom, such as the number of runs and the meaning of the band.
    pub note: String,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The label in the legend.
    pub label: String,
    /// The colour and the dashes.
    pub look: Look,
    /// Whether a line joins the points. Without it, they are markers, for points from separate
    /// runs.
    pub joined: bool,
    /// The points in ascending order of `x`.
    pub points: Vec<PlotPoint>,
    /// The medians, as (x, y) in ascending order of `x`; empty for none.
    pub medians: Vec<(f64, f64)>,
}

/// One point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlotPoint {
    /// The horizontal position.
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
        let x = Axis::new(self.x_scale, points().map(|p| p.x), points().map(|p| p.x), PLOT_WIDTH);
        // A logarithmic axis is not rounded up, so that a marker at its end would be clipped.
        let headroom = if self.y_scale == Scale::Log { 1.2 } else { 1.0 };
        let tops = points().map(|p| p.high * headroom);
        let y = Axis::new(self.y_scale, points().map(|p| p.y), tops, PLOT_HEIGHT);
        let canvas = Canvas { x, y };
        let mut order: Vec<usize> = (0..self.series.len()).collect();
        let end = |at: usize| self.series[at].points.last().map_or(0.0, |point| point.y);
        order.sort_by(|&a, &b| end(b).total_cmp(&end(a)));

        let longest =
            self.series.iter().map(|series| series.label.chars().count()).max().unwrap_or(0);
        let legend_width = LEGEND_LINE + 8.0 + longest as f64 * FONT_SIZE * CHARACTER;
        let width = (LEFT + PLOT_WIDTH + LEGEND_GAP + legend_width)
            .max(LEFT + title_width(&self.title))
            + 12.0;
        let legend_height = LEGEND_ROW * self.series.len() as f64;
        let height = TOP + PLOT_HEIGHT.max(legend_height) + BELOW;
        let size = format!("0 0 {width:.0} {height:.0}");

        document(html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(size) width=(format!("{width:.0}"))
                height=(format!("{height:.0}")) font-family=(FONT) font-size=(FONT_SIZE) fill="#222" {
                title { (sentence(&self.title)) }
                rect width="100%" height="100%" fill="white" {}
                text x=(LEFT) y=(TOP - 16.0) font-size=(TITLE_SIZE) font-weight="bold" { (sentence(&self.title)) }
                (canvas.grid())
                @for series in &self.series { (canvas.band(series)) }
                @for series in &self.series { (canvas.curve(series)) }
                (canvas.frame(&self.x_label, &self.y_label))
                @for (row, &at) in order.iter().enumerate() {
                    (legend_row(&self.series[at], TOP + 8.0 + LEGEND_ROW * row as f64))
                }
                text x=(LEFT) y=(height - 10.0) font-size="11" fill="#555" { (self.note) }
            }
        })
    }
}

/// The area of the curves.
struct Canvas {
    x: Axis,
    y: Axis,
}

impl Canvas {
    fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((LEFT + self.x.at(x)?, TOP + PLOT_HEIGHT - self.y.at(y)?))
    }

    fn grid(&self) -> Markup {
        let (x_marks, x_minor) = self.x.ticks();
        let (y_marks, y_minor) = self.y.ticks();
        let bottom = TOP + PLOT_HEIGHT;
        let across = |value: f64| LEFT + self.x.at(value).unwrap_or(0.0);
        let up = |value: f64| bottom - self.y.at(value).unwrap_or(0.0);
        html! {
            clipPath id="frame" { rect x=(LEFT) y=(TOP) width=(PLOT_WIDTH) height=(PLOT_HEIGHT) {} }
            g stroke="#e4e4e4" {
                @for (value, _) in &x_marks { (line(across(*value), TOP, across(*value), bottom)) }
                @for (value, _) in &y_marks { (line(LEFT, up(*value), LEFT + PLOT_WIDTH, up(*value))) }
            }
            g stroke="#222" {
                @for (value, _) in &x_marks { (line(across(*value), bottom, across(*value), bottom + 6.0)) }
                @for value in &x_minor { (line(across(*value), bottom, across(*value), bottom + 3.0)) }
                @for (value, _) in &y_marks { (line(LEFT - 6.0, up(*value), LEFT, up(*value))) }
                @for value in &y_minor { (line(LEFT - 3.0, up(*value), LEFT, up(*value))) }
            }
            @for (value, text) in &x_marks {
                text x=(short(across(*value))) y=(bottom + 21.0) text-anchor="middle" { (tick_label(text)) }
            }
            @for (value, text) in &y_marks {
                text x=(LEFT - 10.0) y=(short(up(*value) + 4.5)) text-anchor="end" { (tick_label(text)) }
            }
        }
    }

    fn frame(&self, x_label: &str, y_label: &str) -> Markup {
        let middle = TOP + PLOT_HEIGHT / 2.0;
        html! {
            rect x=(LEFT) y=(TOP) width=(PLOT_WIDTH) height=(PLOT_HEIGHT) fill="none" stroke="#222" {}
            text x=(LEFT + PLOT_WIDTH / 2.0) y=(TOP + PLOT_HEIGHT + 42.0) text-anchor="middle" { (sentence(x_label)) }
            text x="18" y=(middle) text-anchor="middle" transform=(format!("rotate(-90 18 {middle})")) {
                (sentence(y_label))
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
        let outline = path(upper.chain(lower));
        html! { path d=(outline) fill=(series.look.colour()) fill-opacity="0.16" clip-path="url(#frame)" {} }
    }

    fn curve(&self, series: &Series) -> Markup {
        let places: Vec<_> = series.points.iter().filter_map(|p| self.place(p.x, p.y)).collect();
        let medians = series.medians.iter().filter_map(|&(x, y)| self.place(x, y));
        html! {
            @if !series.medians.is_empty() {
                path d=(path(medians)) fill="none" stroke=(series.look.colour()) stroke-width="0.8"
                    clip-path="url(#frame)" {}
            }
            @if series.joined {
                path d=(path(places.iter().copied())) fill="none" stroke=(series.look.colour()) stroke-width="2"
                    stroke-linejoin="round" stroke-dasharray=(series.look.dash()) clip-path="url(#frame)" {}
            } @else {
                @for point in &series.points { (self.interval(series.look, point)) }
                @for (x, y) in places { (marker(series.look, x, y)) }
            }
        }
    }

    /// The interval of a single marker.
    fn interval(&self, look: Look, point: &PlotPoint) -> Markup {
        let ends =
            (self.place(point.x, point.low.max(self.y.low)), self.place(point.x, point.high));
        html! {
            @if let (Some((x, low)), Some((_, high))) = ends {
                g stroke=(look.colour()) stroke-width="1.5" clip-path="url(#frame)" { (line(x, low, x, high)) }
            }
        }
    }
}

fn legend_row(series: &Series, y: f64) -> Markup {
    let x = LEFT + PLOT_WIDTH + LEGEND_GAP;
    html! {
        @if series.joined {
            g stroke=(series.look.colour()) stroke-width="2" stroke-dasharray=(series.look.dash()) {
                (line(x, y, x + LEGEND_LINE, y))
            }
        } @else {
            (marker(series.look, x + LEGEND_LINE / 2.0, y))
        }
        text x=(x + LEGEND_LINE + 8.0) y=(y + 4.5) { (series.label) }
    }
}

/// A hollow marker in one of four shapes, so that overlapping markers stay visible.
fn marker(look: Look, x: f64, y: f64) -> Markup {
    let outline: &[(f64, f64)] = match look.shape() {
        0 => &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
        1 => &[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)],
        2 => &[(0.0, -6.0), (5.5, 4.0), (-5.5, 4.0)],
        _ => &[(0.0, 6.0), (5.5, -4.0), (-5.5, -4.0)],
    };
    let shape = path(outline.iter().map(|(across, down)| (x + across, y + down)));
    html! { path d=(shape + "Z") fill="none" stroke=(look.colour()) stroke-width="2" {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_without_curves_is_valid() {
        let empty = Plot {
            title: "a < b & c".into(),
            x_label: String::new(),
            y_label: String::new(),
            x_scale: Scale::Log,
            y_scale: Scale::Linear,
            series: Vec::new(),
            note: String::new(),
        };
        let svg = empty.svg();
        assert!(svg.contains("A &lt; b &amp; c") && svg.trim_end().ends_with("</svg>"), "{svg}");
    }

    #[test]
    fn a_long_title_and_a_marker_at_the_end_fit_into_the_plot() {
        let top = PlotPoint { x: 10.0, y: 1e4, low: 1e4, high: 1e4 };
        let series = Series {
            label: "a".into(),
            look: Look::at(0),
            joined: false,
            points: vec![PlotPoint { y: 1.0, ..top }, top],
            medians: Vec::new(),
        };
        let plot = |title: &str| Plot {
            title: title.into(),
            x_label: String::new(),
            y_label: String::new(),
            x_scale: Scale::Linear,
            y_scale: Scale::Log,
            series: vec![series.clone()],
            note: String::new(),
        };
        let width = |svg: &str| -> f64 {
            let start = svg.find(" width=\"").unwrap() + 8;
            svg[start..].split('"').next().unwrap().parse().unwrap()
        };
        let (short, long) = (plot("short").svg(), plot(&"w".repeat(120)).svg());
        assert!(width(&long) > LEFT + 120.0 * 8.0 && width(&short) < width(&long));
        // The upper marker reaches 6 above its position and must stay below the upper edge of the
        // frame.
        let paths = || short.match_indices(" d=\"M").map(|(at, _)| &short[at + 5..]);
        let heights = paths().map(|d| {
            let end = d
                .find(|c: char| c != '.' && c != ' ' && c != ',' && c != '-' && !c.is_ascii_digit())
                .unwrap();
            let pair: Vec<f64> =
                d[..end].split([' ', ',']).filter_map(|n| n.parse().ok()).collect();
            pair[1]
        });
        assert!(heights.fold(f64::INFINITY, f64::min) > TOP);
    }
}
