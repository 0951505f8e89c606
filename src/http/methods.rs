//! How methods of interleaving are described: as what [`interleaving::Spec`] reads, which its own
//! derivation cannot say in a way that anything fits.

#![expect(
    dead_code,
    reason = "says in the description of the API what is read and written elsewhere"
)]

use utoipa::ToSchema;

use super::schemas::{DepthPolicy, PosteriorCredit, PosteriorVerdict, RankCredit, Shared};

/// How two rankings become one page. `docs/interleaving.md` says what each method is good for and
/// what it gets wrong.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub(crate) enum Interleaving {
    /// Sides pick in turn; a coin says who begins each round.
    TeamDraft(TeamDraftInterleaving),
    /// Beginnings of both lists, as even as can be.
    Balanced(BalancedInterleaving),
    /// Documents drawn by rank, credit by posterior.
    Probabilistic(ProbabilisticInterleaving),
    /// The fairest and most telling distribution over lists, by a linear program.
    Optimized(OptimizedInterleaving),
}

/// Team draft, the default.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamDraftInterleaving {
    /// Which method.
    kind: TeamDraftKind,
    /// What becomes of documents that both sides want.
    #[schema(nullable = false)]
    shared: Option<Shared>,
    /// What happens where one list is longer.
    #[schema(nullable = false)]
    depth_policy: Option<DepthPolicy>,
}

/// Balanced interleaving: known to be unfair.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BalancedInterleaving {
    /// Which method.
    kind: BalancedKind,
    /// What happens where one list is longer.
    #[schema(nullable = false)]
    depth_policy: Option<DepthPolicy>,
}

/// Probabilistic interleaving.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbabilisticInterleaving {
    /// Which method.
    kind: ProbabilisticKind,
    /// How strongly the top of a list is preferred; 3 unless said otherwise.
    #[schema(exclusive_minimum = 0.0, maximum = 10.0, nullable = false)]
    tau: Option<f64>,
    /// What a page is worth.
    #[schema(nullable = false)]
    credit: Option<PosteriorCredit>,
    /// How the outcome follows from it.
    #[schema(nullable = false)]
    verdict: Option<PosteriorVerdict>,
    /// What happens where one list is longer.
    #[schema(nullable = false)]
    depth_policy: Option<DepthPolicy>,
}

/// Optimized interleaving.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OptimizedInterleaving {
    /// Which method.
    kind: OptimizedKind,
    /// Credit of a document.
    #[schema(nullable = false)]
    credit: Option<RankCredit>,
    /// Positions that are optimized and credited; 10 unless said otherwise.
    #[schema(minimum = 1, maximum = 10, nullable = false)]
    depth: Option<u32>,
    /// Lists that the linear program may weigh; 1024 unless said otherwise.
    #[schema(minimum = 1, maximum = 1024, nullable = false)]
    max_lists: Option<u32>,
    /// What happens where one list is longer.
    #[schema(nullable = false)]
    depth_policy: Option<DepthPolicy>,
}

macro_rules! kinds {
    ($($name:ident $variant:ident;)*) => {
        $(
            /// The name of one method.
            #[derive(Debug, ToSchema)]
            #[serde(rename_all = "kebab-case")]
            pub(crate) enum $name {
                /// This one.
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
