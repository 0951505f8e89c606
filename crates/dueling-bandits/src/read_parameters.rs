//! The parameters of one kind of policy from JSON.

use serde_json::{Map, Value};

use crate::parameters::{InvalidPolicy, PolicyParameters};

/// The error for a kind that is not in the registry.
pub(crate) fn unknown_kind(kind: &str, known: &str) -> InvalidPolicy {
    InvalidPolicy::new("kind", format!("there is no policy `{kind}`; choose one of: {known}"))
}

/// The parameters of `P`, the parameters of `kind`, from their JSON object.
pub(crate) fn read_parameters<P: PolicyParameters>(
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
