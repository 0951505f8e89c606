//! Lines over time or over pages, as SVG without script. The labels of the axes and the names of
//! the lines are texts of their own pictures, so that they keep their size on a phone.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::forecast::DAY_MS;
use super::layout::{Tab, day, formatted, number};
use super::view::Changed;

/// Least distance of two names at the ends of lines, as a part of the height.
const NAMES_APART: f64 = 0.08;
/// Most parts of an axis: more labels would not fit on a phone.
const PARTS_MAX: f64 = 5.0;
/// Parts of a picture in which its paths are drawn.
const UNITS: f64 = 1000.0;

/// A line. All places are parts of the width and of the height, from 0 at the left and at the
/// bottom to 1.
pub(crate) struct Line {
    /// Its name, at its end.
    pub label: String,
    /// The number of its colour, from 1 to 6.
    pub colour: usize,
    /// Ascending in x.
    pub points: Vec<(f64, f64)>,
    /// How it would go on: dashed.
    pub preview: Vec<(f64, f64)>,
}

#[derive(Default)]
pub(crate) struct Chart {
    /// The picture in words, for screen readers.
    pub summary: String,
    pub lines: Vec<Line>,
    /// Labels of the axes, with their places.
    pub x_ticks: Vec<(f64, String)>,
    pub y_ticks: Vec<(f64, String)>,
    /// A level that the lines have to reach, and its name.
    pub level: Option<(f64, String)>,
    /// Stretches of the x axis, with the class of their colour.
    pub zones: Vec<(f64, f64, &'static str)>,
    /// The area around the first line: `(x, low, high)`.
    pub band: Vec<(f64, f64, f64)>,
    /// The present on the x axis.
    pub now: Option<f64>,
    /// The changes of the experiment on the x axis.
    pub changes: Vec<f64>,
}

fn percent(part: f64) -> String {
    format!("{:.2}%", 100.0 * part.clamp(0.0, 1.0))
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (index, (x, y)) in points.enumerate() {
        let (x, y) = (UNITS * x.clamp(0.0, 1.0), UNITS * (1.0 - y.clamp(0.0, 1.0)));
        // Writing to a string cannot fail.
        let _ = write!(path, "{}{x:.0} {y:.0}", if index == 0 { "M" } else { "L" });
    }
    path
}

impl Chart {
    pub fn render(&self) -> Markup {
        html! {
            div.race {
                svg aria-hidden="true" { @for (at, label) in &self.y_ticks {
                    text x="100%" y=(percent(1.0 - at)) dy="4" text-anchor="end" { (label) }
                } }
                svg role="img" aria-label=(self.summary) {
                    @for (from, to, class) in &self.zones {
                        rect.(class) x=(percent(*from)) width=(percent(to - from)) y="0" height="100%" {}
                    }
                    @for (at, _) in &self.y_ticks {
                        @let y = percent(1.0 - at);
                        line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
                    }
                    svg viewBox={ "0 0 " (UNITS) " " (UNITS) } preserveAspectRatio="none" x="0" y="0" width="100%" height="100%" {
                        @if !self.band.is_empty() {
                            @let up = path(self.band.iter().map(|&(x, low, _)| (x, low)));
                            @let down = path(self.band.iter().rev().map(|&(x, _, high)| (x, high)));
                            path.area d={ (up) (down.replacen('M', "L", 1)) "Z" } {}
                        }
                        @for line in &self.lines {
                            @let class = format!("ln k{}", line.colour);
                            path class=(class) d=(path(line.points.iter().copied())) {}
                            @if !line.preview.is_empty() {
                                path class={ (class) " dash" } d=(path(line.preview.iter().copied())) {}
                            }
                        }
                    }
                    @if let Some((at, _)) = &self.level {
                        @let y = percent(1.0 - at);
                        line.need x1="0" x2="100%" y1=(y) y2=(y) {}
                    }
                    @for at in &self.changes {
                        line.change x1=(percent(*at)) x2=(percent(*at)) y1="0" y2="100%" {}
                    }
                    @if let Some(now) = self.now {
                        line.now x1=(percent(now)) x2=(percent(now)) y1="0" y2="100%" {}
                    }
                }
                (self.names())
                svg.x aria-hidden="true" { @for (at, label) in &self.x_ticks {
                    @let anchor = match at { at if *at < 0.05 => "start", at if *at > 0.95 => "end", _ => "middle" };
                    text x=(percent(*at)) y="16" text-anchor=(anchor) { (label) }
                } }
            }
        }
    }

