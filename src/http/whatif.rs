//! `/v1/experiments/{name}/replay`, and `/v1/next-duel` without an experiment.

use axum::Json;
use axum::extract::State;
use dueling_bandits::counts::{STEPS_MAX, WINS_MAX};
use dueling_bandits::{CountsError, InFlight, MAX_RANKERS, MIN_RANKERS, PolicyRng};
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::extract::{JsonBody, JsonText, PathOf, json};
use super::operation::Access;
use super::problem::ProblemKind::{CannotReplay, ExperimentNotFound};
use super::problem::{ApiResult, Problem};
use super::routes::Routes;
use super::schemas;
use super::spec_bodies::{self, invalid_policy};
use super::state::AppState;
use crate::access::Scope;
use crate::entropy;
use crate::service::reports::replay::Replay;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .operation(routes!(replay), Access::Scope(Scope::Read), &[ExperimentNotFound, CannotReplay])
        .operation(routes!(choose_from_counts), Access::Scope(Scope::Decide), &[])
}

/// The policy for a replay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReplayBody {
    /// The policy under which to fold the log.
    #[schema(value_type = schemas::PolicySchema)]
    policy: Map<String, Value>,
}

/// Fold the log under another policy
///
/// Returns the state of that policy, the duels it would choose next, and the cost it would have
/// had: an estimate with its variance, or the reason why the log does not allow one. Changes
/// nothing. For the experiment's own policy, the state is the current one.
#[utoipa::path(post, path = "/v1/experiments/{name}/replay", tag = "results",
    request_body = ReplayBody,
    params(("name" = String, Path, description = "Name of the experiment.")),
    responses(
        (status = 200, body = Replay, description = "The log under this policy."),
    ))]
async fn replay(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    JsonBody(body): JsonBody<ReplayBody>,
) -> ApiResult<Json<Replay>> {
    let loaded = state.service.experiment(&name).await?;
    let policy = spec_bodies::policy(body.policy)?;
    policy.validate(loaded.spec.rankers.len()).map_err(invalid_policy)?;
    Ok(Json(state.service.replay(&loaded, policy).await?))
}

/// Counts, and the policy that chooses from them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CountsBody {
    /// `wins[i][j]`: number of duels that ranker `i` won against ranker `j`. A square matrix of 2
    /// to 1024 rows, with numbers below 2^30 and a diagonal of zeros.
    #[schema(value_type = Vec<Vec<u32>>, min_items = 2, max_items = 1024, example = json!([[0, 7, 4], [3, 0, 5], [2, 1, 0]]))]
    wins: Vec<Vec<u32>>,
    /// The policy, `d-ts-verdict` by default. It must be one whose state is counts; the error for
    /// any other lists them.
    #[schema(value_type = Option<schemas::PolicySchema>, nullable = false)]
    policy: Option<Map<String, Value>>,
    /// Number of pages shown so far, including self-duels and pages without a winner; the number of
    /// duels in `wins` by default.
    #[schema(nullable = false)]
    steps: Option<u64>,
    /// The same seed and counts give the same pair; random by default.
    #[schema(nullable = false)]
    seed: Option<u64>,
}

/// The pair to show.
#[derive(Debug, Serialize, ToSchema)]
struct ChosenPair {
    /// Index of the ranker to show left (first).
    left: usize,
    /// Index of the ranker to show right (second).
    right: usize,
    /// Whether both are the same ranker. Show its ranking alone; feedback teaches the policy
    /// nothing.
    self_duel: bool,
    /// Index of the ranker that the policy would recommend if it ended now.
    champion: usize,
    /// The seed of the choice.
    seed: u64,
}

/// Choose a pair from the caller's counts
///
/// Stateless: it needs no experiment, stores nothing and takes no feedback.
#[utoipa::path(post, path = "/v1/next-duel", tag = "duels", request_body = CountsBody,
    responses(
        (status = 200, body = ChosenPair, description = "The pair."),
    ))]
async fn choose_from_counts(
    State(state): State<AppState>,
    text: JsonText,
) -> ApiResult<Json<ChosenPair>> {
    // With a thousand rankers, every part of it takes long.
    state.service.reports.run(move || choose(json(text.bytes())?)).await?.map(Json)
}

/// Check the counts, and choose.
fn choose(CountsBody { wins, policy, steps, seed }: CountsBody) -> ApiResult<ChosenPair> {
    check_wins(&wins)?;
    if let Some(steps) = steps.filter(|steps| *steps > STEPS_MAX) {
        return Err(invalid(
            "/steps",
            format!("`steps` is {steps}; it must be at most {STEPS_MAX}"),
        ));
    }
    let policy = spec_bodies::policy_or_default(policy)?;
    policy.validate(wins.len()).map_err(invalid_policy)?;
    let seed = match seed {
        Some(seed) => seed,
        None => entropy::number().map_err(Problem::internal)?,
    };
    let policy = policy.from_counts(&wins, steps).map_err(invalid_counts)?;
    let rng = &mut PolicyRng::seed_from_u64(seed);
    let duel = policy.select(&InFlight::new(), rng).duel;
    let (left, right) =
        if rng.random::<bool>() { (duel.first, duel.second) } else { (duel.second, duel.first) };
    Ok(ChosenPair { left, right, self_duel: duel.is_self(), champion: policy.champion(), seed })
}

/// Refuse what is no matrix of wins.
fn check_wins(wins: &[Vec<u32>]) -> ApiResult<()> {
    let rankers = wins.len();
    if !(MIN_RANKERS..=MAX_RANKERS).contains(&rankers) {
        return Err(invalid(
            "/wins",
            format!("`wins` has {rankers} rows; it must have {MIN_RANKERS} to {MAX_RANKERS}"),
        ));
    }
    for (i, row) in wins.iter().enumerate() {
        if row.len() != rankers {
            let detail = format!(
                "row {i} of `wins` has {} numbers, and there are {rankers} rows",
                row.len()
            );
            return Err(invalid(&format!("/wins/{i}"), detail));
        }
        if row[i] != 0 {
            let detail = format!(
                "`wins` has {} duels that ranker {i} won against itself; it must be 0",
                row[i]
            );
            return Err(invalid(&format!("/wins/{i}/{i}"), detail));
        }
        if let Some(j) = row.iter().position(|&count| count >= WINS_MAX) {
            let detail = format!("{} wins are too many; they must be below {WINS_MAX}", row[j]);
            return Err(invalid(&format!("/wins/{i}/{j}"), detail));
        }
    }
    Ok(())
}

fn invalid(pointer: &str, detail: String) -> Problem {
    Problem::invalid(&detail).field(pointer, detail)
}

fn invalid_counts(error: CountsError) -> Problem {
    let detail = error.to_string();
    match error {
        CountsError::NeedsHistory(_) => {
            invalid("/policy/kind", format!("{detail}; for this one, create an experiment"))
        }
        CountsError::FewSteps { .. } => invalid("/steps", detail),
        CountsError::TooMany => invalid("/wins", detail),
    }
}
