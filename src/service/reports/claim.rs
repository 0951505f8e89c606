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
    /// The ranker that the claim is about; `null` for `drift`. For `best`, `hurt` and `unhurt` it is
    /// the winner, and `null` before the verdict.
    pub ranker: Option<String>,
    /// The ranker that `ranker` is compared with; for `hurt` without a control, the one that did best
    /// against the winner in the segment; otherwise `null`.
    pub control: Option<String>,
    /// The segment of `hurt`; otherwise `null`.
    #[schema(value_type = Option<String>)]
    pub segment: Option<Segment>,
    #[schema(example = 0.01)]
    pub margin: f64,
    /// The claim is wrong in at most this share of experiments; `errors` says which claims share it.
    pub error: f64,
    pub state: ClaimState,
    /// Number of answers that had counted when the claim was decided: for `best`, since the rankers
    /// last changed; against the control, since one was first named; otherwise since the start. For
    /// `harm` and `safe`, the number of pages. `null` while the claim is open.
    pub decided_after_duels: Option<u64>,
    /// Share of its duels with `control` that `ranker` won; `null` before the first one.
    #[schema(example = 0.59)]
    pub win_rate: Option<f64>,
    /// A bound of the probability that `ranker` wins against `control`, which is proven to be above
    /// this; for `worse` and `hurt`, below it. `null` while nothing is proven.
    #[schema(example = 0.53)]
    pub bound: Option<f64>,
    /// Estimated number of further duels of the ranker and the control until the claim is decided;
    /// `null` if there is no estimate.
    pub duels_to_go: Option<u64>,
    /// If the claim is out of reach: the lead that could be proven. A lead of -0.02 stands for "not
    /// worse by more than 2 points".
    pub lead_in_reach: Option<f64>,
    /// The metric of `harm` and `safe`; omitted otherwise.
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
    /// The ranker beats the control by at least the margin.
    Better,
    /// The ranker does not lose to the control by more than the margin.
    NotWorse,
    /// The ranker loses to the control by at least the margin.
    Worse,
    /// The winner loses to a rival by at least the margin in the segment.
    Hurt,
    /// The winner loses by more than the margin in no declared segment.
    Unhurt,
    /// Preferences have changed by more than the margin: the newest alarm, see `drift` of the
    /// verdict.
    Drift,
    /// The ranker's mean of a metric is worse than the limit.
    Harm,
    /// The ranker's mean of a metric is better than the limit.
    Safe,
}

/// How far a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimState {
    /// The claim is proven, and stays so, unless drift starts the claims again.
    Decided,
    /// The claim may still be proven.
    Open,
    /// The ranker is too near to the edge of the claim, or beyond it: a proof takes more than
    /// some 30,000 duels.
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
    /// The mean of the values that came, or by how much they are worse than the control on average,
    /// with values rounded at random; `null` before the first value. When a claim was just decided,
    /// this mean is on average farther from the limit than the true one.
    #[schema(example = 512.3)]
    pub mean: Option<f64>,
    /// The value that the mean is proven to be worse than, by `harm`, or better than, by `safe`,
    /// with the error of the claim, which is decided once this reaches `limit`. `null` if nothing
    /// is proven.
    #[schema(example = 431.5)]
    pub bound: Option<f64>,
    /// The size at which differences are cut, also in `mean`, if harm was found by cut ones. Omitted
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 100.0, nullable = false)]
    pub cut: Option<f64>,
    /// Number of pages that count.
    pub pages: u64,
    /// The share of these pages that lack a value, or for a difference one of the two. A missing
    /// value counts as the worst one for the claim: as `cap` for `safe`, as 0 for `harm` (or the
    /// reverse).
    #[schema(example = 0.002)]
    pub missing_share: f64,
    /// Whether so many values are missing that they can break the limit by themselves (alarm
    /// `values-missing`).
    pub too_many_missing: bool,
    /// Whether the claim rests on pages of one ranker alone, and their units are not split evenly
    /// (alarm `uneven-arms`): find out why before you trust it.
    pub uneven: bool,
}

/// The mean that a limit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitOf {
    /// The mean value.
    Value,
    /// The mean difference to the value of the control on the same page.
    Difference,
    /// The difference between the means of pages that show the ranker alone and of those that show
    /// the control alone.
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