    /// The chart as a picture of its own, without the style of a page.
    pub fn picture(&self) -> Markup {
        // the plot lies between these margins
        const WIDTH: f64 = 960.0;
        const HEIGHT: f64 = 420.0;
        const LEFT: f64 = 70.0;
        const RIGHT: f64 = 190.0;
        const TOP: f64 = 20.0;
        const BOTTOM: f64 = 40.0;
        const COLOURS: [&str; 6] =
            ["#0b57b0", "#a63a00", "#0b6b55", "#7b3fb5", "#7a5600", "#525d6d"];
        const DASHES: [&str; 5] = ["none", "12 3", "4 3", "12 3 3 3", "20 4"];
        let x = |part: f64| LEFT + (WIDTH - LEFT - RIGHT) * part.clamp(0.0, 1.0);
        let y = |part: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part.clamp(0.0, 1.0);
        let points = |points: &[(f64, f64)]| {
            let text = points.iter().map(|&(at, of)| format!("{:.1},{:.1}", x(at), y(of)));
            text.collect::<Vec<_>>().join(" ")
        };
        let colour = |line: &Line| COLOURS[(line.colour + 5) % 6];
        let dash = |line: &Line| DASHES[(line.colour + 4) % 5];
        let area: Vec<_> = self.band.iter().map(|&(at, low, _)| (at, low)).collect();
        let back: Vec<_> = self.band.iter().rev().map(|&(at, _, high)| (at, high)).collect();
        html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } font-family="sans-serif" font-size="13" {
                title { (self.summary) }
                rect width="100%" height="100%" fill="#fff" {}
                @for (at, label) in &self.y_ticks {
                    line x1=(x(0.0)) x2=(x(1.0)) y1=(y(*at)) y2=(y(*at)) stroke="#dfe3e8" {}
                    text x=(LEFT - 8.0) y=(y(*at) + 4.0) text-anchor="end" fill="#525d6d" { (label) }
                }
                @for (at, label) in &self.x_ticks {
                    text x=(x(*at)) y=(HEIGHT - BOTTOM + 20.0) text-anchor="middle" fill="#525d6d" { (label) }
                }
                @if !area.is_empty() {
                    polygon points=(points(&[area, back].concat())) fill="#0b57b0" fill-opacity="0.15" {}
                }
                @if let Some((at, _)) = &self.level {
                    line x1=(x(0.0)) x2=(x(1.0)) y1=(y(*at)) y2=(y(*at)) stroke="#1b2330" stroke-width="1.5" {}
                }
                @for at in &self.changes {
                    line x1=(x(*at)) x2=(x(*at)) y1=(TOP) y2=(HEIGHT - BOTTOM) stroke="#525d6d" stroke-dasharray="2 4" {}
                }
                @for line in &self.lines {
                    polyline points=(points(&line.points)) fill="none" stroke=(colour(line)) stroke-width="2" stroke-dasharray=(dash(line)) {}
                }
                @for (_, at, label, of) in self.placed_names() {
                    text x=(x(1.0) + 10.0) y=(y(at) + 4.0) fill=(if of == 0 { "#1b2330" } else { COLOURS[(of + 5) % 6] }) { (label) }
                }
            }
        }
    }

    /// The names at the ends of the lines, none over another.
    fn names(&self) -> Markup {
        html! {
            svg aria-hidden="true" { @for (own, at, label, colour) in self.placed_names() {
                line.lead-line x1="0" x2="10" y1=(percent(1.0 - own)) y2=(percent(1.0 - at)) {}
                @let class = if colour == 0 { "strong".into() } else { format!("k{colour}") };
                text class=(class) x="14" y=(percent(1.0 - at)) dy="4" { (label) }
            } }
        }
    }

    /// Each name with the height of its end, that of the name, and its colour.
    fn placed_names(&self) -> Vec<(f64, f64, &str, usize)> {
        let end = |line: &Line| line.preview.last().or(line.points.last()).map_or(0.0, |end| end.1);
        let lines = self.lines.iter().map(|line| (end(line), line.label.as_str(), line.colour));
        let level = self.level.iter().map(|(at, label)| (*at, label.as_str(), 0));
        let mut names: Vec<_> = lines.chain(level).collect();
        names.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut next = 1.0_f64;
        let room = |below: usize| NAMES_APART * below as f64;
        let count = names.len();
        let placed = names.into_iter().enumerate().map(|(index, (own, label, colour))| {
            let at = own.min(next).max(room(count - 1 - index));
            next = at - NAMES_APART;
            (own, at, label, colour)
        });
        placed.collect()
    }
}

