//! The list of policies. Everything that lists kinds of policies derives from it.

use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};
use crate::{Policy, Tally};

macro_rules! policies {
    ($($(#[$doc:meta])* $variant:ident($parameters:ty) = $kind:tt,)*) => {
        /// A kind of policy with its parameters. With the feature `serde` it is read from and
        /// written as JSON, `{"kind": "…", …parameters}`.
        ///
        /// ```
        /// use dueling_bandits::PolicySpec;
        /// use dueling_bandits::parameters::Setup;
        ///
        /// let spec = PolicySpec::Uniform(Default::default());
        /// assert_eq!(spec.kind(), "uniform");
        /// let policy = spec.start(Setup { rankers: 4, seed: 1 });
        /// assert_eq!(policy.tally().rankers(), 4);
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "kind"))]
        pub enum PolicySpec {
            $($(#[$doc])* #[cfg_attr(feature = "serde", serde(rename = $kind))] $variant($parameters),)*
        }

        impl PolicySpec {
            /// Every kind with its description, in the order of the documentation.
            pub const KINDS: &'static [(&'static str, &'static Description)] =
                &[$(($kind, &<$parameters as PolicyParameters>::DESCRIPTION),)*];

            /// The kinds that can start from win counts ([`PolicySpec::from_counts`]).
            pub fn kinds_from_counts() -> impl Iterator<Item = &'static str> {
                [$(($kind, <$parameters as PolicyParameters>::FROM_TALLY.is_some()),)*]
                    .into_iter()
                    .filter_map(|(kind, starts)| starts.then_some(kind))
            }

            /// The kind's name.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind,)* }
            }

            /// The description of the kind for users.
            pub fn description(&self) -> &'static Description {
                match self { $(Self::$variant(_) => &<$parameters as PolicyParameters>::DESCRIPTION,)* }
            }

            /// Check the ranges of the parameters for `rankers` rankers.
            pub fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
                match self { $(Self::$variant(parameters) => parameters.validate(rankers),)* }
            }

            /// The policy before its first observation. Call [`PolicySpec::validate`] first.
            pub fn start(&self, setup: Setup) -> Box<dyn Policy> {
                match self { $(Self::$variant(parameters) => parameters.start(setup),)* }
            }

            /// The policy whose state is `tally`; `None` if its state is more than counts.
            pub(crate) fn start_from_tally(&self, setup: Setup, tally: Tally) -> Option<Box<dyn Policy>> {
                match self {
                    $(Self::$variant(parameters) => {
                        let start = <$parameters as PolicyParameters>::FROM_TALLY?;
                        Some(start(parameters, setup, tally))
                    })*
                }
            }

            /// The policy from the bytes that [`Policy::save`] wrote in layout `format`; `None`
            /// if this version cannot read them.
            #[cfg(feature = "serde")]
            pub fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
                match self { $(Self::$variant(parameters) => parameters.restore(setup, format, state),)* }
            }

            /// A spec from its kind and a JSON object of its parameters. Call
            /// [`PolicySpec::validate`] to check their ranges.
            #[cfg(feature = "serde")]
            pub fn from_parameters(
                kind: &str,
                parameters: serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, InvalidPolicy> {
                use crate::read_parameters::{read_parameters, unknown_kind};

                match kind {
                    $($kind => Ok(Self::$variant(read_parameters(kind, parameters)?)),)*
                    other => Err(unknown_kind(other, &Self::kind_list())),
                }
            }
        }
    };
}

