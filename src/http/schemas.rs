//! Schemas of types that belong to crates without any: policies from the registry, enumerations as
//! they are in JSON.

#![expect(dead_code, reason = "describes what is read and written elsewhere")]

use utoipa::ToSchema;

pub(crate) use crate::schemas::PolicySchema;

/// What a tie means for the win counts.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TieRule {
    /// A tie changes nothing.
    Skip,
    /// A tie is half a win for both.
    Half,
    /// A tie is a win for one of the two, drawn at random from the experiment's seed and the step.
    Coin,
}

/// What happens where one ranking is longer than the other. A longer list gets more slots, and a
/// searcher who clicks at random would make it win.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DepthPolicy {
    /// Both are cut to the length of the shorter one.
    Min,
    /// As `min`; then follows the rest of the longer one, which earns no credit.
    Max,
    /// As they are, every slot credited: what the papers write, and unfair to the shorter list.
    Uncut,
}

/// What a click on a document is worth to the left, from its two ranks.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RankCredit {
    /// `1/left - 1/right`.
    Inverse,
    /// `right - left`.
    Linear,
    /// The sign of `right - left`.
    Binary,
}

/// What a page is worth, given the posterior of its slots.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PosteriorCredit {
    /// The probability that a side has more clicks than the other.
    MoreClicks,
    /// The number of clicks that a side is expected to have.
    ExpectedClicks,
}

/// How an outcome follows from the two sides' credit.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PosteriorVerdict {
    /// The side with more credit wins. The credit of a searcher who clicks at random is 0 on
    /// average, but small credits count as much as large ones: such a searcher may still prefer one
    /// side more often.
    Sign,
    /// Drawn: each side wins with the probability that its credit says, which prefers neither under
    /// random clicks.
    Drawn,
}

/// What becomes of documents that both sides want. Published implementations differ here on the
/// same input.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Shared {
    /// If both sides want the same document next, it enters once, belongs to neither side and takes
    /// no turn; otherwise the two picks of the round form a pair, and a pair that the end of the
    /// page cuts in half earns no credit.
    Collapse,
    /// The side whose turn it is gets it (the paper).
    CreditAll,
    /// The common beginning of both lists belongs to neither side.
    IgnorePrefix,
    /// Documents with the same rank on both sides belong to neither.
    IgnoreSameRank,
    /// Rounds in which both sides want the same document first earn no credit.
    IgnoreRound,
}

/// A remark about a draft.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(crate) enum Note {
    /// Optimized interleaving: no distribution over the lists is free of bias; this is the largest
    /// that is left, as the mean credit of a position.
    Relaxed {
        /// Mean credit of the worst position.
        bias: f64,
    },
    /// Optimized interleaving: there were too many lists to weigh, or the linear program was not
    /// solved. Team draft was used instead.
    FellBack,
}
