//! Line plots as inline SVG. The lines are stretched to the available width. All text is HTML
//! beside them, so that it keeps its size on a phone. There are no inline styles, because the
//! content security policy forbids them.
//!
//! The values appear on hover and by keyboard without script: radio buttons lie over the picture,
//! one at each fraction of a tick, and a button that is hovered over or focused shows its values.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::layout::{number, quantity};
use super::scale::{Decades, Scale};

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

/// A plot. The x axis counts something.
pub(crate) struct Plot<'a> {
    /// Its name, the start of ids on the page.
    pub name: &'static str,
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
    /// The points have their height on this axis, 0 to 1.
    Logarithmic(Decades),
}

impl Axis {
    /// The value of a point at this height.
    fn value(self, y: f64) -> f64 {
        match self {
            Self::Linear => y,
            Self::Logarithmic(decades) => decades.value(y),
        }
    }
}

/// Size in units of the picture, which is stretched.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 400.0;
/// Parts between two ticks of the x axis at which values are shown, where they are whole numbers.
/// On a phone, each part must be wide enough for a finger.
const SLOTS: [f64; 2] = [2.0, 1.0];

/// The value of a line at `x`, between its points; `None` outside of them.
fn at(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let next = points.iter().position(|&(own, _)| own >= x)?;
    let (to, end) = points[next];
    let Some(&(from, start)) = next.checked_sub(1).and_then(|index| points.get(index)) else {
        return (to == x).then_some(end);
    };
    Some(start + (end - start) * (x - from) / (to - from).max(f64::MIN_POSITIVE))
}

impl Plot<'_> {
    /// The largest x of a line.
    fn x_most(&self) -> f64 {
        let ends = self.lines.iter().filter_map(|line| line.points.last());
        ends.map(|&(x, _)| x).fold(0.0, f64::max)
    }

    /// The plot and its legend; `None` with fewer than two points.
    pub fn render(&self) -> Option<Markup> {
        let x_most = self.x_most();
        if x_most <= 0.0 || self.lines.iter().all(|line| line.points.len() < 2) {
            return None;
        }
        let heights = self.lines.iter().flat_map(|line| line.points.iter().map(|&(_, y)| y));
        let bands = self.bands.iter().flat_map(|band| band.points.iter().map(|&(_, _, y)| y));
        let x_axis = Scale::upto(x_most, true);
        let (y_end, y_ticks) = match self.y_axis {
            Axis::Linear => {
                let scale = Scale::upto(heights.chain(bands).fold(0.0, f64::max), false);
                (scale.end(), scale.ticks())
            }
            Axis::Logarithmic(decades) => (1.0, decades.ticks()),
        };
        let y_parts = y_ticks.len() - 1;
        let place = |x: f64, y: f64| {
            (x / x_axis.end() * WIDTH, HEIGHT - y.clamp(0.0, y_end) / y_end * HEIGHT)
        };
        let path = |points: &mut dyn Iterator<Item = (f64, f64)>| {
            let mut path = String::new();
            for (index, (x, y)) in points.enumerate() {
                let (x, y) = place(x, y);
                // Writing to a string cannot fail.
                let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" });
            }
            path
        };
        Some(html! {
            figure.plot {
                div.frame {
                    p.y-label { (self.y_label) }
                    ol.y-ticks aria-hidden="true" { @for tick in y_ticks.iter().rev() { li { (tick) } } }
                    svg role="img" aria-label=(self.summary) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" {
                        @for part in 0..=y_parts {
                            @let y = HEIGHT * part as f64 / y_parts as f64;
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
                    (self.slots(x_axis, x_most))
                    ol.x-ticks aria-hidden="true" { @for tick in x_axis.ticks() { li { (tick) } } }
                    p.x-label { (self.x_label) }
                }
                figcaption {
                    ul.legend {
                        @for line in &self.lines { li { span.key.(line.class) {} (line.label) } }
                        @for band in &self.bands { li { span.key.area.(band.class) {} (band.label) } }
                    }
                    p.data { "Point at the picture, or use the arrow keys on it, for values." }
                }
            }
        })
    }

    /// The values at round numbers of x, over the picture.
    fn slots(&self, axis: Scale, x_most: f64) -> Markup {
        let each = SLOTS.into_iter().find(|parts| (axis.step / parts).fract() == 0.0);
        let each = axis.step / each.unwrap_or(1.0);
        let count = (axis.end() / each).round() as usize;
        let used = (x_most / each).ceil() as usize;
        html! {
            div.slots role="radiogroup" aria-label={ "Values: " (self.summary) } {
                @for slot in 1..=count {
                    @if slot <= used {
                        @let x = (slot as f64 * each).min(x_most);
                        @let values = self.values(x);
                        label.slot.right[2 * slot > count] {
                            input #{ (self.name) "-" (slot) } type="radio" name=(self.name) aria-label=(self.spoken(x, &values));
                            span.readout {
                                b { (number(x.round() as u64)) " " (self.x_label) }
                                @for (class, label, value) in &values {
                                    span { span.key.(class) {} (label) " " b { (value) } }
                                }
                            }
                        }
                    } @else { span.slot {} }
                }
            }
        }
    }

    /// Class, label and value of each line and band at `x`.
    fn values(&self, x: f64) -> Vec<(&str, &str, String)> {
        let lines = self.lines.iter().filter_map(|line| {
            let value = self.y_axis.value(at(&line.points, x)?);
            Some((line.class, line.label.as_str(), quantity(value)))
        });
        let bands = self.bands.iter().filter_map(|band| {
            let side = |high: bool| {
                let points: Vec<_> = band
                    .points
                    .iter()
                    .map(|&(x, low, top)| (x, if high { top } else { low }))
                    .collect();
                Some(quantity(self.y_axis.value(at(&points, x)?)))
            };
            Some((band.class, band.label, format!("{} to {}", side(false)?, side(true)?)))
        });
        lines.chain(bands).collect()
    }

    fn spoken(&self, x: f64, values: &[(&str, &str, String)]) -> String {
        let values: Vec<_> =
            values.iter().map(|(_, label, value)| format!("{label} {value}")).collect();
        format!("{} {}: {}", number(x.round() as u64), self.x_label, values.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_needs_two_points_and_escapes_its_texts() {
        let plot = |points| Plot {
            name: "cost",
            summary: "<b>".into(),
            x_label: "steps",
            y_label: "regret",
            lines: vec![Line { label: "a & b".into(), class: "own", points }],
            bands: Vec::new(),
            y_axis: Axis::Linear,
        };
        assert!(plot(vec![(1.0, 1.0)]).render().is_none());
        let drawn = plot(vec![(0.0, 0.0), (10.0, 4.0)]);
        let text = drawn.render().unwrap().into_string();
        assert!(
            text.contains("M0.0 400.0L1000.0 0.0")
                && text.contains("a &amp; b")
                && !text.contains("<b>\""),
            "{text}"
        );
        assert!(text.contains("aria-label=\"5 steps: a &amp; b 2.00\""), "{text}");
    }

    #[test]
    fn values_between_points_are_those_of_the_line() {
        let points = [(2.0, 1.0), (4.0, 3.0)];
        assert_eq!(
            [1.0, 2.0, 3.0, 4.0, 5.0].map(|x| at(&points, x)),
            [None, Some(1.0), Some(2.0), Some(3.0), None]
        );
    }
}
