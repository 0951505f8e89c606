//! Orders as callers give them, and their results.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::service::pages::MAX_DOCUMENT_BYTES;
use crate::service::units::unit_error;
use rankduel_engine::clock;
use rankduel_engine::cohorts::SLACK_MS;
use rankduel_engine::experiment_spec::{FieldError, Object};
use rankduel_engine::metrics::OrderStatus;

/// Longest id of an order, in bytes.
const ORDER_ID_BYTES_MAX: usize = 256;
/// Most lines of an order.
const LINES_MAX: usize = 100;
/// Largest value of a piece.
const VALUE_MAX: f64 = 1e12;
/// Most pieces of a line.
const QUANTITY_MAX: u32 = 10_000;

/// An order, or its cancellation.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderBody {
    /// Identifies the order for ever. A repeat of it counts once.
    #[schema(max_length = 256, example = "A-1009")]
    pub order_id: String,
    /// The unit that ordered, as `next-duel` and `feedback` name it.
    #[schema(max_length = 256, example = "c-17", nullable = false)]
    pub unit: Option<String>,
    /// When it ordered.
    #[schema(format = DateTime, example = "2026-11-21T18:03:11Z", nullable = false)]
    pub at: Option<String>,
    #[schema(value_type = Option<Vec<LineBody>>, min_items = 1, max_items = 100, nullable = false)]
    pub lines: Option<Vec<Object<LineBody>>>,
    /// Whether the order was cancelled: then only `order_id` is read. It has no effect once the
    /// order has counted.
    #[serde(default)]
    pub cancelled: bool,
}

/// One line of an order.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, ToSchema)]
#[schema(as = OrderLine)]
#[serde(deny_unknown_fields)]
pub struct LineBody {
    /// The document, as on the page.
    #[schema(example = "d3")]
    pub document: String,
    /// Of one piece, all in one currency. Required where money decides.
    #[schema(minimum = 0, maximum = 1e12, example = 49.9, nullable = false)]
    pub value: Option<f64>,
    /// 1 by default.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000, nullable = false)]
    pub quantity: Option<f64>,
}

/// A well-formed order.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub id: String,
    /// `None` if it is cancelled.
    pub placed: Option<Placed>,
}

/// The content of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    pub unit: String,
    /// Unix milliseconds.
    pub at: i64,
    pub lines: Vec<LineBody>,
}

impl OrderBody {
    /// The order, if it is well formed at the time `now` in Unix milliseconds.
    pub fn check(self, now: i64) -> Result<Order, OrderReceipt> {
        self.checked(now).map_err(OrderReceipt::invalid)
    }

    fn checked(self, now: i64) -> Result<Order, FieldError> {
        let bytes = self.order_id.len();
        if !(1..=ORDER_ID_BYTES_MAX).contains(&bytes) {
            let detail =
                format!("`order_id` has {bytes} bytes; it must have 1 to {ORDER_ID_BYTES_MAX}");
            return Err(FieldError::new("/order_id", detail));
        }
        if self.cancelled {
            return Ok(Order { id: self.order_id, placed: None });
        }
        let unit = self.unit.filter(|unit| !unit.is_empty()).ok_or_else(|| {
            let detail = "the order has no `unit`: send the one that its pages had";
            FieldError::new("/unit", detail)
        })?;
        if let Some(detail) = unit_error(&unit) {
            return Err(FieldError::new("/unit", detail));
        }
        let at = time(self.at.as_deref(), now)?;
        let lines = self.lines.unwrap_or_default();
        if !(1..=LINES_MAX).contains(&lines.len()) {
            let detail = format!("the order has {} lines; it has 1 to {LINES_MAX}", lines.len());
            return Err(FieldError::new("/lines", detail));
        }
        let lines: Vec<_> = lines.into_iter().map(|Object(line)| line).collect();
        lines.iter().enumerate().try_for_each(|(at, line)| line.check(at))?;
        Ok(Order { id: self.order_id, placed: Some(Placed { unit, at, lines }) })
    }
}

