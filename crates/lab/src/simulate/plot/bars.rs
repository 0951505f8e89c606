//! Bar charts.

use maud::html;

use super::axis::{Axis, Scale};
use super::style::{
    BELOW, CHARACTER, COLOURS, FONT, FONT_SIZE, PLOT_WIDTH, TITLE_SIZE, TOP, document, line,
    sentence, short, title_width,
};

/// A bar chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// The title above the bars.
    pub title: String,
    /// The label below the axis.
    pub axis_label: String,
    /// The bars from top to bottom.
    pub bars: Vec<Bar>,
    /// A note in small print at the bottom.
    pub note: String,
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The label before the bar.
    pub label: String,
    /// The length of the bar, not negative.
    pub value: f64,
    /// The text at the end of the bar.
    pub text: String,
}

impl Bars {
    /// The bars as an SVG document.
    pub fn svg(&self) -> String {
        const ROW: f64 = 34.0;
        let longest = self.bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
        let left = 24.0 + longest as f64 * FONT_SIZE * CHARACTER;
        let values = || self.bars.iter().map(|bar| bar.value);
        let axis = Axis::new(Scale::Linear, values(), values(), PLOT_WIDTH);
        let bottom = TOP + ROW * self.bars.len() as f64;
        let width = left + (PLOT_WIDTH + 58.0).max(title_width(&self.title)) + 12.0;
        let height = bottom + BELOW;
        let across = |value: f64| left + axis.at(value).unwrap_or(0.0);
        document(html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width:.0} {height:.0}"))
                width=(format!("{width:.0}")) height=(format!("{height:.0}"))
                font-family=(FONT) font-size=(FONT_SIZE) fill="#222" {
                title { (sentence(&self.title)) }
                rect width="100%" height="100%" fill="white" {}
                text x=(short(left)) y=(TOP - 16.0) font-size=(TITLE_SIZE) font-weight="bold" { (sentence(&self.title)) }
                @for (value, text) in axis.ticks().0 {
                    g stroke="#e4e4e4" { (line(across(value), TOP, across(value), bottom)) }
                    text x=(short(across(value))) y=(bottom + 19.0) text-anchor="middle" { (text) }
                }
                @for (row, bar) in self.bars.iter().enumerate() {
                    @let top = TOP + ROW * row as f64;
                    rect x=(short(left)) y=(top + 6.0) width=(short(across(bar.value) - left)) height=(ROW - 12.0)
                        fill=(COLOURS[0]) {}
                    text x=(short(left - 8.0)) y=(top + ROW / 2.0 + 4.5) text-anchor="end" { (bar.label) }
                    text x=(short(across(bar.value) + 6.0)) y=(top + ROW / 2.0 + 4.5) { (bar.text) }
                }
                g stroke="#222" { (line(left, TOP, left, bottom)) }
                text x=(short(left + PLOT_WIDTH / 2.0)) y=(bottom + 42.0) text-anchor="middle" { (sentence(&self.axis_label)) }
                text x=(short(left)) y=(height - 10.0) font-size="11" fill="#555" { (self.note) }
            }
        })
    }
}
