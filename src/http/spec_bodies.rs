//! Policies and interleaving methods in request bodies.

use dueling_bandits::PolicySpec;
use dueling_bandits::parameters::InvalidPolicy;
use interleaving::InvalidSpec;
use serde_json::{Map, Value};

use super::problem::{ApiResult, Problem};
use rankduel_engine::experiment_spec::{CONFIDENCE, ConcludeAt, Errors, MARGIN};

/// The policy if the body has none.
const DEFAULT_POLICY: &str = "d-ts-verdict";
/// Parameters that follow the verdict of the experiment where the body does not give them.
const VERDICT_PARAMETERS: [&str; 2] = ["confidence", "margin"];

/// The member `policy` of a body, or the default policy, for an experiment with this `conclude_at`
/// and `errors`. A policy that works towards a verdict works towards that of the experiment, unless
/// its own parameters say otherwise. That is refused where the experiment concludes by itself: the
/// policy could stop at an easier verdict, and the experiment would wait for its own forever.
pub(crate) fn policy_of_experiment(
    body: Option<Map<String, Value>>,
    conclude_at: Option<ConcludeAt>,
    errors: Option<Errors>,
) -> ApiResult<PolicySpec> {
    let mut body = body.unwrap_or_else(default_policy);
    let target = Errors::targets(errors, conclude_at).verdict;
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default();
    let description = PolicySpec::KINDS.iter().find(|(name, _)| *name == kind);
    let parameters = description.map_or(&[][..], |(_, description)| description.parameters);
    // an invalid target is reported where the caller gave it
    let is_valid = CONFIDENCE.contains(&target.confidence) && MARGIN.contains(&target.margin);
    if is_valid
        && VERDICT_PARAMETERS.iter().all(|name| parameters.iter().any(|own| own.name == *name))
    {
        let values = [target.confidence, target.margin];
        for (name, value) in VERDICT_PARAMETERS.into_iter().zip(values) {
            let own = body.entry(name).or_insert_with(|| value.into());
            let differs = own.as_f64().is_some_and(|own| own != value);
            if differs && conclude_at.is_some() {
                let detail = format!(
                    "`{name}` is {own}, but the experiment concludes at {value}: leave it out, so \
                     that it follows `conclude_at`"
                );
                return Err(invalid("policy", name, detail));
            }
        }
    }
    policy(body)
}

fn default_policy() -> Map<String, Value> {
    Map::from_iter([("kind".to_owned(), DEFAULT_POLICY.into())])
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
    Problem::invalid_at(member, pointer, detail)
}
