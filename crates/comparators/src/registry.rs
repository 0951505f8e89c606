//! The list of comparators. Everything that lists their kinds derives from it.

use dueling_bandits::{Bandit, InvalidPolicy, PolicySpec, Setup};
use serde_json::{Map, Value};

use crate::parameters::Parameters;

macro_rules! comparators {
    ($($variant:ident($parameters:ty) = $kind:tt,)*) => {
        /// A kind of comparator with its parameters.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Comparator {
            $($variant($parameters),)*
        }

        impl Comparator {
            /// Every kind, in the order of the documentation.
            pub const KINDS: &'static [&'static str] = &[$($kind,)*];

            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind,)* }
            }

            /// Check the ranges of the parameters for `rankers` rankers.
            pub fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
                match self { $(Self::$variant(parameters) => parameters.validate(rankers),)* }
            }

            /// The policy before its first observation. Call [`Comparator::validate`] first.
            pub fn start(&self, setup: Setup) -> Box<dyn Bandit> {
                match self { $(Self::$variant(parameters) => parameters.start(setup),)* }
            }

            /// The parameters of a kind with their defaults; a horizon of 0 has none. `None` if
            /// there is no such kind.
            pub fn defaults(kind: &str) -> Option<Map<String, Value>> {
                match kind {
                    $($kind => Some(defaults::<$parameters>()),)*
                    _ => None,
                }
            }

            fn read(
                kind: &str,
                given: Map<String, Value>,
                fallbacks: &[(&str, Value)],
            ) -> Result<Self, InvalidPolicy> {
                match kind {
                    $($kind => Ok(Self::$variant(read(kind, given, fallbacks)?)),)*
                    other => {
                        let kinds = Self::KINDS.join(", ");
                        let detail = format!("there is no comparator `{other}`; choose one of: {kinds}");
                        Err(InvalidPolicy::new("kind", detail))
                    }
                }
            }
        }
    };
}

comparators! {
    Rucb(crate::rucb::Rucb) = "rucb",
    Rcs(crate::rcs::Rcs) = "rcs",
    Rmed1(crate::rmed::Rmed1) = "rmed1",
    EcwRmed(crate::ecw_rmed::EcwRmed) = "ecw-rmed",
    MergeRucb(crate::merge::MergeRucb) = "merge-rucb",
    Sparring(crate::sparring::Sparring) = "sparring",
    SelfSparring(crate::self_sparring::SelfSparring) = "self-sparring",
    BeatTheMean(crate::btm::BeatTheMean) = "btm",
    InterleavedFilter(crate::interleaved_filter::InterleavedFilter) = "interleaved-filter",
    Pbr(crate::pbr::Pbr) = "pbr",
    RankEl(crate::rank_el::RankEl) = "rank-el",
}

impl Comparator {
    /// A comparator from `KIND` or `KIND:name=value,name=value`, with values for parameters that
    /// the text leaves out. Fallbacks for parameters that the kind does not have are ignored.
    pub fn from_text(text: &str, fallbacks: &[(&str, Value)]) -> Result<Self, InvalidPolicy> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        Self::read(kind.trim(), PolicySpec::parameters_from_text(rest)?, fallbacks)
    }
}

fn read<P: Parameters>(
    kind: &str,
    given: Map<String, Value>,
    fallbacks: &[(&str, Value)],
) -> Result<P, InvalidPolicy> {
    let wrong = |name: &str, error: &dyn std::fmt::Display| {
        InvalidPolicy::new(name, format!("`{name}` of policy `{kind}`: {error}"))
    };
    let mut parameters = defaults::<P>();
    for (name, value) in fallbacks {
        if let Some(parameter) = parameters.get_mut(*name) {
            *parameter = value.clone();
        }
    }
    for (name, value) in given {
        match parameters.get_mut(&name) {
            Some(parameter) => *parameter = value,
            None => {
                let known = parameters.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                return Err(wrong(&name, &format!("there is no such parameter, only: {known}")));
            }
        }
        // after each value, so that an error names its parameter
        if let Err(error) = P::deserialize(Value::Object(parameters.clone())) {
            return Err(wrong(&name, &error));
        }
    }
    serde_json::from_value(Value::Object(parameters))
        .map_err(|error| InvalidPolicy::new("", format!("policy `{kind}`: {error}")))
}

fn defaults<P: Parameters>() -> Map<String, Value> {
    match serde_json::to_value(P::default()) {
        Ok(Value::Object(parameters)) => parameters,
        _ => Map::new(),
    }
}
