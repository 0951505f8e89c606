//! Plots as SVG, fit for a paper: a line a policy with the band of its uncertainty, a legend beside
//! the curves (never over them), and colours that everybody can tell apart, also in grey through
//! their dashes.

use std::fmt::Write;

use maud::{Markup, html};

/// What a plot shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Above the curves.
    pub title: String,
    /// Below the time axis.
    pub x_label: String,
    /// Beside the other axis.
    pub y_label: String,
    /// Of the time axis.
    pub x_scale: Scale,
    /// Of the other axis.
    pub y_scale: Scale,
    /// In any order; the legend lists them from the highest end to the lowest.
    pub series: Vec<Series>,
    /// In small print at the bottom: runs, what the band is.
    pub note: String,
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// From 0, evenly.
    Linear,
    /// By powers of ten; what is not above 0 is left out.
    Log,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// In the legend.
    pub label: String,
    /// Joined by a line, or markers alone (for points that are no continuation of each other).
    pub joined: bool,
    /// In ascending order of `x`.
    pub points: Vec<PlotPoint>,
}

/// One point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlotPoint {
    /// Where.
    pub x: f64,
    /// The mean.
    pub y: f64,
    /// Lower edge of the band around it; `y` for none.
    pub low: f64,
    /// Upper edge of the band around it; `y` for none.
    pub high: f64,
}

/// Values side by side, as bars.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// Above the bars.
    pub title: String,
    /// Below their axis.
    pub axis_label: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
    /// In small print at the bottom.
    pub note: String,
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Before it.
    pub label: String,
    /// Its length, not negative.
    pub value: f64,
    /// At its end.
    pub text: String,
}

/// Okabe and Ito's palette without its yellow, which is too faint for a line on white.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9"];
/// One more than divides the number of colours, so that 28 curves differ.
const DASHES: [&str; 4] = ["none", "7 3", "2 2.5", "8 3 2 3"];

const FONT: &str = "Helvetica, Arial, 'Liberation Sans', sans-serif";
const FONT_SIZE: f64 = 13.0;
/// Mean width of a character in font sizes, on the safe side.
const CHARACTER: f64 = 0.56;
const PLOT_WIDTH: f64 = 520.0;
const PLOT_HEIGHT: f64 = 340.0;
const TOP: f64 = 40.0;
const LEFT: f64 = 82.0;
const BELOW: f64 = 78.0;
const LEGEND_GAP: f64 = 22.0;
const LEGEND_LINE: f64 = 30.0;
const LEGEND_ROW: f64 = 20.0;
const TITLE_SIZE: f64 = 15.0;

/// Room for a title, which is bold and so a little wider than other text of its size.
fn title_width(title: &str) -> f64 {
    title.chars().count() as f64 * TITLE_SIZE * CHARACTER * 1.05
}

