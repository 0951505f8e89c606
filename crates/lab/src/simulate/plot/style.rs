//! Colours, fonts, sizes and shapes that all plots share.
//!
//! Every colour is an attribute, so that programs without style sheets print the light form. A
//! style sheet replaces the colours where the reader prefers a dark page.

use std::fmt::Write;

use maud::{Markup, html};

/// The palette of Okabe and Ito, with purple for its yellow, which is too faint for a line on
/// white; and lighter forms of the same colours for a dark page.
const COLOURS: [(&str, &str); 8] = [
    ("#0072b2", "#5a9bea"),
    ("#d55e00", "#f2854a"),
    ("#009e73", "#2fc79a"),
    ("#cc79a7", "#e89cc8"),
    ("#000000", "#f2f2f2"),
    ("#e69f00", "#f5bd3d"),
    ("#56b4e9", "#9ad8fc"),
    ("#6a3d9a", "#b79ae0"),
];
/// They differ in grey print.
pub(super) const DASHES: [&str; 8] =
    ["none", "7 3", "2 2.5", "8 3 2 3", "13 4", "4 5", "13 3 4 3", "8 3 2 3 2 3"];
/// The number of marks: eight shapes, and four of them filled.
pub(super) const MARKS: usize = 12;
/// Classes of the parts that are no data: their attribute, and its colour on a dark page.
const PARTS: [(&str, &str, &str); 5] = [
    ("page", "fill", "#15181c"),
    ("ink", "fill", "#e8e8e8"),
    ("small", "fill", "#aeb4ba"),
    ("axis", "stroke", "#c9cdd2"),
    ("grid", "stroke", "#343a41"),
];

const FONT: &str = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";
pub(super) const FONT_SIZE: f64 = 13.0;
const TITLE_SIZE: f64 = 15.0;
const NOTE_SIZE: f64 = 11.0;
const NOTE_ROW: f64 = 15.0;
/// Upper estimates of the mean width of a character, in font sizes: the widest of the fonts is
/// DejaVu Sans.
const CHARACTER: f64 = 0.6;
const BOLD_CHARACTER: f64 = 0.69;
pub(super) const PLOT_WIDTH: f64 = 520.0;
pub(super) const TOP: f64 = 40.0;
/// From the frame to the note: ticks and the label of the axis.
pub(super) const BELOW: f64 = 58.0;

pub(super) fn label_width(text: &str) -> f64 {
    text.chars().count() as f64 * FONT_SIZE * CHARACTER
}

/// The parts around a plot.
pub(super) struct Page<'a> {
    pub title: &'a str,
    pub note: &'a str,
    /// The left edge of the title and the note.
    pub left: f64,
    /// The width that the plot needs.
    pub width: f64,
    /// The height without the note.
    pub height: f64,
}

impl Page<'_> {
    /// An SVG document of this content with its title, its note and the colours of a dark page.
    pub fn document(&self, content: Markup) -> String {
        let title = sentence(self.title);
        let title_width = title.chars().count() as f64 * TITLE_SIZE * BOLD_CHARACTER;
        let width = self.width.max(self.left + title_width) + 12.0;
        let note = wrapped(&sentence(self.note), (width - self.left) / (NOTE_SIZE * CHARACTER));
        let height = self.height + NOTE_ROW * note.len() as f64 + 8.0;
        let svg = html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width:.0} {height:.0}"))
                width=(format!("{width:.0}")) height=(format!("{height:.0}"))
                font-family=(FONT) font-size=(FONT_SIZE) fill="#222" class="ink" {
                title { (title) }
                style { (dark()) }
                rect class="page" width="100%" height="100%" fill="#ffffff" {}
                text x=(short(self.left)) y=(TOP - 16.0) font-size=(TITLE_SIZE) font-weight="bold" { (title) }
                (content)
                @for (row, text) in note.iter().enumerate() {
                    text class="small" x=(short(self.left)) fill="#555" font-size=(NOTE_SIZE)
                        y=(short(self.height + NOTE_ROW * (row as f64 + 0.7))) { (text) }
                }
            }
        };
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", svg.into_string())
    }
}

