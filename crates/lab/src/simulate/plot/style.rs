//! Colours, fonts, sizes and shapes that all plots share.

use std::fmt::Write;

use maud::{Markup, html};

/// The palette of Okabe and Ito without its yellow, which is too faint for a line on white.
pub(super) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9"];
/// The number of dashes and the number of colours have no common divisor, so that 28 curves differ.
const DASHES: [&str; 4] = ["none", "7 3", "2 2.5", "8 3 2 3"];

pub(super) const FONT: &str = "Helvetica, Arial, 'Liberation Sans', sans-serif";
pub(super) const FONT_SIZE: f64 = 13.0;
/// Upper estimate of the mean width of a character, in font sizes.
pub(super) const CHARACTER: f64 = 0.56;
pub(super) const PLOT_WIDTH: f64 = 520.0;
pub(super) const TOP: f64 = 40.0;
pub(super) const BELOW: f64 = 78.0;
pub(super) const TITLE_SIZE: f64 = 15.0;

/// The width of a title. Bold text is a little wider than other text of the same size.
pub(super) fn title_width(title: &str) -> f64 {
    title.chars().count() as f64 * TITLE_SIZE * CHARACTER * 1.05
}

/// An SVG document of this content.
pub(super) fn document(content: Markup) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", content.into_string())
}

pub(super) fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> Markup {
    html! { line x1=(short(x1)) y1=(short(y1)) x2=(short(x2)) y2=(short(y2)) {} }
}

pub(super) fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    for (index, (x, y)) in places.enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(text, "{command}{x:.1} {y:.1}");
    }
    text
}

/// A coordinate with one decimal.
pub(super) fn short(value: f64) -> String {
    format!("{value:.1}")
}

/// The colour and the dashes of a curve, and the shape of its markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Position in the palette.
    pub colour: usize,
    /// Position among the dashes.
    pub dash: usize,
}

impl Look {
    /// The look of the curve at this position, for curves that are no policies.
    pub fn at(position: usize) -> Self {
        Self { colour: position, dash: position }
    }

    pub(super) fn colour(self) -> &'static str {
        COLOURS[self.colour % COLOURS.len()]
    }

    pub(super) fn dash(self) -> &'static str {
        DASHES[self.dash % DASHES.len()]
    }

    /// One of four shapes of markers.
    pub(super) fn shape(self) -> usize {
        (self.colour + self.dash) % 4
    }
}

/// The label of a tick. `10^n` has a raised exponent of normal digits: the superscript characters
/// are missing in some fonts.
pub(super) fn tick_label(label: &str) -> Markup {
    match label.split_once('^') {
        Some((base, exponent)) => html! { (base) tspan dy="-5" font-size="9.5" { (exponent) } },
        None => html! { (label) },
    }
}

/// `text` with a capital first letter.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_eight_curves_differ() {
        let looks: std::collections::HashSet<_> =
            (0..28).map(|at| (Look::at(at).colour(), Look::at(at).dash())).collect();
        assert_eq!(looks.len(), 28);
    }
}