policies! {
    /// Uniformly random pairs: the baseline.
    Uniform(crate::policies::uniform::Uniform) = "uniform",
    /// Double Thompson sampling.
    DoubleThompson(crate::policies::double_thompson::DoubleThompson) = "d-ts",
    /// Double Thompson sampling that breaks ties by the lowest expected regret.
    DoubleThompsonPlus(crate::policies::double_thompson::DoubleThompsonPlus) = "d-ts-plus",
    /// D-TS+ with soft pruning.
    DoubleThompsonPlusSoft(crate::policies::double_thompson::DoubleThompsonPlusSoft) = "d-ts-plus-soft",
    /// D-TS+ with soft pruning and a sharpened first sample.
    DoubleThompsonPlusSharp(crate::policies::double_thompson::DoubleThompsonPlusSharp) = "d-ts-plus-sharp",
    /// D-TS-Verdict: double Thompson sampling that proves its winner.
    DoubleThompsonVerdict(crate::policies::verdict::DoubleThompsonVerdict) = "d-ts-verdict",
    /// Copeland confidence bound.
    Ccb(crate::policies::ccb::Ccb) = "ccb",
    /// Relative upper confidence bound.
    Rucb(crate::policies::rucb::Rucb) = "rucb",
    /// Relative confidence sampling.
    Rcs(crate::policies::rcs::Rcs) = "rcs",
    /// Relative minimum empirical divergence.
    Rmed1(crate::policies::rmed::Rmed1) = "rmed1",
    /// RMED with the cheapest opponents.
    Rmed2(crate::policies::rmed::Rmed2) = "rmed2",
    /// RMED2 for a known horizon.
    Rmed2Fh(crate::policies::rmed::Rmed2Fh) = "rmed2-fh",
    /// CW-RMED: evidence for a Copeland winner, by linear programs.
    CwRmed(crate::policies::cw_rmed::CwRmed) = "cw-rmed",
    /// ECW-RMED: evidence for a Copeland winner, in closed form.
    EcwRmed(crate::policies::cw_rmed::EcwRmed) = "ecw-rmed",
    /// MergeRUCB: RUCB within batches of rankers.
    MergeRucb(crate::policies::merge::MergeRucb) = "merge-rucb",
    /// MergeDTS: Thompson sampling within batches of rankers.
    MergeDts(crate::policies::merge::MergeDts) = "merge-dts",
    /// Rounds that identify a Copeland winner, for many rankers.
    Scb(crate::policies::scb::Scb) = "scb",
    /// Two bandits that play against each other.
    Sparring(crate::policies::sparring::Sparring) = "sparring",
    /// A tournament in which the winner stays.
    WinnerStays(crate::policies::winner_stays::WinnerStays) = "winner-stays",
    /// Thompson sampling with one win count per ranker.
    SelfSparring(crate::policies::self_sparring::SelfSparring) = "self-sparring",
    /// Beat the Mean: removes rankers that lose to the mean of the remaining ones.
    BeatTheMean(crate::policies::btm::BeatTheMean) = "btm",
    /// Interleaved Filter 2: a candidate meets all other rankers in turn.
    InterleavedFilter(crate::policies::interleaved_filter::InterleavedFilter) = "interleaved-filter",
    /// MultiSBM: one bandit for each ranker.
    MultiSbm(crate::policies::multi_sbm::MultiSbm) = "multi-sbm",
    /// Doubler: a bandit that plays against its own earlier proposals.
    Doubler(crate::policies::doubler::Doubler) = "doubler",
    /// Versatile dueling bandits: two bandits that assume nothing about the preferences.
    Vdb(crate::policies::vdb::Vdb) = "vdb",
    /// PCOMP: all pairs, in batches.
    Pcomp(crate::policies::comp::pcomp::Pcomp) = "pcomp",
    /// SCOMP: a seed set against all, in batches.
    Scomp(crate::policies::comp::scomp::Scomp) = "scomp",
    /// SCOMP2: the best of a seed set against all, in batches.
    Scomp2(crate::policies::comp::scomp2::Scomp2) = "scomp2",
    /// SAVAGE: drops pairs that cannot change the winner.
    Savage(crate::policies::explore::savage::Savage) = "savage",
    /// PBR: races pairs until the best are known.
    Pbr(crate::policies::explore::pbr::Pbr) = "pbr",
    /// RankEl: compares pairs until the ranking by Copeland score is known.
    RankEl(crate::policies::explore::rank_el::RankEl) = "rank-el",
}

impl PolicySpec {
    /// The names of all kinds, for messages.
    pub fn kind_list() -> String {
        Self::KINDS.iter().map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ")
    }
}
