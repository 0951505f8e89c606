//! When an experiment concludes by itself.

use serde::{Deserialize, Deserializer, Serialize};

use super::field_error::{FieldError, range_error, share_error};
use dueling_bandits::evidence::Target;

/// Default confidence of a verdict.
pub const DEFAULT_CONFIDENCE: f64 = 0.95;
/// Default margin of a verdict.
pub const DEFAULT_MARGIN: f64 = 0.01;
/// Valid confidences of a verdict.
pub const CONFIDENCE: std::ops::RangeInclusive<f64> = 0.5..=0.9999;
/// Valid margins of a verdict.
pub const MARGIN: std::ops::RangeInclusive<f64> = 0.0..=0.2;
/// Most days of `max_days` and `min_days`: ten years.
const DAYS_MAX: f64 = 3650.0;

/// When an experiment concludes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcludeAt {
    /// Conclude as soon as a Copeland winner is certain at this confidence. However long the
    /// experiment runs, it concludes on another ranker with probability at most one minus this.
    /// 0.95 by default.
    #[serde(default = "default_confidence")]
    #[schema(minimum = 0.5, maximum = 0.9999, example = 0.95)]
    pub confidence: f64,
    /// Differences up to this size do not matter: with 0.01, pairs between 49 % and 51 % may count
    /// for either ranker. With 0, an experiment whose two best rankers are equal would never end.
    /// 0.01 by default.
    #[serde(default = "default_margin")]
    #[schema(minimum = 0.0, maximum = 0.2)]
    pub margin: f64,
    /// Conclude on the leader after this many answered duels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, nullable = false)]
    pub max_duels: Option<u64>,
    /// Conclude on the leader this many days after the creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0.0, maximum = 3650.0, nullable = false)]
    pub max_days: Option<f64>,
    /// Do not conclude earlier than this many days after the creation, for example 7 to cover a
    /// whole week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.0, maximum = 3650.0, nullable = false)]
    pub min_days: Option<f64>,
    /// With a `control`: conclude on a certain winner only once the winner is proven better or worse
    /// than the control, or neither can be proven in reasonable time. `true` by default.
    #[serde(default = "default_control", skip_serializing_if = "is_default_control")]
    pub control: bool,
    /// With `segments`: conclude on a certain winner only once it is proven for each segment whether
    /// the winner loses there, or that cannot be proven in reasonable time. `false` by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub segments: bool,
}

impl Default for ConcludeAt {
    fn default() -> Self {
        Self {
            confidence: DEFAULT_CONFIDENCE,
            margin: DEFAULT_MARGIN,
            max_duels: None,
            max_days: None,
            min_days: None,
            control: default_control(),
            segments: false,
        }
    }
}

/// A change of when an experiment concludes by itself. A limit that is left out stays; `null`
/// removes it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcludeAtChange {
    /// Must be the present value, which cannot change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    confidence: Option<f64>,
    /// Must be the present value, which cannot change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    margin: Option<f64>,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_duels: Option<Option<u64>>,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, exclusive_minimum = 0.0, maximum = 3650.0)]
    max_days: Option<Option<f64>>,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, minimum = 0.0, maximum = 3650.0)]
    min_days: Option<Option<f64>>,
}

/// A member that is given, maybe as `null`.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl ConcludeAtChange {
    /// The member after the change.
    pub(super) fn applied_to(self, at: Option<ConcludeAt>) -> Result<ConcludeAt, FieldError> {
        let before = at.unwrap_or_default();
        let targets = [
            ("confidence", self.confidence, before.confidence),
            ("margin", self.margin, before.margin),
        ];
        for (name, wanted, own) in targets {
            if wanted.is_some_and(|wanted| wanted != own) {
                let detail = format!(
                    "`{name}` is {own} and cannot change: the policy has chosen duels for it; \
                     create another experiment"
                );
                return Err(FieldError::new(format!("/conclude_at/{name}"), detail));
            }
        }
        Ok(ConcludeAt {
            max_duels: self.max_duels.unwrap_or(before.max_duels),
            max_days: self.max_days.unwrap_or(before.max_days),
            min_days: self.min_days.unwrap_or(before.min_days),
            ..before
        })
    }
}

fn default_confidence() -> f64 {
    DEFAULT_CONFIDENCE
}

fn default_margin() -> f64 {
    DEFAULT_MARGIN
}

fn default_control() -> bool {
    true
}

fn is_default_control(control: &bool) -> bool {
    *control == default_control()
}

impl ConcludeAt {
    /// The target of the verdict of an experiment; the default where it does not conclude by
    /// itself.
    pub fn target(at: Option<Self>) -> Target {
        let Self { confidence, margin, .. } = at.unwrap_or_default();
        Target { confidence, margin }
    }

    /// All errors.
    pub(super) fn errors(&self) -> Vec<FieldError> {
        let Self { confidence, margin, max_duels, max_days, min_days, control: _, segments: _ } =
            *self;
        let mut errors = Vec::new();
        errors.extend(share_error("/conclude_at/confidence", confidence, CONFIDENCE));
        errors.extend(share_error("/conclude_at/margin", margin, MARGIN));
        if max_duels == Some(0) {
            let detail = "`max_duels` is 0; it must be 1 or more";
            errors.push(FieldError::new("/conclude_at/max_duels", detail));
        }
        if let Some(days) = max_days.filter(|days| !(*days > 0.0 && *days <= DAYS_MAX)) {
            let detail = format!("`max_days` is {days:?}; it must be above 0, up to {DAYS_MAX}");
            errors.push(FieldError::new("/conclude_at/max_days", detail));
        }
        if let Some(days) = min_days {
            errors.extend(range_error("/conclude_at/min_days", days, 0.0..=DAYS_MAX));
        }
        if let Some((least, most)) = min_days.zip(max_days)
            && least > most
        {
            let detail = format!("`min_days` is {least:?}, which is after `max_days` {most:?}");
            errors.push(FieldError::new("/conclude_at/min_days", detail));
        }
        errors
    }
}