/// The plot as a stand-alone SVG document.
pub fn svg(plot: &Plot) -> String {
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let x = Axis::new(plot.x_scale, points().map(|p| p.x), points().map(|p| p.x), PLOT_WIDTH);
    // on a logarithmic axis nothing rounds the end up, and a marker at it would be half outside
    let headroom = if plot.y_scale == Scale::Log { 1.2 } else { 1.0 };
    let tops = points().map(|p| p.high * headroom);
    let y = Axis::new(plot.y_scale, points().map(|p| p.y), tops, PLOT_HEIGHT);
    let canvas = Canvas { x, y };
    let mut order: Vec<usize> = (0..plot.series.len()).collect();
    let end = |at: usize| plot.series[at].points.last().map_or(0.0, |point| point.y);
    order.sort_by(|&a, &b| end(b).total_cmp(&end(a)));

    let longest = plot.series.iter().map(|series| series.label.chars().count()).max().unwrap_or(0);
    let legend_width = LEGEND_LINE + 8.0 + longest as f64 * FONT_SIZE * CHARACTER;
    let width =
        (LEFT + PLOT_WIDTH + LEGEND_GAP + legend_width).max(LEFT + title_width(&plot.title)) + 12.0;
    let legend_height = LEGEND_ROW * plot.series.len() as f64;
    let height = TOP + PLOT_HEIGHT.max(legend_height) + BELOW;
    let size = format!("0 0 {width:.0} {height:.0}");

    let document = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(size) width=(format!("{width:.0}"))
            height=(format!("{height:.0}")) font-family=(FONT) font-size=(FONT_SIZE) fill="#222" {
            title { (plot.title) }
            rect width="100%" height="100%" fill="white" {}
            text x=(LEFT) y=(TOP - 16.0) font-size=(TITLE_SIZE) font-weight="bold" { (plot.title) }
            (canvas.grid())
            @for (at, series) in plot.series.iter().enumerate() { (canvas.band(at, series)) }
            @for (at, series) in plot.series.iter().enumerate() { (canvas.curve(at, series)) }
            (canvas.frame(&plot.x_label, &plot.y_label))
            @for (row, &at) in order.iter().enumerate() {
                (legend_row(at, &plot.series[at], TOP + 8.0 + LEGEND_ROW * row as f64))
            }
            text x=(LEFT) y=(height - 10.0) font-size="11" fill="#555" { (plot.note) }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", document.into_string())
}

/// The bars as a stand-alone SVG document.
pub fn bars_svg(plot: &Bars) -> String {
    const ROW: f64 = 34.0;
    let longest = plot.bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
    let left = 24.0 + longest as f64 * FONT_SIZE * CHARACTER;
    let values = || plot.bars.iter().map(|bar| bar.value);
    let axis = Axis::new(Scale::Linear, values(), values(), PLOT_WIDTH);
    let bottom = TOP + ROW * plot.bars.len() as f64;
    let width = left + (PLOT_WIDTH + 58.0).max(title_width(&plot.title)) + 12.0;
    let height = bottom + BELOW;
    let across = |value: f64| left + axis.at(value).unwrap_or(0.0);
    let document = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width:.0} {height:.0}"))
            width=(format!("{width:.0}")) height=(format!("{height:.0}"))
            font-family=(FONT) font-size=(FONT_SIZE) fill="#222" {
            title { (plot.title) }
            rect width="100%" height="100%" fill="white" {}
            text x=(short(left)) y=(TOP - 16.0) font-size=(TITLE_SIZE) font-weight="bold" { (plot.title) }
            @for (value, text) in axis.ticks().0 {
                g stroke="#e4e4e4" { (line(across(value), TOP, across(value), bottom)) }
                text x=(short(across(value))) y=(bottom + 19.0) text-anchor="middle" { (text) }
            }
            @for (row, bar) in plot.bars.iter().enumerate() {
                @let top = TOP + ROW * row as f64;
                rect x=(short(left)) y=(top + 6.0) width=(short(across(bar.value) - left)) height=(ROW - 12.0)
                    fill=(COLOURS[0]) {}
                text x=(short(left - 8.0)) y=(top + ROW / 2.0 + 4.5) text-anchor="end" { (bar.label) }
                text x=(short(across(bar.value) + 6.0)) y=(top + ROW / 2.0 + 4.5) { (bar.text) }
            }
            g stroke="#222" { (line(left, TOP, left, bottom)) }
            text x=(short(left + PLOT_WIDTH / 2.0)) y=(bottom + 42.0) text-anchor="middle" { (plot.axis_label) }
            text x=(short(left)) y=(height - 10.0) font-size="11" fill="#555" { (plot.note) }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", document.into_string())
}

/// One axis: from values to distances along it.
#[derive(Debug, Clone, Copy)]
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    length: f64,
}

impl Axis {
    /// An axis that holds all `values` and reaches up to all `tops`.
    fn new(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        tops: impl Iterator<Item = f64>,
        length: f64,
    ) -> Self {
        let highest = tops.filter(|top| top.is_finite()).fold(0.0, f64::max);
        let (low, high) = match scale {
            Scale::Linear => {
                let step = step(highest);
                (0.0, (highest / step).ceil().max(1.0) * step)
            }
            Scale::Log => {
                let lowest = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
                if lowest.is_finite() {
                    let power = 10_f64.powf(lowest.log10().floor());
                    let starts = [5.0, 2.0].into_iter().map(|m| m * power);
                    let low = starts.into_iter().find(|start| *start <= lowest).unwrap_or(power);
                    (low, highest.max(low * 5.0))
                } else {
                    (1.0, 10.0)
                }
            }
        };
        Self { scale, low, high, length }
    }

