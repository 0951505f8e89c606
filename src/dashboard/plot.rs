//! Line plots as inline SVG. The lines are stretched to the available width. All text is HTML
//! beside them, so that it keeps its size on a phone. There are no inline styles, because the
//! content security policy forbids them.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::layout::quantity;

/// One line.
pub(crate) struct Line<'a> {
    /// Label in the legend.
    pub label: String,
    /// CSS class of the colour.
    pub class: &'a str,
    /// Ascending in x.
    pub points: Vec<(f64, f64)>,
}

/// The area between two lines over the same x.
pub(crate) struct Band<'a> {
    /// Label in the legend.
    pub label: &'a str,
    /// CSS class of the colour.
    pub class: &'a str,
    /// `(x, low, high)`, ascending in x.
    pub points: Vec<(f64, f64, f64)>,
}

/// A plot.
pub(crate) struct Plot<'a> {
    /// Description for screen readers.
    pub summary: String,
    /// Label of the x axis.
    pub x_label: &'a str,
    /// Label of the y axis.
    pub y_label: &'a str,
    pub lines: Vec<Line<'a>>,
    pub bands: Vec<Band<'a>>,
    pub y_axis: Axis,
}

/// How a y axis is divided.
#[derive(Clone, Copy)]
pub(crate) enum Axis {
    /// From 0 to a round number.
    Linear,
    /// From 1 to this factor. The points have the logarithm, as a share of the logarithm of the
    /// end: 0 to 1.
    Logarithmic(f64),
}

/// Size in units of the picture, which is stretched.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 400.0;
/// Number of parts between the ticks of an axis.
const PARTS: usize = 4;

/// The smallest number not below `value` that is 1, 2, 2.5, 4, 5 or 8 times a power of ten. Its
/// quarters are round, too.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 2.5, 4.0, 5.0, 8.0, 10.0];
    steps
        .into_iter()
        .map(|step| step * power)
        .find(|end| *end >= value * (1.0 - 1e-12))
        .unwrap_or(10.0 * power)
}

impl Plot<'_> {
    /// The plot and its legend; `None` with fewer than two points.
    pub fn render(&self) -> Option<Markup> {
        let all = || {
            let lines = self.lines.iter().flat_map(|line| line.points.iter().copied());
            lines.chain(
                self.bands
                    .iter()
                    .flat_map(|band| band.points.iter().map(|&(x, _, high)| (x, high))),
            )
        };
        let x_end = all().map(|(x, _)| x).fold(0.0, f64::max);
        let y_end = match self.y_axis {
            Axis::Linear => round_up(all().map(|(_, y)| y).fold(0.0, f64::max)),
            Axis::Logarithmic(_) => 1.0,
        };
        if x_end <= 0.0 || self.lines.iter().all(|line| line.points.len() < 2) {
            return None;
        }
        let at = |x: f64, y: f64| (x / x_end * WIDTH, HEIGHT - y.max(0.0) / y_end * HEIGHT);
        let path = |points: &mut dyn Iterator<Item = (f64, f64)>| {
            let mut path = String::new();
            for (index, (x, y)) in points.enumerate() {
                let (x, y) = at(x, y);
                // Writing to a string cannot fail.
                let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" });
            }
            path
        };
        let part_of = |part: usize| part as f64 / PARTS as f64;
        let x_ticks = (0..=PARTS).map(|part| quantity(x_end * part_of(part)));
        let y_tick = |part: usize| match self.y_axis {
            Axis::Linear => quantity(y_end * part_of(part)),
            Axis::Logarithmic(end) => quantity(end.powf(part_of(part))),
        };
        Some(html! {
            figure.plot {
                div.frame {
                    p.y-label { (self.y_label) }
                    ol.y-ticks aria-hidden="true" { @for part in (0..=PARTS).rev() { li { (y_tick(part)) } } }
                    svg role="img" aria-label=(self.summary) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" {
                        @for part in 0..=PARTS {
                            @let y = HEIGHT * part as f64 / PARTS as f64;
                            line.grid x1="0" x2=(WIDTH) y1=(y) y2=(y) {}
                        }
                        @for band in &self.bands {
                            @let up = path(&mut band.points.iter().map(|&(x, low, _)| (x, low)));
                            @let down = path(&mut band.points.iter().rev().map(|&(x, _, high)| (x, high)));
                            path.band.(band.class) d={ (up) (down.replacen('M', "L", 1)) "Z" } {}
                        }
                        @for line in &self.lines {
                            path.line.(line.class) d=(path(&mut line.points.iter().copied())) {}
                        }
                    }
                    ol.x-ticks aria-hidden="true" { @for tick in x_ticks { li { (tick) } } }
                    p.x-label { (self.x_label) }
                }
                figcaption {
                    ul.legend {
                        @for line in &self.lines { li { span.key.(line.class) {} (line.label) } }
                        @for band in &self.bands { li { span.key.area.(band.class) {} (band.label) } }
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers_that_are_not_below() {
        for (value, end) in [
            (0.0, 1.0),
            (1.0, 1.0),
            (1.1, 2.0),
            (2.2, 2.5),
            (37.0, 40.0),
            (8.1, 10.0),
            (0.03, 0.04),
        ] {
            assert!((round_up(value) - end).abs() < 1e-9, "{value}: {}", round_up(value));
        }
    }

    #[test]
    fn a_plot_needs_two_points_and_escapes_its_texts() {
        let plot = |points| Plot {
            summary: "<b>".into(),
            x_label: "steps",
            y_label: "regret",
            lines: vec![Line { label: "a & b".into(), class: "own", points }],
            bands: Vec::new(),
            y_axis: Axis::Linear,
        };
        assert!(plot(vec![(1.0, 1.0)]).render().is_none());
        let text = plot(vec![(0.0, 0.0), (10.0, 4.0)]).render().unwrap().into_string();
        assert!(
            text.contains("M0.0 400.0L1000.0 0.0")
                && text.contains("a &amp; b")
                && !text.contains("<b>"),
            "{text}"
        );
    }
}
