//! Orders of the units that saw the pages, which decide in place of clicks.

use interleaving::methods::balanced::BalancedCredit;
use interleaving::methods::probabilistic::PosteriorCredit;
use interleaving::methods::team_draft::Shared;
use interleaving::{DepthPolicy, Method};
use rankduel_store::label::label_fault;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::field_error::{FieldError, excerpt, range_error};

/// Longest name of an event, in characters.
const EVENT_CHARS_MAX: usize = 100;
/// Largest cap.
const CAP_MAX: f64 = 1e12;

/// The orders that decide, in place of clicks. Fixed at creation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideBy {
    /// Name of the outcome; also the UBI `action_name` that carries it.
    #[schema(example = "order", min_length = 1, max_length = 100)]
    pub event: String,
    /// An order counts whose time lies within this after the unit's first clicked page.
    #[schema(minimum = 60, maximum = 2_419_200, example = 604_800)]
    pub window_seconds: u32,
    /// Time after an order within which its record arrives; by default an eighth of the window. A
    /// nightly file needs 129600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 604_800, example = 129_600, nullable = false)]
    pub arrival_seconds: Option<u32>,
    /// `orders` by default.
    #[serde(default)]
    pub by: OrderMeasure,
    /// With `by` `money`, and required there: the largest value of a basket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0.0, maximum = 1e12, example = 200.0, nullable = false)]
    pub cap: Option<f64>,
}

/// The part of an order that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderMeasure {
    /// Its lines, each with its quantity up to 10.
    #[default]
    Orders,
    /// The value of its lines, cut at `cap`.
    Money,
}

impl DecideBy {
    /// The same with its defaults filled in.
    pub fn with_defaults(self) -> Self {
        let arrival = self.arrival_seconds();
        Self { arrival_seconds: Some(arrival), ..self }
    }

    /// Time after an order within which its record arrives.
    pub fn arrival_seconds(&self) -> u32 {
        self.arrival_seconds.unwrap_or(self.window_seconds / 8)
    }

    /// Time from a page to the end of its basket.
    pub fn answer_window_seconds(&self) -> u32 {
        self.window_seconds.saturating_add(self.arrival_seconds())
    }

    /// The window in milliseconds.
    pub fn window_ms(&self) -> i64 {
        i64::from(self.window_seconds) * 1000
    }

    /// The cap of money; `None` if lines count.
    pub fn money_cap(&self) -> Option<f64> {
        self.cap.filter(|_| self.by == OrderMeasure::Money)
    }

    pub(super) fn add_errors(&self, errors: &mut Vec<FieldError>) {
        let mut push = |member: &str, detail: String| {
            errors.push(FieldError::new(format!("/decide_by/{member}"), detail));
        };
        let fault = label_fault(&self.event);
        if !(1..=EVENT_CHARS_MAX).contains(&self.event.chars().count()) || fault.is_some() {
            push(
                "event",
                format!(
                    "`event` is `{}`; it must be 1 to {EVENT_CHARS_MAX} characters{}",
                    excerpt(&self.event),
                    fault.map(|fault| format!(": {fault}")).unwrap_or_default()
                ),
            );
        }
        match (self.by, self.cap) {
            (OrderMeasure::Money, None) => {
                let detail = "`by` is `money`, which needs a `cap`: about the price of four orders";
                push("cap", detail.into());
            }
            (OrderMeasure::Orders, Some(_)) => {
                push("cap", "`cap` is of `money`: leave it out, or set `by` to `money`".into());
            }
            (_, Some(cap)) if !(cap > 0.0 && cap <= CAP_MAX) => {
                push("cap", format!("`cap` is {cap:?}; it must be above 0, at most {CAP_MAX:?}"));
            }
            _ => {}
        }
        let window = self.window_seconds;
        errors.extend(range_error("/decide_by/window_seconds", window, 60..=2_419_200));
        let arrival = self.arrival_seconds();
        errors.extend(range_error("/decide_by/arrival_seconds", arrival, 0..=604_800));
    }
}

/// Why `settle_after_seconds` cannot go with `decide_by`.
pub const SETTLE_AFTER: &str = "clicks do not settle a page that orders decide: leave \
                                `settle_after_seconds` out";
/// Why `event_weights` cannot go with `decide_by`.
pub const EVENT_WEIGHTS: &str = "each click links a document to its page, with the same weight: \
                                 leave `event_weights` out";

/// The error of a method whose credit of one click has not the mean 0 for every two lists, or does
/// not add up.
pub(super) fn method_error(spec: &interleaving::Spec) -> Option<FieldError> {
    let refused = |parameter: &str, value: &str, remedy: &str| {
        let detail = format!(
            "orders are credited to single clicks, and with {value} random clicks favour a side: \
             {remedy}"
        );
        Some(FieldError::new(format!("/interleaving/{parameter}"), detail))
    };
    if spec.click_weights.is_some() {
        return refused("click_weights", "`click_weights`", "leave them out");
    }
    if spec.depth_policy == DepthPolicy::Uncut {
        return refused("depth_policy", "`uncut`", "leave `depth_policy` out");
    }
    match &spec.method {
        Method::Balanced(it) if it.credit == BalancedCredit::Published => {
            refused("credit", "the published credit", "choose `debiased`")
        }
        Method::Probabilistic(it) if it.credit == PosteriorCredit::MoreClicks => {
            refused("credit", "`more-clicks`", "choose `expected-clicks`")
        }
        Method::TeamDraft(it) if it.shared == Shared::IgnoreSameRank => {
            refused("shared", "`ignore-same-rank`", "choose `collapse`")
        }
        _ => None,
    }
}
