//! Which policy, with which parameters: from JSON, to a running policy, and back from a saved state.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::Policy;

/// What a policy needs to start, beside its own parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// `K`.
    pub rankers: usize,
    /// Seed of all that is drawn while folding.
    pub seed: u64,
}

/// A policy that cannot be built as asked: which parameter, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct InvalidPolicy {
    /// Name of the parameter, `kind` for the kind itself, empty when no single one is to blame.
    pub parameter: String,
    /// What is wrong and what would be right.
    pub detail: String,
}

impl InvalidPolicy {
    /// An error about `parameter`.
    pub fn new(parameter: &str, detail: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), detail: detail.into() }
    }
}

/// What a user wants to know of a policy before choosing it.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// One sentence: what it does.
    pub summary: &'static str,
    /// Paper and algorithm.
    pub source: &'static str,
    /// What must hold for its guarantee, as "a Condorcet winner"; "nothing" where it needs nothing.
    pub assumes: &'static str,
    /// Its parameters, in the order of its documentation.
    pub parameters: &'static [Parameter],
    /// Why no ranker can be enlisted or retired while it runs; `None` where rankers may come and go.
    pub fixed_rankers: Option<&'static str>,
    /// Why a live service should not run it; `None` where it may.
    pub not_served: Option<&'static str>,
}

/// One parameter of a policy.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name in JSON and on the command line.
    pub name: &'static str,
    /// What it does, with range and unit.
    pub meaning: &'static str,
    /// Its default as text; `None` for one that must be given.
    pub default: Option<&'static str>,
}

/// The parameters of one kind of policy, and how that policy starts and resumes.
pub trait PolicyParameters: Serialize + DeserializeOwned {
    /// What a user reads about the kind.
    const DESCRIPTION: Description;

    /// Check ranges, for an experiment with `rankers` rankers.
    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy>;

    /// The policy before its first observation. Parameters have been validated.
    fn start(&self, setup: Setup) -> Box<dyn Policy>;

    /// The policy as [`Policy::save`] left it in layout `format`; `None` when the bytes are not of a layout that this
    /// version reads. The caller then folds from the start.
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>>;
}

/// Refuse a value outside its range with a sentence that names it.
pub fn require(
    holds: bool,
    parameter: &str,
    value: impl std::fmt::Display,
    wanted: &str,
) -> Result<(), InvalidPolicy> {
    if holds {
        Ok(())
    } else {
        Err(InvalidPolicy::new(parameter, format!("`{parameter}` is {value}; it must be {wanted}")))
    }
}

macro_rules! policies {
    // `tt` and not `literal`: the name must reach the derives as the bare token, or utoipa does not see it.
    ($($(#[$doc:meta])* $variant:ident($parameters:ty) = $kind:tt,)*) => {
        /// A kind of policy with its parameters; in JSON `{"kind": "…", …parameters}`.
        #[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
        #[serde(tag = "kind")]
        pub enum PolicySpec {
            $($(#[$doc])* #[serde(rename = $kind)] $variant($parameters),)*
        }

        impl PolicySpec {
            /// Every kind with its description, in the order of the documentation.
            pub const KINDS: &'static [(&'static str, &'static Description)] =
                &[$(($kind, &<$parameters as PolicyParameters>::DESCRIPTION),)*];

            /// A spec from its kind and a map of its parameters; ranges are checked by [`PolicySpec::validate`].
            pub fn from_parameters(kind: &str, parameters: Map<String, Value>) -> Result<Self, InvalidPolicy> {
                match kind {
                    $($kind => Ok(Self::$variant(read_parameters(kind, parameters)?)),)*
                    other => Err(InvalidPolicy::new("kind", format!(
                        "there is no policy `{other}`; choose one of: {}", Self::kind_list()))),
                }
            }

            /// The kind's name.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind,)* }
            }

            /// What a user reads about the kind.
            pub fn description(&self) -> &'static Description {
                match self { $(Self::$variant(_) => &<$parameters as PolicyParameters>::DESCRIPTION,)* }
            }

            /// Check ranges, for an experiment with `rankers` rankers.
            pub fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
                match self { $(Self::$variant(parameters) => parameters.validate(rankers),)* }
            }

            /// The policy before its first observation. Call [`PolicySpec::validate`] first.
            pub fn start(&self, setup: Setup) -> Box<dyn Policy> {
                match self { $(Self::$variant(parameters) => parameters.start(setup),)* }
            }

            /// The policy from a saved state; `None` when this version does not read that layout.
            pub fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
                match self { $(Self::$variant(parameters) => parameters.restore(setup, format, state),)* }
            }
        }
    };
}

