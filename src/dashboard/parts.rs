//! Small parts that several sections use.

use maud::{Markup, html};

use rankduel_store::ExperimentRecord;
use rankduel_store::events::Status;

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
