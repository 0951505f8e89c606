//! Lift: how many more orders, or how much more money, a ranker brings than the control.
//!
//! Units that are shown the leader x or the control c [alone](crate::claims::alone) are divided by
//! a fair coin of the unit. Let Y, from 0 to 1, be whether the unit orders within the window after
//! its first alone page, clicked or not, or its money cut at the cap, over the cap. With a win of
//! weight Y in x's arm and a loss of weight Y in the control's, the evidence of [`LeadEvidence`]
//! over `b` tests `μ_x / (μ_x + μ_c) ≤ b`, because the coin makes the mean of a win `μ_x / 2` and
//! that of a loss `μ_c / 2`. So the ratio `μ_x / μ_c = b / (1 - b)` has an interval at all times:
//! what neither side refutes with δ/2. Units without an order are steps without evidence, and
//! nothing is assumed about how amounts are spread.
//!
//! [`LeadEvidence::in_room_above`] falls in `b`, so what it refutes is an interval, whose end is
//! found by halving.
//!
//! # Errors
//!
//! Orders have the error δ and money another δ. Each is shared over leaders and controls as that of
//! differences in [`guardrails`](crate::claims::guardrails) is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::claims::guardrails::{FIRST, share_of_later};
use crate::evidence::lead::LeadEvidence;
use crate::evidence::scores::Levels;
use crate::orders::facts::Alone;

/// The smallest `b`, as a share; the largest is one minus it.
const LEAST: f64 = 0.01;
/// Halvings of the range of `b`.
const HALVINGS: u32 = 20;

/// Units that saw a leader alone, and a control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Arms {
    /// Units, in the leader's arm and in the control's.
    pub units: [u64; 2],
    /// Units that ordered.
    pub ordered: [u32; 2],
    /// Units by their money cut at the cap, rounded to a weight; `None` without a cap.
    pub money: Option<[Levels; 2]>,
}

impl Arms {
    /// A unit has had its time, in the arm of the leader or not. `amount` is the place of its weight
    /// among [`WEIGHTS`](crate::evidence::scores::WEIGHTS).
    pub fn count(&mut self, sees_leader: bool, ordered: bool, amount: Option<usize>) {
        let arm = usize::from(!sees_leader);
        self.units[arm] += 1;
        self.ordered[arm] += u32::from(ordered);
        if let Some(level) = amount {
            self.money.get_or_insert_default()[arm][level] += 1;
        }
    }

    /// The interval of the ratio of orders, less 1, with this error.
    pub fn orders(&self, error: f64) -> (f64, f64) {
        let [won, lost] = self.ordered.map(f64::from);
        interval(error, |evidence, up| match up {
            true => evidence.ln(won, lost),
            false => evidence.ln(lost, won),
        })
    }

    /// The interval of the ratio of money, less 1, with this error.
    pub fn money(&self, error: f64) -> Option<(f64, f64)> {
        let [won, lost] = self.money.as_ref()?;
        Some(interval(error, |evidence, up| match up {
            true => evidence.ln_with_scores(0.0, 0.0, won, lost),
            false => evidence.ln_with_scores(0.0, 0.0, lost, won),
        }))
    }
}

/// The interval of `b / (1 - b) - 1`. `ln(evidence, up)` is `ln E` that `b` is too low, or that
/// `1 - b` is.
fn interval(error: f64, ln: impl Fn(&LeadEvidence, bool) -> f64) -> (f64, f64) {
    let threshold = -libm::log(error / 2.0);
    let refuted = |b: f64, up: bool| ln(&LeadEvidence::in_room_above(b), up) >= threshold;
    let end = |up: bool| {
        let (mut low, mut high) = (LEAST, 1.0 - LEAST);
        if !refuted(low, up) {
            return 0.0;
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            *if refuted(middle, up) { &mut low } else { &mut high } = middle;
        }
        low
    };
    let ratio = |b: f64| b / (1.0 - b) - 1.0;
    (ratio(end(true)), ratio(1.0 - end(false)))
}

/// Half the width of the interval of orders after so many alone units, of which this share orders
/// in either arm, with this error: what to expect where there is no lift.
pub fn half_width(units: u64, ordering: f64, error: f64) -> f64 {
    let ordered = (0.5 * units as f64 * ordering) as u32;
    let (low, high) = Arms { ordered: [ordered; 2], ..Arms::default() }.orders(error);
    0.5 * (high - low)
}

/// The lift of a leader.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lift {
    /// The counts.
    pub arms: Arms,
    /// The error of each interval.
    pub error: f64,
    /// The relative lift of orders: 0.1 for 10 % more. The upper end may be infinite.
    pub orders: (f64, f64),
    /// That of money.
    pub money: Option<(f64, f64)>,
}

/// The arms of all leaders and controls.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lifts {
    /// Number of rankers at the start.
    initial: u16,
    /// In the order in which their first unit was counted.
    controls: Vec<u16>,
    /// By leader and control.
    arms: BTreeMap<(u16, u16), Arms>,
}

impl Lifts {
    pub(super) fn new(rankers: usize) -> Self {
        Self { initial: rankers as u16, ..Self::default() }
    }

    pub(super) fn count(&mut self, alone: &Alone, ordered: bool, amount: Option<usize>) {
        let &Alone { leader, control, sees_leader, .. } = alone;
        if !self.controls.contains(&control) {
            self.controls.push(control);
        }
        self.arms.entry((leader, control)).or_default().count(sees_leader, ordered, amount);
    }

    /// The lift of a leader against a control, whose error is its part of `error`; `None` before
    /// their first unit.
    pub fn lift(&self, leader: usize, control: usize, error: f64) -> Option<Lift> {
        let arms = *self.arms.get(&(leader as u16, control as u16))?;
        let number = self.controls.iter().position(|&known| usize::from(known) == control)?;
        let of_control = number.checked_sub(1).map_or(FIRST, share_of_later);
        let initial = usize::from(self.initial);
        let rivals = initial - usize::from(control < initial);
        let of_leader = match leader.checked_sub(initial) {
            Some(later) => share_of_later(later),
            None => FIRST / rivals as f64,
        };
        let error = error * of_control * of_leader;
        Some(Lift { arms, error, orders: arms.orders(error), money: arms.money(error) })
    }

    pub(super) fn is_sound(&self, rankers: usize) -> bool {
        self.arms.iter().all(|(&(leader, control), arms)| {
            leader != control
                && usize::from(leader.max(control)) < rankers
                && self.controls.contains(&control)
                && (0..2).all(|arm| u64::from(arms.ordered[arm]) <= arms.units[arm])
        })
    }
}
