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

/// How two rankings are combined into one page: the method, and parameters of the method where they
/// differ from their defaults. `docs/interleaving.md` compares the methods.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Interleaving {
    kind: Method,
    /// Of `team-draft`: how documents in both rankings are credited.
    #[schema(nullable = false)]
    shared: Option<Shared>,
    /// How clicks are credited. Of `balanced`: `published` or `debiased`; `published` by default. Of
    /// `probabilistic`: `more-clicks` or `expected-clicks`. Of `optimized`: `inverse`, `linear` or
    /// `binary`.
    #[schema(nullable = false)]
    credit: Option<Credit>,
    /// Of `probabilistic`: how strongly the top of a ranking is preferred; 3 by default.
    #[schema(exclusive_minimum = 0.0, maximum = 10.0, nullable = false)]
    tau: Option<f64>,
    /// Of `optimized`: number of positions that are optimized and credited; 10 by default.
    #[schema(minimum = 1, maximum = 10, nullable = false)]
    depth: Option<u32>,
    /// Of `optimized`: maximum number of lists in the linear program; 1024 by default.
    #[schema(minimum = 1, maximum = 1024, nullable = false)]
    max_lists: Option<u32>,
    /// How the outcome follows from the credit; `sign` by default, and `score` with `probabilistic`
    /// and `optimized`.
    #[schema(nullable = false)]
    verdict: Option<CreditVerdict>,
    #[schema(nullable = false)]
    depth_policy: Option<DepthPolicy>,
    #[schema(nullable = false)]
    click_weights: Option<ClickWeights>,
}

/// A method of interleaving.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    /// The sides pick in turn; a coin decides which side starts each round. The default.
    TeamDraft,
    /// Prefixes of both lists, as equal in length as possible. Its published credit is known to be
    /// unfair.
    Balanced,
    /// Documents drawn by rank, credit by posterior.
    Probabilistic,
    /// The fairest and most informative distribution over lists, by a linear program.
    Optimized,
}

/// Treatment of a ranking that is longer than the other, which a searcher who clicks at random
/// would make win.
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

/// How clicks are credited.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Credit {
    /// Clicks within the top of each side, down to the lowest click. Unfair.
    Published,
    /// Clicks on the documents whose place depends on which side leads. Fair.
    Debiased,
    /// The probability that a side has more clicks than the other.
    MoreClicks,
    /// The expected number of clicks of a side.
    ExpectedClicks,
    /// `1/left - 1/right`, from the document's two ranks, for the left side.
    Inverse,
    /// `right - left`.
    Linear,
    /// The sign of `right - left`.
    Binary,
}

/// How an outcome follows from the credit of the two sides.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CreditVerdict {
    /// The side with more credit wins. With `probabilistic`, a searcher who clicks at random may
    /// prefer one side more often: small and large credits count the same.
    Sign,
    /// Of `probabilistic`. Drawn at random: each side wins with the probability given by its
    /// credit. Random clicks prefer neither side.
    Drawn,
    /// Drawn at random: the side with more credit wins with a probability in proportion to the
    /// difference, and the page is a tie otherwise. Random clicks prefer neither side, with less
    /// noise than `drawn`.
    Score,
}

/// The weight of a click is the sum of the weights of its features. It multiplies the weight of the
/// event.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClickWeights {
    /// By position from the top; the last one holds for all positions below. All 1 by default.
    #[schema(nullable = false, min_items = 10, max_items = 10)]
    positions: Option<Vec<u8>>,
    /// Added for the highest click of the page; 0 by default.
    #[schema(nullable = false, maximum = 100)]
    highest: Option<u8>,
    /// For the lowest click; 0 by default.
    #[schema(nullable = false, maximum = 100)]
    lowest: Option<u8>,
    /// For a click that is the only one; 0 by default.
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
