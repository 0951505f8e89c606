//! The plan of an experiment that orders decide. The rates are of simulations of a shop where 2.5 %
//! of the pages and 9.4 % of the units have an order, with four pages a unit.

use std::fmt::Write as _;

use serde::Serialize;
use utoipa::ToSchema;

use super::words::{days_in_words, two_digits};
use dueling_bandits::orders::lift::half_width;

/// Share of the pages with an order whose order counts for a ranker: the unit has not ordered
/// before (94 %), and its basket has credit (80 %).
pub(super) const COUNTED: f64 = 0.75;
/// Share of the pages with an order whose unit has not ordered before.
const FIRST: f64 = 0.94;
/// Pages that orders take for one that clicks take, if 1 % of the pages has an order: 13,952 to
/// 3,833 at 2.5 %.
const TIMES_CLICKS: f64 = 0.09;
/// The widths of a plan, as half widths.
const LIFT_WIDTHS: [f64; 3] = [0.2, 0.1, 0.05];

/// A plan for orders.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PlannedOrders {
    /// The verdict by orders takes about so many times the pages of one by clicks.
    pub times_clicks: f64,
    /// Days from a page until its orders count, which are part of all days of the plan.
    pub wait_days: f64,
    /// When the interval of the lift is so wide. Empty without `alone`.
    pub lift: Vec<LiftWidth>,
}

/// The width of the interval of the lift, after some days.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct LiftWidth {
    /// With 0.1, the lift is known to about ± 10 %.
    pub half_width: f64,
    pub days: f64,
}

impl PlannedOrders {
    /// For this share of pages with an order, these pages a day that show one ranker alone, and
    /// this wait. The lift has the error `error`.
    pub(super) fn of(orders: f64, alone_per_day: f64, wait_days: f64, error: f64) -> Self {
        let ordering = alone_per_day * orders * FIRST;
        let of = |width| LiftWidth {
            half_width: width,
            days: two_digits(wait_days + ordering_units(width, error) as f64 / ordering),
        };
        Self {
            times_clicks: two_digits(TIMES_CLICKS / orders),
            wait_days: two_digits(wait_days),
            lift: if ordering > 0.0 { LIFT_WIDTHS.map(of).to_vec() } else { Vec::new() },
        }
    }

    /// An addition to the sentence of the plan.
    pub(super) fn sentence(&self, orders: f64) -> String {
        let wait = days_in_words(self.wait_days);
        let mut text = format!(
            " An order counts {wait} after its first page, which the days include. With an order on \
             {} % of the pages, orders take about {} times the pages of clicks.",
            two_digits(100.0 * orders),
            self.times_clicks
        );
        let widths = self.lift.iter().map(|LiftWidth { half_width, days }| {
            format!("± {} % after {}", 100.0 * half_width, days_in_words(*days))
        });
        match widths.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => {
                text += " Without units that see one ranker `alone`, no lift is known.";
            }
            widths => drop(write!(text, " The lift is known to about {widths}.")),
        }
        text
    }
}

/// The number of ordering units that saw one ranker alone, from which the interval of the lift is
/// so narrow.
pub(super) fn ordering_units(width: f64, error: f64) -> u64 {
    let is_narrow = |units: u64| half_width(units, 1.0, error) <= width;
    let (mut low, mut high) = (0, 1 << 20);
    while low + 1 < high {
        let middle = u64::midpoint(low, high);
        *if is_narrow(middle) { &mut high } else { &mut low } = middle;
    }
    high
}
