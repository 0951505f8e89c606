//! Metrics with limits: guardrails.

use serde::{Deserialize, Serialize};

use super::field_error::{FieldError, excerpt};
use rankduel_store::label::label_fault;

/// Most metrics of an experiment.
pub const METRICS_MAX: usize = 8;
/// Longest name of a metric, in bytes.
const NAME_MAX: usize = 32;
/// Largest cap.
const CAP_MAX: f64 = 1e12;
/// Default time within which the values of a page come.
pub const DEFAULT_VALUE_WINDOW_SECONDS: u32 = 60;

/// A metric: a number for each page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    #[schema(example = "latency_ms", pattern = "^[a-z][a-z0-9_]{0,31}$")]
    pub name: String,
    /// The subject of the metric; `ranker` by default.
    #[serde(default)]
    pub of: MetricOf,
    /// Whether `lower` or `higher` values are better; `lower` by default.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub better: Better,
    /// The largest value: larger ones count as this, and the smallest is 0. A missing value counts
    /// as the worst one for each claim.
    #[schema(exclusive_minimum = 0.0, maximum = 1e12, example = 1000.0)]
    pub cap: f64,
    /// A ranker does harm if its mean is worse than this; above 0 and below the cap. Not allowed
    /// for a metric of a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0.0, example = 400.0, nullable = false)]
    pub limit: Option<f64>,
    /// A ranker does harm if its mean is worse than that of the `control` by more than this. For a
    /// metric of a ranker, both means are of the same pages; above 0, at most the cap. For a metric
    /// of a page, they are of pages that show one of the two alone; from 0 to the cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.0, example = 10.0, nullable = false)]
    pub difference: Option<f64>,
    /// The reaction to harm; `retire` by default.
    #[serde(default)]
    pub on_harm: OnHarm,
}

/// The subject of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetricOf {
    /// The ranking of one ranker, such as its latency.
    #[default]
    Ranker,
    /// The whole page, such as its revenue: of pages that show one ranker `alone`.
    Page,
}

/// The better values of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Lower ones, such as of a latency.
    #[default]
    Lower,
    /// Higher ones, such as of revenue.
    Higher,
}

/// The reaction to a ranker that does harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnHarm {
    /// Raise an alarm, and retire the ranker. If the ranker is the control, only two are left, or
    /// the policy cannot retire one, pause the experiment instead.
    #[default]
    Retire,
    /// Raise an alarm, and pause the experiment.
    Pause,
    /// Raise an alarm.
    Tell,
}

impl Metric {
    /// The errors of the metric with this number, where a share `alone` of units sees one ranker
    /// alone.
    pub(super) fn errors(&self, at: usize, alone: f64, has_control: bool) -> Vec<FieldError> {
        let Self { name, of, cap, limit, difference, .. } = self;
        let shown = excerpt(name);
        let mut errors = Vec::new();
        let mut push = |member: &str, detail: String| {
            errors.push(FieldError::new(format!("/metrics/{at}{member}"), detail));
        };
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
        if !starts || name.len() > NAME_MAX || !name.chars().all(is_part) {
            push(
                "/name",
                format!(
                    "a metric's name is 1 to {NAME_MAX} of a-z, 0-9 and `_`, and starts with a \
                     letter; this one is `{shown}`{}",
                    label_fault(name).map(|fault| format!("; {fault}")).unwrap_or_default()
                ),
            );
        }
        let has_cap = *cap > 0.0 && *cap <= CAP_MAX;
        if !has_cap {
            push("/cap", format!("`cap` is {cap:?}; it must be above 0, at most {CAP_MAX:?}"));
        }
        if let Some(limit) = limit.filter(|limit| has_cap && !(*limit > 0.0 && limit < cap)) {
            let detail =
                format!("`limit` is {limit:?}; it must be above 0, below the cap, {cap:?}");
            push("/limit", detail);
        }
        if *of == MetricOf::Page {
            if alone <= 0.0 {
                let detail = "metrics of a page are about pages that show one ranker alone, and \
                              there are none: set `alone`, such as to 0.1";
                push("/of", detail.into());
            }
            if limit.is_some() {
                let detail = "a metric of a page is compared with the control: set `difference` \
                              instead";
                push("/limit", detail.into());
            }
        }
        if let Some(difference) = *difference {
            let is_zero = difference == 0.0 && *of == MetricOf::Page;
            if has_cap && !((difference > 0.0 || is_zero) && difference <= *cap) {
                let least = if *of == MetricOf::Page { "at least 0" } else { "above 0" };
                let detail = format!(
                    "`difference` is {difference:?}; it must be {least}, at most the cap, {cap:?}"
                );
                push("/difference", detail);
            } else if !has_control {
                let detail = "`difference` is to the control, and there is none: name the \
                              `control`, or set a `limit` instead";
                push("/difference", detail.into());
            }
        }
        if limit.is_none() && difference.is_none() {
            push("", format!("metric `{shown}` has no limit: set `limit`, `difference` or both"));
        }
        errors
    }
}

/// The value for a spec that does not have one.
pub(super) fn default_value_window() -> u32 {
    DEFAULT_VALUE_WINDOW_SECONDS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(super) fn is_default_value_window(seconds: &u32) -> bool {
    *seconds == DEFAULT_VALUE_WINDOW_SECONDS
}