    /// Distance of `value` from the axis's start; `None` when a logarithm has no place for it.
    fn at(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => {
                (value / self.low).log10() / (self.high / self.low).log10()
            }
            Scale::Log => return None,
        };
        // a little beyond the ends is cut off by the frame; far beyond is kept within what SVG
        // viewers can draw
        Some(share.clamp(-1.0, 2.0) * self.length)
    }

    /// Marks with a number, and marks without.
    fn ticks(&self) -> (Vec<(f64, String)>, Vec<f64>) {
        match self.scale {
            Scale::Linear => {
                let step = step(self.high);
                let count = (self.high / step).round() as u32;
                let marks =
                    (0..=count).map(|n| f64::from(n) * step).map(|v| (v, plain(v, step))).collect();
                (marks, Vec::new())
            }
            Scale::Log => {
                let within = |value: f64| value >= self.low * 0.999 && value <= self.high * 1.001;
                let first = self.low.log10().floor() as i32;
                let last = self.high.log10().ceil() as i32;
                let multiples = (first..=last)
                    .flat_map(|n| (1..10).map(move |m| (m, n)))
                    .filter(|&(m, n)| within(f64::from(m) * 10_f64.powi(n)));
                // below two decades powers of ten alone are too few to read by
                let short = self.high / self.low < 100.0;
                let (named, minor): (Vec<_>, Vec<_>) =
                    multiples.partition(|&(m, _)| m == 1 || (short && (m == 2 || m == 5)));
                let value = |(m, n): (i32, i32)| f64::from(m) * 10_f64.powi(n);
                let name = |at: (i32, i32)| match short {
                    true => plain(value(at), 10_f64.powi(at.1)),
                    false => power_of_ten(at.1),
                };
                (
                    named.into_iter().map(|at| (value(at), name(at))).collect(),
                    minor.into_iter().map(value).collect(),
                )
            }
        }
    }
}

/// A step of 1, 2 or 5 times a power of ten that divides `0..=highest` into four to ten parts.
fn step(highest: f64) -> f64 {
    if highest.is_nan() || highest <= 0.0 {
        return 0.25;
    }
    let power = 10_f64.powf((highest / 4.0).log10().floor());
    [5.0, 2.0].into_iter().map(|m| m * power).find(|step| highest / step >= 4.0).unwrap_or(power)
}

/// A tick's number: whole where the step is, thousands apart.
fn plain(value: f64, step: f64) -> String {
    if step < 1.0 {
        let digits = (-step.log10()).ceil() as usize;
        return format!("{value:.digits$}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            // a thin space, as in print
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// `10ⁿ`.
fn power_of_ten(n: i32) -> String {
    let raised = |digit: char| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32('⁰' as u32 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
    };
    format!("10{}", n.to_string().chars().map(raised).collect::<String>())
}

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
                text x=(short(across(*value))) y=(bottom + 21.0) text-anchor="middle" { (text) }
            }
            @for (value, text) in &y_marks {
                text x=(LEFT - 10.0) y=(short(up(*value) + 4.5)) text-anchor="end" { (text) }
            }
        }
    }

    fn frame(&self, x_label: &str, y_label: &str) -> Markup {
        let middle = TOP + PLOT_HEIGHT / 2.0;
        html! {
            rect x=(LEFT) y=(TOP) width=(PLOT_WIDTH) height=(PLOT_HEIGHT) fill="none" stroke="#222" {}
            text x=(LEFT + PLOT_WIDTH / 2.0) y=(TOP + PLOT_HEIGHT + 42.0) text-anchor="middle" { (x_label) }
            text x="18" y=(middle) text-anchor="middle" transform=(format!("rotate(-90 18 {middle})")) {
                (y_label)
            }
        }
    }

    fn band(&self, at: usize, series: &Series) -> Markup {
        if !series.joined || series.points.iter().all(|point| point.low == point.high) {
            return html! {};
        }
        // a lower edge at or below 0 is drawn at the bottom of a logarithmic axis
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
        html! { path d=(outline) fill=(colour(at)) fill-opacity="0.16" clip-path="url(#frame)" {} }
    }

    fn curve(&self, at: usize, series: &Series) -> Markup {
        let places: Vec<_> = series.points.iter().filter_map(|p| self.place(p.x, p.y)).collect();
        html! {
            @if series.joined {
                path d=(path(places.iter().copied())) fill="none" stroke=(colour(at)) stroke-width="2"
                    stroke-linejoin="round" stroke-dasharray=(dash(at)) clip-path="url(#frame)" {}
            } @else {
                @for point in &series.points { (self.bar(at, point)) }
                @for (x, y) in places { (marker(at, x, y)) }
            }
        }
    }

    /// The uncertainty of a single marker.
    fn bar(&self, at: usize, point: &PlotPoint) -> Markup {
        let ends =
            (self.place(point.x, point.low.max(self.y.low)), self.place(point.x, point.high));
        html! {
            @if let (Some((x, low)), Some((_, high))) = ends {
                g stroke=(colour(at)) stroke-width="1.5" clip-path="url(#frame)" { (line(x, low, x, high)) }
            }
        }
    }
}

