//! The basis of the result, in sentences.

use maud::{Markup, html};

use super::layout::{counted, name, number, percent, seconds, with_code};
use super::view::View;

pub(super) fn section(view: &View) -> Markup {
    let (basis, winner) = (&view.verdict.rests_on, view.verdict.winners.first());
    let repeated = basis.left_out_repeated_unit;
    html! {
        details #rests-on {
            summary { "What the " @if view.is_decided() { "result rests" } @else { "numbers rest" } " on" }
            p {
                "It counts " (counted(basis.answers, "answer", "answers")) "."
                @if basis.by_score > 0 {
                    " Of these, " (number(basis.by_score)) " count by the score of their page."
                }
                @if basis.waiting > 0 {
                    " " (number(basis.waiting)) " more count once no answer of the duels issued before "
                    "them can come any more: at most " (seconds(basis.answer_window_seconds as f64))
                    " after the issue."
                }
                @if repeated > 0 {
                    " It leaves out " (counted(repeated, "answer", "answers")) " of units that had answered before."
                }
                @if basis.left_out_late > 0 {
                    " " (counted(basis.left_out_late, "answer", "answers")) " came too late to count."
                }
                @if basis.left_out_full > 0 {
                    " " (counted(basis.left_out_full, "answer", "answers")) " came in a moment of more traffic than can be kept."
                }
            }
            @if basis.remark.is_some() {}
            @else if let (Some(lost @ 0.0001..), Some(winner)) = (basis.holds_unless_lost, winner) {
                p {
                    "It holds unless more than " (percent(lost)) " of the duels were never answered and "
                    (name(winner)) " lost all of these."
                }
            }
            @if let Some(unanswered) = basis.unanswered {
                p { (percent(unanswered)) " of the duels in its cohorts were not answered in time." }
            }
            @if basis.excluded_units > 0 {
                p {
                    @if basis.excluded_units == 1 { "One excluded unit had " }
                    @else { (number(basis.excluded_units)) " excluded units had " }
                     (counted(basis.left_out_excluded, "answer", "answers"))
                    ". Nothing on this page counts them."
                }
            }
            @for unit in basis.heaviest_units.iter().filter(|unit| unit.is_machine) {
                p {
                    "Unit " code { (unit.unit) } " is a machine: of its " (counted(unit.answers, "answer", "answers"))
                    ", the left side won " (number(unit.left)) " and the right side "
                    (number(unit.right)) ". One of them counts."
                    @if view.visitor.manages { " " a href={ "/experiments/" (view.record.name) "/manage/exclude?hashes=" (unit.unit) } { "Exclude it…" } }
                }
            }
            p { "It assumes:" }
            ul { @for assumption in &basis.assumptions { li { (with_code(assumption)) } } }
        }
    }
}
