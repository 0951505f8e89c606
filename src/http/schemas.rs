//! Schemas of types that come from crates without schemas.
//!
//! The types here mirror types whose own derivation would describe them in a way that clients
//! cannot use. Reports share [`PolicySchema`] and [`Goal`].

#![expect(dead_code, reason = "describes JSON that other types read and write")]

use utoipa::ToSchema;

pub(crate) use crate::schemas::{Goal, PolicySchema};
use rankduel_engine::experiment_spec::Ranker;

/// How a tie counts.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TieRule {
    /// A tie counts nothing.
    Skip,
    /// A tie counts half a win for each ranker.
    Half,
    /// A tie counts as a win for one of the two, drawn from the experiment's seed and the step.
    Coin,
}

/// A ranker: its id, or an object.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub(crate) enum RankerBody {
    /// The id.
    Id(String),
    /// The id and a description.
    Object(Ranker),
}

/// How two rankings are combined into one page. `docs/interleaving.md` compares the methods.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub(crate) enum Interleaving {
    /// The sides pick in turn; a coin decides which side starts each round.
    TeamDraft(TeamDraftInterleaving),
    /// Prefixes of both lists, as equal in length as possible.
    Balanced(BalancedInterleaving),
    /// Documents drawn by rank, credit by posterior.
    Probabilistic(ProbabilisticInterleaving),
    /// The fairest and most informative distribution over lists, by a linear program.
    Optimized(OptimizedInterleaving),
}

/// Team draft, the default.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamDraftInterleaving {
    /// The method.
    kind: TeamDraftKind,
    /// How documents in both rankings are credited.
    #[schema(nullable = false)]
    shared: Option<Shared>,
    /// How the outcome follows from the credit; `sign` by default.
    #[schema(nullable = false)]
    verdict: Option<ScoreVerdict>,
    /// Treatment of a ranking that is longer than the other.
    #[schema(nullable = false)]
    depth_policy: Option<DepthPolicy>,
    /// Weights of clicks; without it all clicks weigh the same.
    #[schema(nullable = false)]
    click_weights: Option<ClickWeights>,
}

/// Balanced interleaving; its published credit is known to be unfair.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BalancedInterleaving {
    /// The method.
    kind: BalancedKind,
    /// How clicks are credited; `published` by default.
    #[schema(nullable = false)]
    credit: Option<BalancedCredit>,
    /// How the outcome follows from the credit; `sign` by default.
    #[schema(nullable = false)]
    verdict: Option<ScoreVerdict>,
    /// Treatment of a ranking that is longer than the other.
    #[schema(nullable = false)]
    depth_policy: Option<DepthPolicy>,
    /// Weights of clicks; without it all clicks weigh the same.
    #[schema(nullable = false)]
    click_weights: Option<ClickWeights>,
}

/// Probabilistic interleaving.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbabilisticInterleaving {
    /// The method.
    kind: ProbabilisticKind,
    /// How strongly the top of a ranking is preferred; 3 by default.
    #[schema(exclusive_minimum = 0.0, maximum = 10.0, nullable = false)]
    tau: Option<f64>,
    /// The credit of a page.
    #[schema(nullable = false)]
    credit: Option<PosteriorCredit>,
    /// How the outcome follows from the credit; `score` by default.
    #[schema(nullable = false)]
    verdict: Option<PosteriorVerdict>,
    /// Treatment of a ranking that is longer than the other.
    #[schema(nullable = false)]
    depth_policy: Option<DepthPolicy>,
    /// Weights of clicks; without it all clicks weigh the same.
    #[schema(nullable = false)]
    click_weights: Option<ClickWeights>,
}

/// Optimized interleaving.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OptimizedInterleaving {
    /// The method.
    kind: OptimizedKind,
    /// Credit of a document.
    #[schema(nullable = false)]
    credit: Option<RankCredit>,
    /// Number of positions that are optimized and credited; 10 by default.
    #[schema(minimum = 1, maximum = 10, nullable = false)]
    depth: Option<u32>,
    /// Maximum number of lists in the linear program; 1024 by default.
    #[schema(minimum = 1, maximum = 1024, nullable = false)]
    max_lists: Option<u32>,
    /// How the outcome follows from the credit; `score` by default.
    #[schema(nullable = false)]
    verdict: Option<ScoreVerdict>,
    /// Treatment of a ranking that is longer than the other.
    #[schema(nullable = false)]
    depth_policy: Option<DepthPolicy>,
    /// Weights of clicks; without it all clicks weigh the same.
    #[schema(nullable = false)]
    click_weights: Option<ClickWeights>,
}