/// The style sheet of a dark page.
fn dark() -> String {
    let mut sheet = String::from("@media (prefers-color-scheme:dark){");
    for (class, attribute, colour) in PARTS {
        let _ = write!(sheet, ".{class}{{{attribute}:{colour}}}");
    }
    for (at, (_, colour)) in COLOURS.iter().enumerate() {
        let _ = write!(sheet, ".s{at}{{stroke:{colour}}}.f{at}{{fill:{colour}}}");
    }
    sheet.push('}');
    sheet
}

/// Text in lines of at most `characters`, if no word is longer.
fn wrapped(text: &str, characters: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // a number and its % stay together
    for word in text.replace(" %", "\u{a0}%").split(' ') {
        let length = |text: &str| text.chars().count() as f64;
        match lines.last_mut() {
            Some(line) if length(line) + 1.0 + length(word) <= characters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
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

/// The colour and the dashes of a curve, and the shape of its marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Position in the palette.
    pub colour: usize,
    /// Position among the dashes.
    pub dash: usize,
    /// Position among the marks.
    pub mark: usize,
}

impl Look {
    /// The look of the curve at this position, for curves that are no policies.
    pub fn at(position: usize) -> Self {
        Self { colour: position, dash: position, mark: position }
    }

    pub(super) fn colour(self) -> &'static str {
        COLOURS[self.colour % COLOURS.len()].0
    }

    /// The class that gives a stroke its colour on a dark page.
    pub(super) fn stroke_class(self) -> String {
        format!("s{}", self.colour % COLOURS.len())
    }

    /// The class that gives an area its colour on a dark page.
    pub(super) fn fill_class(self) -> String {
        format!("f{}", self.colour % COLOURS.len())
    }

    pub(super) fn dash(self) -> &'static str {
        DASHES[self.dash % DASHES.len()]
    }

    /// The mark at this place.
    pub(super) fn mark(self, x: f64, y: f64) -> Markup {
        let shape = self.mark % MARKS;
        let outline: &[(f64, f64)] = match shape % 8 {
            0 => {
                return self.drawn(format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", x - 4.0));
            }
            1 => &[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)],
            2 => &[(0.0, -5.0), (4.6, 3.4), (-4.6, 3.4)],
            3 => &[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)],
            4 => &[(0.0, 5.0), (4.6, -3.4), (-4.6, -3.4)],
            5 => return self.strokes(x, y, &[(0.0, 5.0), (5.0, 0.0)]),
            6 => return self.strokes(x, y, &[(3.8, 3.8), (3.8, -3.8)]),
            _ => &[(-4.2, -4.2), (4.2, 4.2), (4.2, -4.2), (-4.2, 4.2)],
        };
        self.drawn(path(outline.iter().map(|(across, down)| (x + across, y + down))) + "Z")
    }

    /// A mark with an outline. It hides the line under it, so that marks of several curves stay
    /// legible.
    fn drawn(self, outline: String) -> Markup {
        if self.mark % MARKS >= 8 {
            return html! { path class=(self.fill_class()) d=(outline) fill=(self.colour()) {} };
        }
        html! {
            g class="page" fill="#ffffff" {
                path class=(self.stroke_class()) d=(outline) stroke=(self.colour()) stroke-width="1.6" {}
            }
        }
    }

    /// A mark of two strokes through its centre.
    fn strokes(self, x: f64, y: f64, ends: &[(f64, f64)]) -> Markup {
        html! {
            g class=(self.stroke_class()) stroke=(self.colour()) stroke-width="2" {
                @for (across, down) in ends { (line(x - across, y - down, x + across, y + down)) }
            }
        }
    }
}

/// Text with its first `^…` raised and its first `_…` lowered, to the end of the word or of braces.
/// The characters for superscripts and subscripts are missing in some fonts.
pub(super) fn rich(text: &str) -> Markup {
    let Some(at) = text.find(['^', '_']) else { return html! { (text) } };
    let shift = if text[at..].starts_with('^') { -5.0 } else { 3.5 };
    let after = &text[at + 1..];
    let (small, rest) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
        Some(parts) => parts,
        None => after.split_at(after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len())),
    };
    html! {
        (text[..at]) tspan dy=(shift) font-size="9.5" { (small) }
        @if !rest.is_empty() { tspan dy=(-shift) { (rich(rest)) } }
    }
}

/// `text` with a capital first letter.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
