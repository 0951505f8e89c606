//! The frame of every page of the dashboard, small parts, and the formatting of numbers.

use maud::{DOCTYPE, Markup, html};

use crate::service::reports::grouped::grouped;
use rankduel_store::ExperimentRecord;
use rankduel_store::events::Status;

/// The permissions of the reader of a page.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Visitor {
    /// Whether the reader has a session, and can log out.
    pub session: bool,
    /// Whether the reader may change experiments.
    pub manages: bool,
    /// Whether the reader may read and change what concerns all experiments.
    pub manages_all: bool,
}

/// The properties of a page outside its main part.
pub(crate) struct Frame<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// The reader.
    pub visitor: Visitor,
    /// Whether a script updates the page.
    pub updates: bool,
}

/// A whole page.
pub(crate) fn page(frame: &Frame<'_>, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/dashboard.css";
                @if frame.updates { script src="/dashboard.js" defer {} }
                title { (frame.title) " · rankduel" }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    nav aria-label="Main" {
                        a.home href="/" { "rankduel" }
                        a href="/" { "Experiments" }
                        @if frame.visitor.manages_all {
                            a href="/keys" { "Keys" }
                            a href="/audit" { "Audit log" }
                        }
                        a href="/docs" { "API" }
                        @if frame.visitor.session {
                            form method="post" action="/logout" { button.quiet type="submit" { "Log out" } }
                        }
                    }
                    @if frame.updates {
                        // The script fills and shows this. Without scripts the page does not
                        // change.
                        p.updates #updates hidden {
                            span #updated role="status" {}
                            button.quiet #pause type="button" aria-pressed="false" { "Pause updates" }
                        }
                    }
                }
                main #main tabindex="-1" { (main) }
            }
        }
    }
}

/// An integer with thin spaces between groups of three digits.
pub(crate) fn number(number: u64) -> String {
    grouped(number, '\u{202f}')
}

/// A number that is not a count, with few digits.
pub(crate) fn quantity(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => {
            let sign = if value < 0.0 { "−" } else { "" };
            format!("{sign}{}", number(size.round() as u64))
        }
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        0.0 => "0".into(),
        _ => format!("{value:.2}"),
    }
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 0.0 && percent < 0.05 {
        return "<\u{202f}0.1\u{202f}%".into();
    }
    if (99.95..100.0).contains(&percent) {
        return ">\u{202f}99.9\u{202f}%".into();
    }
    if (percent < 1.0 && percent > 0.0) || (percent > 99.0 && percent < 100.0) {
        format!("{percent:.1}\u{202f}%")
    } else {
        format!("{percent:.0}\u{202f}%")
    }
}

/// A duration in the unit that fits its size.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1000.0),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}

/// A time, to the second.
pub(crate) fn timestamp(unix_ms: i64) -> Markup {
    time(&rankduel_engine::clock::rfc3339(unix_ms - unix_ms.rem_euclid(1000)))
}

/// A time in RFC 3339.
pub(crate) fn time(text: &str) -> Markup {
    let people = text.replace('T', " ").replace('Z', " UTC");
    html! { time datetime=(text) { (people) } }
}

/// An experiment's status as a badge.
pub(crate) fn status(record: &ExperimentRecord) -> Markup {
    let (class, text) = match (record.archived_at, record.status) {
        (Some(_), _) => ("archived", "archived"),
        (None, Status::Running) => ("running", "running"),
        (None, Status::Paused) => ("paused", "paused"),
        (None, Status::Concluded) => ("decided", "concluded"),
    };
    html! { span.badge.(class) { (text) } }
}

/// An entry of a list of facts.
pub(crate) fn fact(label: &str, value: &Markup) -> Markup {
    html! { div { dt { (label) } dd { (value) } } }
}

/// Text in which every second piece between backticks is code.
pub(crate) fn with_code(text: &str) -> Markup {
    html! {
        @for (index, piece) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

/// A table that scrolls by itself where it is too wide. A head that begins with `#` is of numbers.
pub(crate) fn table(label: &str, heads: &[&str], caption: &Markup, rows: &Markup) -> Markup {
    html! {
        div.scroll role="group" aria-label=(label) tabindex="0" {
            table {
                @if !caption.0.is_empty() { caption { (caption) } }
                thead { tr { @for head in heads { @match head.strip_prefix('#') {
                    Some(head) => th.number scope="col" { (head) },
                    None => th scope="col" { (head) },
                } } } }
                tbody { (rows) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_have_few_digits() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_000), "1\u{202f}000");
        assert_eq!(number(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(quantity(12_345.6), "12\u{202f}346");
        assert_eq!(
            (quantity(0.0), quantity(0.125), quantity(12.34)),
            ("0".into(), "0.12".into(), "12.3".into())
        );
        assert_eq!(
            (percent(0.5), percent(0.001), percent(1.0)),
            ("50\u{202f}%".into(), "0.1\u{202f}%".into(), "100\u{202f}%".into())
        );
        assert_eq!(
            (seconds(0.25), seconds(600.0), seconds(86_400.0)),
            ("250 ms".into(), "10 min".into(), "24 h".into())
        );
        assert_eq!(
            (&*percent(0.0001), &*percent(0.9999)),
            ("<\u{202f}0.1\u{202f}%", ">\u{202f}99.9\u{202f}%")
        );
    }
}
