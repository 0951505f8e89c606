//! The list of served policies, and reading them by name. Everything that lists kinds derives from
//! it.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::Policy;
use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup, read_parameters};

macro_rules! policies {
    ($($(#[$doc:meta])* $variant:ident($parameters:ty) = $kind:tt,)*) => {
        /// A kind of policy with its parameters; in JSON, `{"kind": "…", …parameters}`.
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
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[serde(tag = "kind")]
        pub enum PolicySpec {
            $($(#[$doc])* #[serde(rename = $kind)] $variant($parameters),)*
        }

        impl PolicySpec {
            /// Every kind with its description, in the order of the documentation.
            pub const KINDS: &'static [(&'static str, &'static Description)] =
                &[$(($kind, &<$parameters as PolicyParameters>::DESCRIPTION),)*];

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

            /// Version of the layout of saved states. One in another layout cannot be restored.
            pub fn format(&self) -> u32 {
                match self { $(Self::$variant(_) => <$parameters as PolicyParameters>::FORMAT,)* }
            }

            /// The policy from the bytes that [`Policy::save`] wrote in this layout; `None` if they
            /// are no state of it.
            pub fn restore(&self, setup: Setup, state: &[u8]) -> Option<Box<dyn Policy>> {
                match self { $(Self::$variant(parameters) => parameters.restore(setup, state),)* }
            }

            /// A spec from its kind and a JSON object of its parameters. Call
            /// [`PolicySpec::validate`] to check their ranges.
            pub fn from_parameters(
                kind: &str,
                parameters: Map<String, Value>,
            ) -> Result<Self, InvalidPolicy> {
                match kind {
                    $($kind => Ok(Self::$variant(read_parameters(kind, parameters)?)),)*
                    other => Err(unknown_kind(other)),
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
    /// D-TS-Verdict: double Thompson sampling that proves its winner.
    DoubleThompsonVerdict(crate::policies::verdict::DoubleThompsonVerdict) = "d-ts-verdict",
    /// Copeland confidence bound.
    Ccb(crate::policies::ccb::Ccb) = "ccb",
    /// Rounds that identify a Copeland winner, for many rankers.
    Scb(crate::policies::scb::Scb) = "scb",
    /// PCOMP: all pairs, in batches.
    Pcomp(crate::policies::comp::pcomp::Pcomp) = "pcomp",
    /// SCOMP: a seed set against all, in batches.
    Scomp(crate::policies::comp::scomp::Scomp) = "scomp",
    /// SCOMP2: the best of a seed set against all, in batches.
    Scomp2(crate::policies::comp::scomp2::Scomp2) = "scomp2",
    /// SAVAGE: drops pairs that cannot change the winner.
    Savage(crate::policies::explore::savage::Savage) = "savage",
}

fn unknown_kind(kind: &str) -> InvalidPolicy {
    let known = PolicySpec::kind_list();
    InvalidPolicy::new("kind", format!("there is no policy `{kind}`; choose one of: {known}"))
}

impl PolicySpec {
    /// The names of all kinds, for messages.
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

    /// A spec from its form on a command line: `KIND` or `KIND:name=value,name=value`.
    ///
    /// ```
    /// use dueling_bandits::PolicySpec;
    ///
    /// let spec = PolicySpec::from_text("ccb:alpha=0.6")?;
    /// assert_eq!(spec.kind(), "ccb");
    /// # Ok::<(), dueling_bandits::InvalidPolicy>(())
    /// ```
    pub fn from_text(text: &str) -> Result<Self, InvalidPolicy> {
        Self::from_text_with(text, &[])
    }

    /// The parameters of a text `name=value,name=value`. A value is JSON, or else a string.
    pub fn parameters_from_text(text: &str) -> Result<Map<String, Value>, InvalidPolicy> {
        let mut parameters = Map::new();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
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
        Ok(parameters)
    }

    /// [`PolicySpec::from_text`], with values for parameters that the text leaves out. Parameters
    /// that the kind does not have are ignored: `horizon`, for a policy without one.
    pub fn from_text_with(text: &str, fallbacks: &[(&str, Value)]) -> Result<Self, InvalidPolicy> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut parameters = Self::parameters_from_text(rest)?;
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
