//! Which policy, with which parameters: from JSON, to a running policy, and back from a saved
//! state.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::Policy;
use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};

macro_rules! policies {
    // `tt` and not `literal`: the name must reach the derives as the bare token, or utoipa does not
    // see it.
    ($($(#[$doc:meta])* $variant:ident($parameters:ty) = $kind:tt,)*) => {
        /// A kind of policy with its parameters; in JSON `{"kind": "…", …parameters}`.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "kind")]
        pub enum PolicySpec {
            $($(#[$doc])* #[serde(rename = $kind)] $variant($parameters),)*
        }

        impl PolicySpec {
            /// Every kind with its description, in the order of the documentation.
            pub const KINDS: &'static [(&'static str, &'static Description)] =
                &[$(($kind, &<$parameters as PolicyParameters>::DESCRIPTION),)*];

            /// A spec from its kind and a map of its parameters; ranges are checked by
            /// [`PolicySpec::validate`].
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
    Uniform(crate::policies::uniform::Uniform) = "uniform",
    /// Double Thompson sampling.
    DoubleThompson(crate::policies::double_thompson::DoubleThompson) = "d-ts",
    /// Double Thompson sampling, ties by least regret.
    DoubleThompsonPlus(crate::policies::double_thompson::DoubleThompsonPlus) = "d-ts-plus",
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
    /// Evidence for a Copeland winner by linear programs.
    CwRmed(crate::policies::cw_rmed::CwRmed) = "cw-rmed",
    /// Evidence for a Copeland winner in closed form.
    EcwRmed(crate::policies::cw_rmed::EcwRmed) = "ecw-rmed",
    /// RUCB in batches of rankers.
    MergeRucb(crate::policies::merge::MergeRucb) = "merge-rucb",
    /// Thompson sampling in batches of rankers.
    MergeDts(crate::policies::merge::MergeDts) = "merge-dts",
    /// Rounds that identify a Copeland winner, for many rankers.
    Scb(crate::policies::scb::Scb) = "scb",
    /// Two bandits that play against each other.
    Sparring(crate::policies::sparring::Sparring) = "sparring",
    /// A tournament in which the winner stays.
    WinnerStays(crate::policies::winner_stays::WinnerStays) = "winner-stays",
    /// Thompson sampling with one win count a ranker.
    SelfSparring(crate::policies::self_sparring::SelfSparring) = "self-sparring",
    /// Removes who loses to the mean of those left.
    BeatTheMean(crate::policies::btm::BeatTheMean) = "btm",
    /// A candidate meets all others in turn.
    InterleavedFilter(crate::policies::interleaved_filter::InterleavedFilter) = "interleaved-filter",
    /// One bandit for each ranker.
    MultiSbm(crate::policies::multi_sbm::MultiSbm) = "multi-sbm",
    /// A bandit that plays against what it played before.
    Doubler(crate::policies::doubler::Doubler) = "doubler",
    /// Two bandits that assume nothing.
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
    /// RankEl: asks until the ranking by Copeland score is known.
    RankEl(crate::policies::explore::rank_el::RankEl) = "rank-el",
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
            Some(other) => {
                Err(InvalidPolicy::new("kind", format!("`kind` is {other}; it must be a string")))
            }
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

    /// [`PolicySpec::from_text`], with values for parameters that the text leaves out. Those that
    /// the kind does not have are passed over: `horizon` means nothing to a policy without one.
    pub fn from_text_with(text: &str, fallbacks: &[(&str, Value)]) -> Result<Self, InvalidPolicy> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut parameters = Map::new();
        for part in rest.split(',').filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                InvalidPolicy::new(
                    "",
                    format!("`{part}` in `{text}` is not of the form name=value"),
                )
            })?;
            let value = value.trim();
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.into()));
            if parameters.insert(name.trim().into(), value).is_some() {
                return Err(InvalidPolicy::new(
                    name,
                    format!("`{name}` is given twice in `{text}`"),
                ));
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
            _ => {
                format!("it takes: {}", known.iter().map(|p| p.name).collect::<Vec<_>>().join(", "))
            }
        };
        return Err(InvalidPolicy::new(
            name,
            format!("policy `{kind}` has no parameter `{name}`; {takes}"),
        ));
    }
    if let Some(missing) =
        known.iter().find(|p| p.default.is_none() && !parameters.contains_key(p.name))
    {
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