/// A time axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Unix milliseconds at the left and at the right end.
    pub start: i64,
    pub end: i64,
}

impl Times {
    /// The place of a time, from 0 at the left to 1.
    pub fn place(self, ms: i64) -> f64 {
        (ms - self.start) as f64 / (self.end - self.start) as f64
    }

    /// The starts of days, or times of a day if it is short.
    pub fn ticks(self, now: i64) -> Vec<(f64, String)> {
        /// Parts of the axis.
        const PARTS: i64 = 4;
        let Self { start, end } = self;
        if end - start < 2 * DAY_MS {
            let format = if end - start < PARTS * 60_000 { "%H:%M:%S" } else { "%H:%M" };
            let time = |at: i64| (self.place(at), formatted(at, format));
            let times = (0..=PARTS).map(|part| time(start + (end - start) * part / PARTS));
            let mut times: Vec<_> = times.collect();
            times.dedup_by(|one, other| one.1 == other.1);
            return times;
        }
        let date = |at: i64| {
            let day = day(at, now);
            let of_month = day.split_once('\u{a0}').map_or("", |(_, of_month)| of_month);
            (self.place(at), of_month.to_owned())
        };
        let (first, last) = (start.div_euclid(DAY_MS) + 1, end.div_euclid(DAY_MS));
        let every = ((last - first) / PARTS + 1).max(1);
        (first..=last).step_by(every as usize).map(|day| date(day * DAY_MS)).collect()
    }

    /// The places of the changes of an experiment within it.
    pub fn of_changes(self, changes: &[Changed]) -> Vec<f64> {
        let within = changes.iter().filter(|of| (self.start..=self.end).contains(&of.at));
        within.map(|of| self.place(of.at)).collect()
    }
}

/// An axis from 0.
pub(crate) struct Scale {
    /// The number at its end.
    pub end: f64,
    /// Labels, with their places.
    pub ticks: Vec<(f64, String)>,
}

/// The numbers at which an axis is labelled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Labels {
    Whole,
    Any,
}

/// An axis from 0 to at least `most`. Its labels are 1, 2, 2.5 or 5 times a power of ten apart.
pub(crate) fn scale(most: f64, labels: Labels) -> Scale {
    let most = if most > 0.0 && most.is_finite() { most } else { 1.0 };
    let least = most / PARTS_MAX * (1.0 - 1e-12);
    let power = 10f64.powf(least.log10().floor());
    let fits = |step: &f64| *step >= least && (labels == Labels::Any || step.fract() == 0.0);
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power).into_iter().find(fits);
    let step = step.unwrap_or_else(|| least.ceil());
    let parts = (most / step - 1e-9).ceil().max(1.0);
    let label = |value: f64| match step.fract() == 0.0 {
        true => number(value.round() as u64),
        false => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    };
    let tick = |part: usize| (part as f64 / parts, label(step * part as f64));
    Scale { end: step * parts, ticks: (0..=parts as usize).map(tick).collect() }
}

/// A figure, and whether it has a picture besides its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    Lead,
    Days,
    Segments,
    Race,
    Regret,
}

impl Figure {
    /// Its name in files, the page that has its data, and whether it has a picture.
    pub fn about(self) -> (&'static str, Tab, bool) {
        match self {
            Self::Lead => ("lead", Tab::Result, false),
            Self::Days => ("lead-by-day", Tab::Result, true),
            Self::Segments => ("segments", Tab::Result, false),
            Self::Race => ("race", Tab::Result, true),
            Self::Regret => ("regret", Tab::Evidence, true),
        }
    }
}

/// The links to the files of a figure.
pub(crate) fn links(experiment: &str, figure: Figure) -> Markup {
    let (name, _, has_picture) = figure.about();
    let path = format!("/experiments/{}/figures/{name}", experiment);
    html! {
        p.files.small {
            "To take away: " a href={ (path) ".csv" } download { "numbers (CSV)" }
            @if has_picture { ", " a href={ (path) ".svg" } download { "picture (SVG)" } }
        }
    }
}
