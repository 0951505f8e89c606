//! Policies and interleaving methods in request bodies.

use dueling_bandits::PolicySpec;
use dueling_bandits::parameters::InvalidPolicy;
use interleaving::InvalidSpec;
use serde_json::{Map, Value};

use super::problem::{ApiResult, Problem, ProblemKind};

/// The policy if the body has none.
const DEFAULT_POLICY: &str = "d-ts-plus";

/// The member `policy` of a body, or the default policy.
pub(crate) fn policy_or_default(body: Option<Map<String, Value>>) -> ApiResult<PolicySpec> {
    match body {
        Some(body) => policy(body),
        None => PolicySpec::from_parameters(DEFAULT_POLICY, Map::new()).map_err(invalid_policy),
    }
}

/// The member `policy` of a body.
pub(crate) fn policy(body: Map<String, Value>) -> ApiResult<PolicySpec> {
    PolicySpec::from_json(body).map_err(invalid_policy)
}

pub(crate) fn invalid_policy(error: InvalidPolicy) -> Problem {
    invalid("policy", &error.parameter, error.detail)
}

/// The member `interleaving` of a body.
pub(crate) fn interleaving(body: Map<String, Value>) -> ApiResult<interleaving::Spec> {
    interleaving::Spec::from_json(body)
        .map_err(|error: InvalidSpec| invalid("interleaving", &error.parameter, error.detail))
}

fn invalid(member: &str, parameter: &str, detail: String) -> Problem {
    let pointer = match parameter {
        "" => format!("/{member}"),
        parameter => format!("/{member}/{}", parameter.replace('~', "~0").replace('/', "~1")),
    };
    Problem::new(ProblemKind::InvalidRequest, format!("Invalid {member}: {detail}."))
        .field(pointer, detail)
}
