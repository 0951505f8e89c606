//! The basis of the verdict, in sentences.

use maud::{Markup, html};

use super::layout::{number, percent, with_code};
use crate::service::reports::verdict_basis::VerdictBasis;

/// The sentences. `winner` is the certified winner.
pub(super) fn section(basis: &VerdictBasis, winner: Option<&String>) -> Markup {
    let repeated = basis.left_out_repeated_unit;
    html! {
        details.basis #rests-on {
            summary { "What the verdict rests on" }
            p {
                "It counts " (answers(basis.answers)) "."
                @if basis.by_score > 0 {
                    " Of these, " (number(basis.by_score)) " count by the score of their page."
                }
                @if basis.waiting > 0 {
                    " " (number(basis.waiting)) " more count once no answer of the duels issued before "
                    "them can come any more: at most " (window(basis.answer_window_seconds))
                    " after the issue."
                }
                @if repeated > 0 {
                    " It leaves out " (answers(repeated)) " of units that had answered before."
                }
                @if basis.left_out_late > 0 {
                    " " (answers(basis.left_out_late)) " came too late to count."
                }
                @if basis.left_out_full > 0 {
                    " " (answers(basis.left_out_full)) " came in a moment of more traffic than can be kept."
                }
            }
            @if let Some(remark) = basis.remark { p { (with_code(remark)) } }
            @else if let (Some(lost @ 0.0001..), Some(winner)) = (basis.holds_unless_lost, winner) {
                p {
                    "It holds unless more than " (percent(lost)) " of the duels that " code { (winner) }
                    " lost never came back, while none that it won was lost."
                }
            }
            @if let Some(unanswered) = basis.unanswered {
                p { (percent(unanswered)) " of the duels in its cohorts were not answered in time." }
            }
            @for doubt in &basis.doubts { p { strong { (with_code(doubt)) } } }
            @if basis.excluded_units > 0 {
                p {
                    @if basis.excluded_units == 1 { "One excluded unit had " }
                    @else { (number(basis.excluded_units)) " excluded units had " }
                     (answers(basis.left_out_excluded))
                    ". Nothing on this page counts them."
                }
            }
            @for unit in basis.heaviest_units.iter().filter(|unit| unit.is_machine) {
                p {
                    "Unit " code { (unit.unit) } " is a machine: of its " (answers(unit.answers))
                    ", the left side won " (number(unit.left)) " and the right side "
                    (number(unit.right)) ". One of them counts."
                }
            }
            p { "It assumes:" }
            ul { @for assumption in &basis.assumptions { li { (assumption) } } }
        }
    }
}

fn answers(count: u64) -> String {
    match count {
        1 => "1 answer".into(),
        count => format!("{} answers", number(count)),
    }
}

/// A time in words.
fn window(seconds: i64) -> String {
    let of = |count: i64, unit: &str| match count {
        1 => format!("1 {unit}"),
        count => format!("{count} {unit}s"),
    };
    match seconds {
        _ if seconds % 86_400 == 0 => of(seconds / 86_400, "day"),
        _ if seconds % 3600 == 0 => of(seconds / 3600, "hour"),
        _ if seconds % 60 == 0 => of(seconds / 60, "minute"),
        _ => of(seconds, "second"),
    }
}