macro_rules! kinds {
    ($($name:ident $variant:ident;)*) => {
        $(
            /// The name of one method.
            #[derive(Debug, ToSchema)]
            #[serde(rename_all = "kebab-case")]
            pub(crate) enum $name {
                /// This method.
                $variant,
            }
        )*
    };
}

kinds! {
    TeamDraftKind TeamDraft;
    BalancedKind Balanced;
    ProbabilisticKind Probabilistic;
    OptimizedKind Optimized;
}

/// Treatment of a ranking that is longer than the other. The longer ranking would fill more slots,
/// and a searcher who clicks at random would make it win.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DepthPolicy {
    /// Both rankings are cut to the length of the shorter one.
    Min,
    /// As `min`, followed by the rest of the longer ranking, which earns no credit.
    Max,
    /// The rankings are not cut, and every slot earns credit: as in the papers, and unfair to the
    /// shorter ranking.
    Uncut,
}

/// The credit of a click for the left side, from the document's two ranks.
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

/// The credit of a page, from the posterior of its slots.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PosteriorCredit {
    /// The probability that a side has more clicks than the other.
    MoreClicks,
    /// The expected number of clicks of a side.
    ExpectedClicks,
}

/// How an outcome follows from the credit of the two sides.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PosteriorVerdict {
    /// The side with more credit wins. A searcher who clicks at random gives both sides the same
    /// credit on average, but small and large credits count the same. Such a searcher may therefore
    /// prefer one side more often.
    Sign,
    /// Drawn at random: each side wins with the probability given by its credit. Random clicks
    /// prefer neither side.
    Drawn,
    /// Drawn at random: the side with more credit wins with a probability equal to the difference
    /// of the credits, and the page is a tie otherwise. Random clicks prefer neither side, with
    /// less noise than `drawn`.
    Score,
}

/// How an outcome follows from a score.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScoreVerdict {
    /// The side with more credit wins.
    Sign,
    /// Drawn at random: the side with more credit wins with a probability in proportion to the
    /// score, and the page is a tie otherwise. Random clicks prefer neither side.
    Score,
}

/// How balanced interleaving credits clicks.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BalancedCredit {
    /// Clicks within the top of each side, down to the lowest click. Unfair.
    Published,
    /// Clicks on the documents whose place depends on which side leads. Fair.
    Debiased,
}

/// The weight of a click is the sum of the weights of its features. It multiplies the weight of the
/// event.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClickWeights {
    /// By position from the top, 0 to 100 each; the last one holds for all positions below. All 1
    /// by default.
    #[schema(nullable = false, min_items = 10, max_items = 10)]
    positions: Option<Vec<u8>>,
    /// Added for the highest click of the page; 0 by default.
    #[schema(nullable = false, maximum = 100)]
    highest: Option<u8>,
    /// Added for the lowest click of the page; 0 by default.
    #[schema(nullable = false, maximum = 100)]
    lowest: Option<u8>,
    /// Added for a click that is the only one of the page; 0 by default.
    #[schema(nullable = false, maximum = 100)]
    only: Option<u8>,
}

/// How documents in both rankings are credited. Published implementations differ here on the same
/// input.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Shared {
    /// If both sides pick the same document next, it is added once, belongs to neither side and
    /// takes no turn. Otherwise the two picks of the round form a pair. A pair that is cut in half
    /// by the end of the page earns no credit.
    Collapse,
    /// The side whose turn it is gets the document (as in the paper).
    CreditAll,
    /// The common prefix of both rankings belongs to neither side.
    IgnorePrefix,
    /// Documents with the same rank on both sides belong to neither.
    IgnoreSameRank,
    /// Rounds in which both sides pick the same document first earn no credit.
    IgnoreRound,
}

/// A remark on a page.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(crate) enum Note {
    /// Optimized interleaving: no distribution over the lists is unbiased. `bias` is the largest
    /// remaining bias, as the mean credit of a position.
    Relaxed {
        /// Mean credit of the worst position.
        bias: f64,
    },
    /// Optimized interleaving: there were too many lists, or the linear program was not solved.
    /// Team draft was used instead.
    FellBack,
}
