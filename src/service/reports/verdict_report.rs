//! The verdict as the API reports it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::answer::Answer;
use crate::service::reports::claims::ControlView;
use crate::service::reports::drift::DriftClaim;
use crate::service::reports::duels_to_go::DuelsToGo;
use crate::service::reports::orders::OrdersView;
use crate::service::reports::segment_claims::SegmentsView;
use crate::service::reports::single_flight::Parameters;
use crate::service::reports::verdict_basis::{VerdictBasis, Waiting};
use crate::service::reports::verdict_pairs::{DecidingPair, Effect};
use dueling_bandits::evidence::Target;
use rankduel_engine::experiment_spec::ConcludeAt;
use rankduel_engine::loaded::LoadedExperiment;

/// All that a verdict is a function of, besides the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VerdictParameters {
    pub target: Target,
    /// The version of the record.
    pub version: u64,
    /// That of the answer that holds.
    pub revision: u64,
}

impl VerdictParameters {
    /// Those of now, at a target from [`requested_target`](super::verdict::requested_target), with the answer that holds.
    pub fn of(loaded: &LoadedExperiment, target: Target, answer: &Answer) -> Self {
        let version = loaded.with_record(|record| record.version);
        Self { target, version, revision: answer.revision() }
    }
}

impl Parameters for VerdictParameters {
    fn asks_as(&self, other: &Self) -> bool {
        self.target == other.target
    }
}

/// Which ranker is best, and with what confidence.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Verdict {
    #[serde(skip)]
    pub of: VerdictParameters,
    pub experiment: String,
    pub position: u64,
    /// Answered duels, without self-duels.
    pub duels: u64,
    /// Of all experiments that are run like this one, at most a share of 1 - `confidence` ever has
    /// wrong `winners`, however often and whenever you read them.
    #[schema(example = 0.95)]
    pub confidence: f64,
    /// Differences up to this size do not matter: pairs within the margin of 1/2 may count for
    /// either ranker.
    #[schema(example = 0.01)]
    pub margin: f64,
    pub state: VerdictState,
    /// The answer that holds, at the confidence and margin of the experiment.
    pub answer: Answer,
    /// The headline of `answer`, and the claim with its error.
    #[schema(
        example = "Ship `neural`. `neural` is the best ranker: no other ranker beats more of the others than it does. A wrong verdict comes up in at most 5 % of experiments."
    )]
    pub sentence: String,
    /// The claim in `sentence`, without the error; empty while the verdict is open.
    #[serde(skip)]
    pub claim: String,
    /// The certified Copeland winners; empty while the verdict is open. At the confidence and
    /// margin of the experiment, a verdict is final until the rankers change.
    pub winners: Vec<String>,
    /// Whether the first winner is also certified to beat every other ranker. That is wrong in at
    /// most 1 - `confidence` of experiments too.
    pub condorcet: bool,
    /// Number of answers that counted when the verdict was given, since the rankers last changed;
    /// `null` while the verdict is open.
    pub decided_after_duels: Option<u64>,
    /// The leader, and the rivals against which it still lacks evidence; once decided, the winners.
    pub possible: Vec<String>,
    /// The ranker that is most probably a Copeland winner, or has won the verdict.
    pub leader: String,
    /// The evidence that the leader needs against every rival.
    #[schema(example = 22.2)]
    pub evidence_needed: f64,
    /// In the order of the experiment.
    pub rankers: Vec<RankerVerdict>,
    /// The pairs whose duels would complete the leader's proof soonest, at most 50, the one that
    /// lacks most duels first.
    pub deciding_pairs: Vec<DecidingPair>,
    pub deciding_pairs_total: usize,
    /// The smallest effect first.
    pub effects: Vec<Effect>,
    /// Estimated number of further pages until the verdict: 0 if it is decided, `null` if there is no
    /// estimate. A recent estimate may be returned again.
    pub duels_to_go: Option<DuelsToGo>,
    /// Why `duels_to_go` is `null`.
    pub duels_to_go_reason: Option<String>,
    /// The answers that wait to count; `null` if there are none. `duels_to_go` expects them to count.
    pub waiting: Option<Waiting>,
    /// The winner or leader against the control, with errors of its own: see `/claims`. `null`
    /// without a control.
    pub control: Option<ControlView>,
    /// `null` without declared segments.
    pub segments: Option<SegmentsView>,
    /// Omitted if clicks decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub orders: Option<OrdersView>,
    pub rests_on: VerdictBasis,
    /// The claim that preferences have changed; `null` if `drift` of the experiment is `off`.
    pub drift: Option<DriftClaim>,
    /// Number of posterior draws that the probabilities were estimated from.
    pub draws: usize,
    pub conclude_at: Option<ConcludeAt>,
    /// Whether the service will conclude the experiment at `conclude_at`. It does so once, so not
    /// again after somebody has reopened the experiment, and only if `rests_on` has no `doubts`.
    pub concludes_by_itself: bool,
    /// `null` if the experiment is not concluded.
    pub concluded: Option<Conclusion>,
}

/// How an experiment was concluded.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Conclusion {
    pub winner: Option<String>,
    /// Whether the service concluded the experiment by itself.
    pub automatic: bool,
    /// Why the service concluded it; `null` if a person did.
    pub reason: Option<String>,
}

/// How far an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictState {
    /// No pair has been compared yet.
    NothingKnown,
    /// Several rankers can still be the best.
    Open,
    /// A Copeland winner is certain at the stated confidence.
    Decided,
}

/// The verdict on one ranker.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RankerVerdict {
    pub id: String,
    /// Whether the ranker is retired or the second id of a canary: it cannot win.
    pub retired: bool,
    /// Whether the ranker is the leader, or a rival against which the leader still lacks evidence;
    /// once decided, whether it is a winner.
    pub possible: bool,
    /// Whether the ranker is certified as a Copeland winner.
    pub certain: bool,
    /// The evidence that the ranker is no better than the leader: how many times better this
    /// explains the results than the opposite. At the confidence and margin of the experiment, it
    /// is the largest value since the leader leads. The leader wins once the evidence is
    /// `evidence_needed` against every rival. `null` for the leader and for retired rankers.
    pub evidence_against: Option<f64>,
    /// The same evidence if the answers that wait counted now: a preview, and no claim. `null` if
    /// none wait, and once there is a verdict.
    pub evidence_with_waiting: Option<f64>,
    /// Posterior probability that the ranker is a Copeland winner, alone or tied with others.
    pub copeland_probability: f64,
    /// The same probability, shared by rankers that are tied as winners. The values of all rankers
    /// add up to 1.
    pub best_probability: f64,
    /// Posterior probability that the ranker beats every other.
    pub condorcet_probability: f64,
}