fn legend_row(at: usize, series: &Series, y: f64) -> Markup {
    let x = LEFT + PLOT_WIDTH + LEGEND_GAP;
    html! {
        @if series.joined {
            g stroke=(colour(at)) stroke-width="2" stroke-dasharray=(dash(at)) {
                (line(x, y, x + LEGEND_LINE, y))
            }
        } @else {
            (marker(at, x + LEGEND_LINE / 2.0, y))
        }
        text x=(x + LEGEND_LINE + 8.0) y=(y + 4.5) { (series.label) }
    }
}

/// Hollow, and of four shapes: markers at one place stay visible through each other.
fn marker(at: usize, x: f64, y: f64) -> Markup {
    let outline: &[(f64, f64)] = match at % 4 {
        0 => &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
        1 => &[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)],
        2 => &[(0.0, -6.0), (5.5, 4.0), (-5.5, 4.0)],
        _ => &[(0.0, 6.0), (5.5, -4.0), (-5.5, -4.0)],
    };
    let shape = path(outline.iter().map(|(across, down)| (x + across, y + down)));
    html! { path d=(shape + "Z") fill="none" stroke=(colour(at)) stroke-width="2" {} }
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> Markup {
    html! { line x1=(short(x1)) y1=(short(y1)) x2=(short(x2)) y2=(short(y2)) {} }
}

fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    for (index, (x, y)) in places.enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(text, "{command}{x:.1} {y:.1}");
    }
    text
}

fn short(value: f64) -> String {
    format!("{value:.1}")
}

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

fn dash(at: usize) -> &'static str {
    DASHES[at % DASHES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale, values: &[f64]) -> Axis {
        Axis::new(scale, values.iter().copied(), values.iter().copied(), 100.0)
    }

    #[test]
    fn a_linear_axis_starts_at_nothing_and_ends_at_a_round_number() {
        for (highest, end, marks) in
            [(97.0, 100.0, 6), (0.3, 0.3, 7), (1000.0, 1000.0, 6), (4100.0, 5000.0, 6)]
        {
            let axis = axis(Scale::Linear, &[highest]);
            let (named, _) = axis.ticks();
            assert!((axis.high - end).abs() < 1e-9, "{highest} ends at {}", axis.high);
            assert_eq!(named.len(), marks, "{highest}: {named:?}");
            assert_eq!(axis.at(0.0), Some(0.0));
        }
        assert_eq!(plain(1_250_000.0, 50_000.0), "1\u{2009}250\u{2009}000");
        assert_eq!(plain(0.25, 0.05), "0.25");
    }

    #[test]
    fn a_logarithmic_axis_places_decades_evenly_and_leaves_out_what_is_not_positive() {
        let axis = axis(Scale::Log, &[0.0, 1.0, 10_000.0]);
        for (value, place) in [(1.0, 0.0), (10.0, 25.0), (100.0, 50.0), (10_000.0, 100.0)] {
            assert!((axis.at(value).unwrap() - place).abs() < 1e-9);
        }
        assert_eq!(axis.at(0.0), None);
        let names =
            |axis: &Axis| axis.ticks().0.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names(&axis), ["10⁰", "10¹", "10²", "10³", "10⁴"]);
        assert_eq!(names(&super::tests::axis(Scale::Log, &[0.3, 4.0])), ["0.2", "0.5", "1", "2"]);
        assert_eq!(power_of_ten(-12), "10⁻¹²");
    }

    #[test]
    fn nothing_to_show_is_still_a_plot() {
        let empty = Plot {
            title: "a < b & c".into(),
            x_label: String::new(),
            y_label: String::new(),
            x_scale: Scale::Log,
            y_scale: Scale::Linear,
            series: Vec::new(),
            note: String::new(),
        };
        let svg = svg(&empty);
        assert!(svg.contains("a &lt; b &amp; c") && svg.trim_end().ends_with("</svg>"), "{svg}");
    }

    #[test]
    fn a_long_title_and_a_marker_at_the_end_are_inside() {
        let top = PlotPoint { x: 10.0, y: 1e4, low: 1e4, high: 1e4 };
        let series = Series {
            label: "a".into(),
            joined: false,
            points: vec![PlotPoint { y: 1.0, ..top }, top],
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
        let (short, long) = (svg(&plot("short")), svg(&plot(&"w".repeat(120))));
        assert!(width(&long) > LEFT + 120.0 * 8.0 && width(&short) < width(&long));
        // the upper marker, hollow and 6 high to either side of its place, begins below the frame's
        // upper edge
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

    #[test]
    fn twenty_eight_curves_differ() {
        let looks: std::collections::HashSet<_> =
            (0..28).map(|at| (colour(at), dash(at))).collect();
        assert_eq!(looks.len(), 28);
    }
}
