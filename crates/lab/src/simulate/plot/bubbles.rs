//! Plots of circles whose area is a share, in panels below each other.

use maud::html;

use super::axis::{Axis, Scale};
use super::style::{
    COLOURS, FONT, FONT_SIZE, PLOT_WIDTH, TITLE_SIZE, TOP, document, line, sentence, short,
    title_width,
};

const PANEL: f64 = 220.0;
const PANEL_GAP: f64 = 56.0;
const LEFT: f64 = 82.0;
/// The radius of a share of 1.
const LARGEST: f64 = 11.0;

/// Panels of circles over one horizontal axis.
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
    pub y: f64,
    /// The area, from 0 to 1.
    pub share: f64,
}

impl Bubbles {
    /// The plot as an SVG document.
    pub fn svg(&self) -> String {
        let count = self.panels.len() as f64;
        let width = (LEFT + PLOT_WIDTH).max(LEFT + title_width(&self.title)) + 24.0;
        let height = TOP + count * (PANEL + PANEL_GAP) + 30.0;
        let size = format!("0 0 {width:.0} {height:.0}");
        let all = || self.panels.iter().flat_map(|panel| &panel.1);
        let right = all().map(|bubble| bubble.x).fold(1.0, f64::max) * 1.02;
        let x =
            Axis::new(Scale::Linear, [1.0, right].into_iter(), std::iter::once(right), PLOT_WIDTH);
        let across = |value: f64| LEFT + x.at(value).unwrap_or(0.0);
        document(html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(size) width=(format!("{width:.0}"))
                height=(format!("{height:.0}")) font-family=(FONT) font-size=(FONT_SIZE) fill="#222" {
                title { (sentence(&self.title)) }
                rect width="100%" height="100%" fill="white" {}
                text x=(LEFT) y=(TOP - 16.0) font-size=(TITLE_SIZE) font-weight="bold" { (sentence(&self.title)) }
                @for (row, (label, bubbles)) in self.panels.iter().enumerate() {
                    @let top = TOP + row as f64 * (PANEL + PANEL_GAP);
                    @let bottom = top + PANEL;
                    @let highest = bubbles.iter().map(|bubble| bubble.y).fold(1.0, f64::max) * 1.05;
                    @let y = Axis::new(Scale::Linear, [1.0, highest].into_iter(), std::iter::once(highest), PANEL);
                    g stroke="#222" {
                        @for (value, _) in &x.ticks().0 { (line(across(*value), bottom, across(*value), bottom + 6.0)) }
                        @for (value, _) in &y.ticks().0 {
                            @let up = bottom - y.at(*value).unwrap_or(0.0);
                            (line(LEFT - 6.0, up, LEFT, up))
                        }
                    }
                    @for (value, text) in &x.ticks().0 {
                        text x=(short(across(*value))) y=(short(bottom + 21.0)) text-anchor="middle" { (text) }
                    }
                    @for (value, text) in &y.ticks().0 {
                        text x=(LEFT - 10.0) y=(short(bottom - y.at(*value).unwrap_or(0.0) + 4.5)) text-anchor="end" { (text) }
                    }
                    rect x=(LEFT) y=(short(top)) width=(PLOT_WIDTH) height=(PANEL) fill="none" stroke="#222" {}
                    @let middle = top + PANEL / 2.0;
                    text x="18" y=(short(middle)) text-anchor="middle" transform=(format!("rotate(-90 18 {middle})")) { (sentence(label)) }
                    @for bubble in bubbles {
                        circle cx=(short(across(bubble.x))) cy=(short(bottom - y.at(bubble.y).unwrap_or(0.0)))
                            r=(format!("{:.2}", LARGEST * bubble.share.sqrt())) fill=(COLOURS[0]) fill-opacity="0.7" {}
                    }
                }
                text x=(LEFT + PLOT_WIDTH / 2.0) y=(short(height - 46.0)) text-anchor="middle" { (sentence(&self.x_label)) }
                text x=(LEFT) y=(short(height - 10.0)) font-size="11" fill="#555" { (self.note) }
            }
        })
    }
}
