//! What if: `/v1/experiments/{name}/replay`, and `/v1/next-duel` without an experiment.

use axum::Json;
use axum::extract::State;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::experiments::{DEFAULT_POLICY, invalid_policy};
use super::problem::ProblemDocument;
use super::schemas;
use super::{ApiResult, AppState, JsonBody, PathOf, Problem, ProblemKind};
use crate::entropy;
use crate::service::reports::replay::Replay;
use dueling_bandits::CountsError;
use dueling_bandits::counts::{STEPS_MAX, WINS_MAX};
use dueling_bandits::{InFlight, MAX_RANKERS, MIN_RANKERS, PolicyRng, PolicySpec};

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(replay)).routes(routes!(choose_from_counts))
}

/// Under which policy.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReplayBody {
    /// The policy to fold the log under.
    #[schema(value_type = schemas::PolicySchema)]
    policy: Map<String, Value>,
}

/// Fold the log under another policy
///
/// What its state would be, what it would choose next, and what it would have cost: an estimate
/// with its variance, or the reason why the log does not say. Nothing is changed. Under the
/// experiment's own policy the state is the one that is served.
#[utoipa::path(post, path = "/experiments/{name}/replay", tag = "results", security(("key" = ["read"])),
    request_body = ReplayBody,
    params(("name" = String, Path, description = "The experiment's name.")),
    responses(
        (status = 200, body = Replay, description = "The log under that policy."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "`cannot-replay`: the log was pruned, or is too long for a request."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-request`."),
    ))]
async fn replay(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    JsonBody(body): JsonBody<ReplayBody>,
) -> ApiResult<Json<Replay>> {
    let loaded = state.service.experiment(&name).await?;
    let policy = PolicySpec::from_json(body.policy).map_err(invalid_policy)?;
    policy.validate(loaded.spec.rankers.len()).map_err(invalid_policy)?;
    Ok(Json(state.service.replay(&loaded, policy).await?))
}

/// Counts, and the policy that is to choose from them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CountsBody {
    /// `wins[i][j]`: duels that ranker `i` won against ranker `j`; 2 to 1024 rows of as many
    /// numbers below 2^30, zeros on the diagonal.
    #[schema(value_type = Vec<Vec<u32>>, min_items = 2, max_items = 1024, example = json!([[0, 7, 4], [3, 0, 5], [2, 1, 0]]))]
    wins: Vec<Vec<u32>>,
    /// Which policy chooses: `uniform`, `d-ts`, `d-ts-plus` (unless said otherwise) or
    /// `self-sparring`, whose state is these counts.
    #[schema(value_type = Option<schemas::PolicySchema>, nullable = false)]
    policy: Option<Map<String, Value>>,
    /// Pages shown so far, self-duels and pages without a winner among them; as many as `wins` has
    /// duels unless given.
    #[schema(nullable = false)]
    steps: Option<u64>,
    /// The same seed and counts give the same pair; drawn unless given.
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
    /// Whether both are one ranker: show it alone, nothing is to be learned.
    self_duel: bool,
    /// Index of the ranker that the policy would recommend if it had to end now.
    champion: usize,
    /// Seed that it was drawn from.
    seed: u64,
}

/// Choose a pair from counts that the caller keeps
///
/// Counts in, pair out, nothing stored: no experiment is needed, and there is no feedback to post.
#[utoipa::path(post, path = "/next-duel", tag = "duels", security(("key" = ["decide"])), request_body = CountsBody,
    responses(
        (status = 200, body = ChosenPair, description = "The pair."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-request`: also for a policy that decides by more than these counts."),
    ))]
async fn choose_from_counts(JsonBody(body): JsonBody<CountsBody>) -> ApiResult<Json<ChosenPair>> {
    let rankers = body.wins.len();
    if !(MIN_RANKERS..=MAX_RANKERS).contains(&rankers) {
        return Err(invalid(
            "/wins",
            format!("`wins` has {rankers} rows; it must have {MIN_RANKERS} to {MAX_RANKERS}"),
        ));
    }
    for (i, row) in body.wins.iter().enumerate() {
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
    if let Some(steps) = body.steps.filter(|steps| *steps > STEPS_MAX) {
        return Err(invalid(
            "/steps",
            format!("`steps` is {steps}; it must be at most {STEPS_MAX}"),
        ));
    }
    let policy = match body.policy {
        Some(object) => PolicySpec::from_json(object),
        None => PolicySpec::from_parameters(DEFAULT_POLICY, Map::new()),
    }
    .map_err(invalid_policy)?;
    policy.validate(rankers).map_err(invalid_policy)?;
    let seed = match body.seed {
        Some(seed) => seed,
        None => entropy::number().map_err(Problem::internal)?,
    };
    let choose = move || {
        let policy = policy.from_counts(&body.wins, body.steps)?;
        let rng = &mut PolicyRng::seed_from_u64(seed);
        let duel = policy.select(&InFlight::new(), rng).duel;
        let (left, right) = if rng.random::<bool>() {
            (duel.first, duel.second)
        } else {
            (duel.second, duel.first)
        };
        Ok(ChosenPair { left, right, self_duel: duel.is_self(), champion: policy.champion(), seed })
    };
    // with a thousand rankers it takes its time
    tokio::task::spawn_blocking(choose)
        .await
        .map_err(Problem::internal)?
        .map(Json)
        .map_err(invalid_counts)
}

fn invalid(pointer: &str, detail: String) -> Problem {
    Problem::new(ProblemKind::InvalidRequest, format!("{detail}.")).field(pointer, detail)
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
