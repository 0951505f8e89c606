//! Plots of circles whose area is a share, in panels below each other.

use maud::html;

use super::axis::{Axis, Scale};
use super::style::{Look, PLOT_WIDTH, Page, TOP, line, rich, sentence, short};

const PANEL: f64 = 220.0;
const PANEL_GAP: f64 = 34.0;
const LEFT: f64 = 62.0;
/// The radius of a share of 1, where the circles have room, and at least.
const RADIUS: (f64, f64) = (2.0, 14.0);
/// Most labelled values of a vertical axis.
const MOST_TICKS: u64 = 8;

/// Panels of circles over one horizontal axis. Vertical positions are whole numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Bubbles {
    /// The title.
    pub title: String,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// The label of the vertical axis of each panel, and its circles.
    pub panels: Vec<(String, Vec<Bubble>)>,
    /// A note in small print at the bottom.
    pub note: String,
}

/// One circle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bubble {
    /// The horizontal position.
    pub x: f64,
    /// The vertical position.
    pub y: u64,
    /// The area, from 0 to 1.
    pub share: f64,
}

impl Bubbles {
    /// The plot as an SVG document.
    pub fn svg(&self) -> String {
        let all = || self.panels.iter().flat_map(|panel| &panel.1);
        let right = all().map(|bubble| bubble.x).fold(1.0, f64::max) * 1.02;
        let x =
            Axis::new(Scale::Linear, [1.0, right].into_iter(), std::iter::once(right), PLOT_WIDTH);
        let across = |value: f64| LEFT + x.at(value).unwrap_or(0.0);
        let largest = self.radius(&across);
        let bottom_of = |row: usize| TOP + row as f64 * (PANEL + PANEL_GAP) + PANEL;
        let last = bottom_of(self.panels.len().saturating_sub(1));
        let page = Page {
            title: &self.title,
            note: &self.note,
            left: LEFT,
            width: LEFT + PLOT_WIDTH,
            height: last + 58.0,
        };
        page.document(html! {
            @for (row, (label, bubbles)) in self.panels.iter().enumerate() {
                @let bottom = bottom_of(row);
                @let rows = Rows::of(bubbles);
                g class="axis" stroke="#222" {
                    @for (value, _) in &x.ticks().0 { (line(across(*value), bottom, across(*value), bottom + 6.0)) }
                    @for value in rows.ticks() { (line(LEFT - 6.0, bottom - rows.up(value), LEFT, bottom - rows.up(value))) }
                }
                @for (value, text) in &x.ticks().0 {
                    text x=(short(across(*value))) y=(short(bottom + 21.0)) text-anchor="middle" { (text) }
                }
                @for value in rows.ticks() {
                    text x=(LEFT - 10.0) y=(short(bottom - rows.up(value) + 4.5)) text-anchor="end" { (value) }
                }
                rect class="axis" x=(LEFT) y=(short(bottom - PANEL)) width=(PLOT_WIDTH) height=(PANEL)
                    fill="none" stroke="#222" {}
                @let middle = bottom - PANEL / 2.0;
                text x="18" y=(short(middle)) text-anchor="middle" transform=(format!("rotate(-90 18 {middle})")) {
                    (rich(&sentence(label)))
                }
                @for bubble in bubbles {
                    circle class=(Look::at(0).fill_class()) cx=(short(across(bubble.x)))
                        cy=(short(bottom - rows.up(bubble.y))) fill=(Look::at(0).colour())
                        r=(format!("{:.2}", largest * bubble.share.sqrt())) {}
                }
            }
            text x=(LEFT + PLOT_WIDTH / 2.0) y=(short(last + 42.0)) text-anchor="middle" {
                (rich(&sentence(&self.x_label)))
            }
        })
    }

    /// The radius of a share of 1: neighbours touch at most, if there is room for that.
    fn radius(&self, across: &impl Fn(f64) -> f64) -> f64 {
        let mut places: Vec<f64> =
            self.panels.iter().flat_map(|panel| &panel.1).map(|bubble| across(bubble.x)).collect();
        places.sort_by(f64::total_cmp);
        let gaps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.1);
        (gaps.fold(f64::INFINITY, f64::min) / 2.0).clamp(RADIUS.0, RADIUS.1)
    }
}

/// The vertical axis of a panel: whole numbers, with room for half a circle at both ends.
struct Rows {
    low: u64,
    high: u64,
}

impl Rows {
    fn of(bubbles: &[Bubble]) -> Self {
        let low = bubbles.iter().map(|bubble| bubble.y).min().unwrap_or(0);
        let high = bubbles.iter().map(|bubble| bubble.y).max().unwrap_or(0);
        Self { low, high: high.max(low + 2) }
    }

    fn up(&self, value: u64) -> f64 {
        let rows = (self.high - self.low) as f64 + 1.2;
        ((value - self.low) as f64 + 0.6) / rows * PANEL
    }

    fn ticks(&self) -> impl Iterator<Item = u64> + use<> {
        let step = (self.high - self.low).div_ceil(MOST_TICKS).max(1);
        (self.low..=self.high).step_by(step as usize)
    }
}
