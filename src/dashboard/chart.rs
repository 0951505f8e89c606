//! Lines over time or over pages, as SVG without script. The labels of the axes and the names of
//! the lines are texts of their own pictures, so that they keep their size on a phone.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::layout::number;

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

    /// The names at the ends of the lines, none over another.
    fn names(&self) -> Markup {
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
        html! {
            svg aria-hidden="true" { @for (own, at, label, colour) in placed {
                line.lead-line x1="0" x2="10" y1=(percent(1.0 - own)) y2=(percent(1.0 - at)) {}
                @let class = if colour == 0 { "strong".into() } else { format!("k{colour}") };
                text class=(class) x="14" y=(percent(1.0 - at)) dy="4" { (label) }
            } }
        }
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
