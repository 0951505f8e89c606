//! Policy specs from JSON and from the command line.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::PolicySpec;
use crate::parameters::InvalidPolicy;

impl PolicySpec {
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
    /// let spec = PolicySpec::from_text("rucb:alpha=0.6")?;
    /// assert_eq!(spec.kind(), "rucb");
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
