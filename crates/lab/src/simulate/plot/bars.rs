//! Bar charts.

use maud::html;

use super::axis::{Axis, Scale};
use super::style::{BELOW, Look, PLOT_WIDTH, Page, TOP, label_width, line, rich, sentence, short};

#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    pub title: String,
    pub axis_label: String,
    /// The bars from top to bottom.
    pub bars: Vec<Bar>,
    /// A note in small print at the bottom.
    pub note: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub label: String,
    pub look: Look,
    /// The length of the bar, not negative.
    pub value: f64,
    /// The ends of the error bar; `value` twice for none.
    pub interval: (f64, f64),
    pub text: String,
}

const ROW: f64 = 34.0;

impl Bars {
    /// The bars as an SVG document.
    pub fn svg(&self) -> String {
        let longest = self.bars.iter().map(|bar| label_width(&bar.label)).fold(0.0, f64::max);
        let left = 24.0 + longest;
        let tops = || self.bars.iter().map(|bar| bar.value.max(bar.interval.1));
        let axis = Axis::new(Scale::Linear, tops(), tops(), PLOT_WIDTH);
        let bottom = TOP + ROW * self.bars.len() as f64;
        let across = |value: f64| left + axis.at(value.max(0.0)).unwrap_or(0.0);
        let texts = self.bars.iter().map(|bar| label_width(&bar.text)).fold(0.0, f64::max);
        let page = Page {
            title: &self.title,
            note: &self.note,
            left,
            width: left + PLOT_WIDTH + texts + 8.0,
            height: bottom + BELOW,
        };
        page.document(html! {
            @for (value, text) in axis.ticks().0 {
                g class="grid" stroke="#e4e4e4" { (line(across(value), TOP, across(value), bottom)) }
                text x=(short(across(value))) y=(bottom + 19.0) text-anchor="middle" { (text) }
            }
            @for (row, bar) in self.bars.iter().enumerate() {
                @let top = TOP + ROW * row as f64;
                @let middle = top + ROW / 2.0;
                @let (low, high) = bar.interval;
                rect class=(bar.look.fill_class()) x=(short(left)) y=(top + 6.0) fill=(bar.look.colour())
                    width=(short(across(bar.value) - left)) height=(ROW - 12.0) {}
                @if low < high {
                    g class="axis" stroke="#222" stroke-width="1.5" {
                        (line(across(low), middle, across(high), middle))
                        (line(across(low), middle - 5.0, across(low), middle + 5.0))
                        (line(across(high), middle - 5.0, across(high), middle + 5.0))
                    }
                }
                text x=(short(left - 8.0)) y=(middle + 4.5) text-anchor="end" { (bar.label) }
                text x=(short(across(high.max(bar.value)) + 8.0)) y=(middle + 4.5) { (bar.text) }
            }
            g class="axis" stroke="#222" { (line(left, TOP, left, bottom)) }
            text x=(short(left + PLOT_WIDTH / 2.0)) y=(bottom + 42.0) text-anchor="middle" {
                (rich(&sentence(&self.axis_label)))
            }
        })
    }
}