fn time(text: Option<&str>, now: i64) -> Result<i64, FieldError> {
    let refused = |detail: String| Err(FieldError::new("/at", detail));
    let Some(text) = text else {
        return refused("`at` is missing: send the time of the order".into());
    };
    match clock::of_rfc3339(text) {
        None => {
            let text = rankduel_engine::experiment_spec::excerpt(text);
            refused(format!("`at` is `{text}`; it must be as in `2026-11-21T18:03:11Z` (RFC 3339)"))
        }
        Some(at) if at > now + SLACK_MS => {
            let ahead = (at - now) / 1000;
            refused(format!(
                "`at` is {ahead} s ahead of this server's clock, which is at {}: set the clocks",
                clock::rfc3339(now)
            ))
        }
        Some(at) => Ok(at),
    }
}

impl LineBody {
    /// Of one piece, if it names no quantity.
    pub(super) fn pieces(&self) -> f64 {
        self.quantity.unwrap_or(1.0)
    }

    fn check(&self, at: usize) -> Result<(), FieldError> {
        let refused =
            |member: &str, detail| Err(FieldError::new(format!("/lines/{at}/{member}"), detail));
        let bytes = self.document.len();
        if !(1..=MAX_DOCUMENT_BYTES).contains(&bytes) {
            let detail = format!("`document` has {bytes} bytes; it has 1 to {MAX_DOCUMENT_BYTES}");
            return refused("document", detail);
        }
        if let Some(value) = self.value.filter(|value| !(0.0..=VALUE_MAX).contains(value)) {
            return refused(
                "value",
                format!("`value` is {value:?}; it must be 0 to {VALUE_MAX:?}"),
            );
        }
        let quantity = self.pieces();
        if quantity.fract() != 0.0 || !(1.0..=f64::from(QUANTITY_MAX)).contains(&quantity) {
            let detail = format!(
                "`quantity` is {quantity:?}; it must be a whole number, 1 to {QUANTITY_MAX}"
            );
            return refused("quantity", detail);
        }
        Ok(())
    }
}

impl Order {
    /// The error of an order without a value where money decides.
    pub(super) fn missing_value(&self) -> Option<FieldError> {
        let lines = &self.placed.as_ref()?.lines;
        let at = lines.iter().position(|line| line.value.is_none())?;
        let detail = "`value` is missing, and the experiment is decided by `money`";
        Some(FieldError::new(format!("/lines/{at}/value"), detail))
    }
}

/// The result of one order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct OrderReceipt {
    pub status: OrderStatus,
    /// In how many experiments it is durable now. Omitted if in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub experiments: Option<usize>,
    /// The reason why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<String>,
    /// Where an `invalid` order is wrong: a JSON pointer into the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "/lines/0/quantity")]
    pub pointer: Option<String>,
}

impl OrderReceipt {
    /// An order that is not well formed.
    pub(crate) fn invalid(FieldError { pointer, detail }: FieldError) -> Self {
        Self {
            status: OrderStatus::Invalid,
            experiments: None,
            detail: Some(detail),
            pointer: Some(pointer),
        }
    }

    /// The result of an order whose results in the experiments are these.
    pub(super) fn of(statuses: &[OrderStatus]) -> Self {
        use OrderStatus::{Conflict, Duplicate, Late, Recorded};
        let has = |status| statuses.contains(&status);
        let kept = statuses.iter().filter(|status| matches!(status, Recorded | Duplicate)).count();
        let status = [Recorded, Conflict, Duplicate].into_iter().find(|it| has(*it));
        let status = status.unwrap_or(Late);
        let detail = match status {
            Conflict => Some(
                "another content has this `order_id`, and stands: send a cancellation of it, and \
                 the order under a new id",
            ),
            Late => Some("all that the order could count for has counted; it is not kept"),
            _ => None,
        };
        let experiments = (kept > 0).then_some(kept);
        Self { status, experiments, detail: detail.map(str::to_owned), pointer: None }
    }
}