policies! {
    /// Uniform pairs: the yardstick.
    Uniform(super::uniform::Uniform) = "uniform",
    /// Double Thompson sampling.
    DoubleThompson(super::double_thompson::DoubleThompson) = "d-ts",
    /// Double Thompson sampling, ties by least regret.
    DoubleThompsonPlus(super::double_thompson::DoubleThompsonPlus) = "d-ts-plus",
    /// Copeland confidence bound.
    Ccb(super::ccb::Ccb) = "ccb",
    /// Relative upper confidence bound.
    Rucb(super::rucb::Rucb) = "rucb",
    /// Relative confidence sampling.
    Rcs(super::rcs::Rcs) = "rcs",
    /// Relative minimum empirical divergence.
    Rmed1(super::rmed::Rmed1) = "rmed1",
    /// RMED with the cheapest opponents.
    Rmed2(super::rmed::Rmed2) = "rmed2",
    /// RMED2 for a known horizon.
    Rmed2Fh(super::rmed::Rmed2Fh) = "rmed2-fh",
    /// Evidence for a Copeland winner by linear programs.
    CwRmed(super::cw_rmed::CwRmed) = "cw-rmed",
    /// Evidence for a Copeland winner in closed form.
    EcwRmed(super::cw_rmed::EcwRmed) = "ecw-rmed",
    /// RUCB in batches of rankers.
    MergeRucb(super::merge::MergeRucb) = "merge-rucb",
    /// Thompson sampling in batches of rankers.
    MergeDts(super::merge::MergeDts) = "merge-dts",
    /// Rounds that identify a Copeland winner, for many rankers.
    Scb(super::scb::Scb) = "scb",
    /// Two bandits that play against each other.
    Sparring(super::sparring::Sparring) = "sparring",
    /// A tournament in which the winner stays.
    WinnerStays(super::winner_stays::WinnerStays) = "winner-stays",
    /// Thompson sampling with one win count a ranker.
    SelfSparring(super::self_sparring::SelfSparring) = "self-sparring",
    /// Removes who loses to the mean of those left.
    BeatTheMean(super::btm::BeatTheMean) = "btm",
    /// A candidate meets all others in turn.
    InterleavedFilter(super::interleaved_filter::InterleavedFilter) = "interleaved-filter",
    /// One bandit for each ranker.
    MultiSbm(super::multi_sbm::MultiSbm) = "multi-sbm",
    /// A bandit that plays against what it played before.
    Doubler(super::doubler::Doubler) = "doubler",
    /// Two bandits that assume nothing.
    Vdb(super::vdb::Vdb) = "vdb",
    /// PCOMP: all pairs, in batches.
    Pcomp(super::comp::pcomp::Pcomp) = "pcomp",
    /// SCOMP: a seed set against all, in batches.
    Scomp(super::comp::scomp::Scomp) = "scomp",
    /// SCOMP2: the best of a seed set against all, in batches.
    Scomp2(super::comp::scomp2::Scomp2) = "scomp2",
    /// SAVAGE: drops pairs that cannot change the winner.
    Savage(super::explore::savage::Savage) = "savage",
    /// PBR: races pairs until the best are known.
    Pbr(super::explore::pbr::Pbr) = "pbr",
    /// RankEl: asks until the ranking by Copeland score is known.
    RankEl(super::explore::rank_el::RankEl) = "rank-el",
}

impl PolicySpec {
    /// Every kind's name, for messages.
    pub fn kind_list() -> String {
        Self::KINDS.iter().map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ")
    }

    /// A spec from its JSON object.
    pub fn from_json(mut object: Map<String, Value>) -> Result<Self, InvalidPolicy> {
        match object.remove("kind") {
            Some(Value::String(kind)) => Self::from_parameters(&kind, object),
            Some(other) => Err(InvalidPolicy::new("kind", format!("`kind` is {other}; it must be a string"))),
            None => Err(InvalidPolicy::new(
                "kind",
                format!("`kind` is missing; choose one of: {}", Self::kind_list()),
            )),
        }
    }

    /// A spec as it is written on a command line: `KIND` or `KIND:name=value,name=value`.
    pub fn from_text(text: &str) -> Result<Self, InvalidPolicy> {
        Self::from_text_with(text, &[])
    }

    /// [`PolicySpec::from_text`], with values for parameters that the text leaves out. Those that the kind does not have
    /// are passed over: `horizon` means nothing to a policy without one.
    pub fn from_text_with(text: &str, fallbacks: &[(&str, Value)]) -> Result<Self, InvalidPolicy> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut parameters = Map::new();
        for part in rest.split(',').filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                InvalidPolicy::new("", format!("`{part}` in `{text}` is not of the form name=value"))
            })?;
            let value = value.trim();
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.into()));
            if parameters.insert(name.trim().into(), value).is_some() {
                return Err(InvalidPolicy::new(name, format!("`{name}` is given twice in `{text}`")));
            }
        }
        let kind = kind.trim();
        if let Some((_, description)) = Self::KINDS.iter().find(|(known, _)| *known == kind) {
            for (name, value) in fallbacks {
                if description.parameters.iter().any(|parameter| parameter.name == *name)
                    && !parameters.contains_key(*name)
                {
                    parameters.insert((*name).into(), value.clone());
                }
            }
        }
        Self::from_parameters(kind, parameters)
    }
}

impl<'de> Deserialize<'de> for PolicySpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(Map::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn read_parameters<P: PolicyParameters>(
    kind: &str,
    parameters: Map<String, Value>,
) -> Result<P, InvalidPolicy> {
    let known = P::DESCRIPTION.parameters;
    if let Some(name) = parameters.keys().find(|name| known.iter().all(|p| p.name != **name)) {
        let takes = match known {
            [] => "it takes none".to_string(),
            _ => format!("it takes: {}", known.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")),
        };
        return Err(InvalidPolicy::new(name, format!("policy `{kind}` has no parameter `{name}`; {takes}")));
    }
    if let Some(missing) = known.iter().find(|p| p.default.is_none() && !parameters.contains_key(p.name)) {
        return Err(InvalidPolicy::new(
            missing.name,
            format!("policy `{kind}` needs `{}`: {}", missing.name, missing.meaning),
        ));
    }
    serde_path_to_error::deserialize(Value::Object(parameters)).map_err(|error| {
        let name = error.path().to_string();
        InvalidPolicy::new(&name, format!("`{name}` of policy `{kind}`: {}", error.inner()))
    })
}
