//! The little markup that doc comments use: paragraphs, lists and `code`.

use maud::{Markup, html};

/// Paragraphs and lists.
pub(crate) fn block(text: &str) -> Markup {
    html! {
        @for paragraph in text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
            @if paragraph.starts_with("- ") {
                ul {
                    @for item in items(paragraph) { li { (inline(&item)) } }
                }
            } @else {
                p { (inline(paragraph)) }
            }
        }
    }
}

/// The items of a list, each with the lines that continue it.
fn items(list: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in list.lines() {
        match (line.strip_prefix("- "), items.last_mut()) {
            (Some(first), _) => items.push(first.to_owned()),
            (None, Some(item)) => {
                item.push(' ');
                item.push_str(line.trim());
            }
            (None, None) => items.push(line.to_owned()),
        }
    }
    items
}

/// Text in which every second piece between backticks is code.
pub(crate) fn inline(text: &str) -> Markup {
    html! {
        @for (index, piece) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}
