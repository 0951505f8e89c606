//! Orders beside the result: how far they are, what clicks say, the lift, and how the lines found
//! their pages. The service says all of it.

use maud::{Markup, html};

use super::layout::{bar, number, part, percent, with_code};
use super::view::View;
use crate::service::reports::orders::OrdersView;
use dueling_bandits::orders::Join;

/// The section of an experiment that orders decide.
pub(super) fn section(view: &View) -> Markup {
    let Some(orders) = &view.verdict.orders else { return Markup::default() };
    let content = html! {
        p #orders-wait { (with_code(&orders.sentence)) }
        @if let Some(clicks) = &orders.clicks { p #orders-clicks { (with_code(clicks)) } }
        @if let Some(lift) = &orders.lift { p #orders-lift { (with_code(&lift.sentence)) } }
        (joined(orders))
    };
    part("orders", "What do people order?", &content)
}

fn joined(OrdersView { joined, sampled, .. }: &OrdersView) -> Markup {
    let &Join { credited, of_both, not_clicked, unit_unknown, .. } = joined;
    let rows = [
        ("Credited to one ranker", credited),
        ("Of both rankers", of_both),
        ("Not clicked", not_clicked),
        ("Shown one ranker alone", joined.alone),
        ("Unit unknown", unit_unknown),
        ("Before the page", joined.before_page),
        ("Late", joined.late),
        ("Unit had counted", joined.returning),
    ];
    let all: u64 = rows.iter().map(|(_, lines)| lines).sum();
    if all == 0 {
        return Markup::default();
    }
    html! {
        div.bars #joined { @for (label, lines) in rows {
            @let share = lines as f64 / all as f64;
            span { (label) } span.num { (number(lines)) " (" (percent(share)) ")" } (bar(share))
        } }
        p.note {
            "Of " (number(all)) " lines of orders, what became of each when its basket closed. If units are unknown, compare "
            "the ids of pages and orders; if lines are before the page, the clocks."
            @if *sampled < 1.0 { " The baskets of " (percent(*sampled)) " of the units are kept: there are more than fit into memory." }
        }
    }
}
