//! A claim, for people.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::reports::duels_to_go::rounded;
use dueling_bandits::claims::control::{Claim as Kind, Progress, REACH};
use rankduel_store::audience::Segment;

/// One claim.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Claim {
    pub claim: ClaimKind,
    /// Of `best`, `hurt` and `unhurt` the winner, and `null` while that is open.
    pub ranker: Option<String>,
    /// The ranker that it is compared with; for `hurt` without a control, the one that did best
    /// against the winner in the segment; otherwise `null`.
    pub control: Option<String>,
    /// Of `hurt`; otherwise `null`.
    #[schema(value_type = Option<String>)]
    pub segment: Option<Segment>,
    #[schema(example = 0.01)]
    pub margin: f64,
    /// The share of experiments in which it is wrong is at most this; `errors` says which claims
    /// share it.
    pub error: f64,
    pub state: ClaimState,
    /// Number of answers that had counted when it was decided: of `best` since the rankers last
    /// changed, against the control since one was first named, of `harm` and `safe` the pages,
    /// otherwise since the start. `null` while it is open.
    pub decided_after_duels: Option<u64>,
    /// Share of the duels with the control that the ranker won; `null` before the first one.
    #[schema(example = 0.59)]
    pub win_rate: Option<f64>,
    /// The probability to win against the control is proven to be above this; for `worse` and
    /// `hurt`, below it. `null` while nothing is proven.
    #[schema(example = 0.53)]
    pub bound: Option<f64>,
    /// Estimated number of further duels of the ranker and the control until it is decided; `null`
    /// if there is no estimate.
    pub duels_to_go: Option<u64>,
    /// If it is out of reach: the lead that is in reach. A negative one of -0.02 is "not worse by
    /// more than 2 points".
    pub lead_in_reach: Option<f64>,
    /// Only of `harm` and `safe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub metric: Option<ClaimedMetric>,
}

/// A claim in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimKind {
    /// No other ranker beats more of the others: the verdict.
    Best,
    /// It beats the control by at least the margin.
    Better,
    /// It does not lose to the control by more than the margin.
    NotWorse,
    /// It loses to the control by at least the margin.
    Worse,
    /// It loses to a rival by at least the margin in the segment.
    Hurt,
    /// It loses by more than the margin in no declared segment.
    Unhurt,
    /// Preferences have changed by more than the margin: the newest alarm, see `drift` of the
    /// verdict.
    Drift,
    /// Its mean of a metric is above the limit.
    Harm,
    /// Its mean of a metric is below the limit.
    Safe,
}

/// How far a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimState {
    /// It is proven, and stays so.
    Decided,
    /// It may be proven.
    Open,
    /// The ranker is too near to the edge of the claim, or beyond it: it takes more than some
    /// 30,000 duels.
    OutOfReach,
}

/// The metric of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ClaimedMetric {
    #[schema(example = "latency_ms")]
    pub name: String,
    pub of: LimitOf,
    #[schema(example = 400.0)]
    pub limit: f64,
    /// The mean of the values that came, or by how much it is worse than the control on average,
    /// with values rounded at random; `null` before the first value. It is too far from the limit on
    /// average when a claim was just decided.
    #[schema(example = 512.3)]
    pub mean: Option<f64>,
    /// Harm was found in differences that are cut at plus and minus this, and they are in `mean`.
    /// Omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 100.0, nullable = false)]
    pub cut: Option<f64>,
    /// Number of pages that count.
    pub pages: u64,
    /// The share of them without a value, or without one of both for a difference. A missing value
    /// counts as the worst one for the claim: as `cap` for `safe`, as 0 for `harm` (or the reverse).
    #[schema(example = 0.002)]
    pub missing_share: f64,
    /// Whether so many values are missing that they can break the limit by themselves (alarm
    /// `values-missing`).
    pub too_many_missing: bool,
    /// Whether the claim rests on pages of one ranker alone, and their units are not split evenly
    /// (alarm `uneven-arms`): find out why before you trust it.
    pub uneven: bool,
}

/// The subject of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitOf {
    /// The value.
    Value,
    /// Its difference to that of the control on the same page.
    Difference,
    /// The difference of pages that show the ranker alone to those that show the control alone.
    Pages,
}

impl Claim {
    /// An open claim that names no ranker.
    pub(super) fn new(claim: ClaimKind, margin: f64, error: f64) -> Self {
        Self {
            claim,
            ranker: None,
            control: None,
            segment: None,
            margin,
            error: exact_share(error),
            state: ClaimState::Open,
            decided_after_duels: None,
            win_rate: None,
            bound: None,
            duels_to_go: None,
            lead_in_reach: None,
            metric: None,
        }
    }

    /// The claim, decided after so many answers or pages, or open for `None`.
    pub(super) fn decided(self, after: Option<u64>) -> Self {
        let open = Progress::Open { comparisons: None };
        self.with_progress(after.map_or(open, |after| Progress::Decided { after }))
    }

    pub(super) fn with_progress(mut self, progress: Progress) -> Self {
        (self.state, self.decided_after_duels) = match progress {
            Progress::Decided { after } => (ClaimState::Decided, Some(after)),
            Progress::Open { .. } => (ClaimState::Open, None),
            Progress::OutOfReach => (ClaimState::OutOfReach, None),
        };
        self.duels_to_go = to_go(progress);
        self
    }
}

/// A share without the rounding error of a subtraction from 1.
pub(super) fn exact_share(share: f64) -> f64 {
    (share * 1e12).round() / 1e12
}

pub(super) fn to_go(progress: Progress) -> Option<u64> {
    match progress {
        Progress::Open { comparisons: Some(further) } => Some(rounded(further)),
        _ => None,
    }
}

/// The lead that some 30,000 duels can prove, rounded down to a tenth of a point.
pub(super) fn in_reach(lead: f64) -> f64 {
    ((lead - REACH) * 1000.0).floor() / 1000.0
}

impl From<Kind> for ClaimKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Better => Self::Better,
            Kind::NotWorse => Self::NotWorse,
            Kind::Worse => Self::Worse,
        }
    }
}
