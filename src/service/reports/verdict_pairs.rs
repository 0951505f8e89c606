//! The pairs behind a verdict: those that the proof still lacks, and once it is complete, by how
//! much the winner beats each rival.

use serde::Serialize;
use utoipa::ToSchema;

use dueling_bandits::Tally;
use dueling_bandits::evidence::effect::corrected_win_rate;
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::plan::{Claim, Plan};
use dueling_bandits::evidence::{Sequences, VerdictTracker};
use dueling_bandits::win_probability::probability_above_half;
use rankduel_engine::loaded::LoadedExperiment;

/// Most deciding pairs in a verdict.
const PAIRS_MAX: usize = 50;

/// A pair that completes the leader's proof.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DecidingPair {
    /// Id of the ranker that has to win the pair.
    pub left: String,
    /// Id of the other ranker.
    pub right: String,
    /// Duels that `left` won and that count for the verdict, with ties counted by the tie rule of
    /// the experiment.
    pub wins: f64,
    /// Duels that `left` lost and that count for the verdict.
    pub losses: f64,
    /// Share of these duels that `left` won; `null` before the first duel.
    pub win_rate: Option<f64>,
    /// Lower end of the interval for the probability that `left` wins. The intervals of all pairs
    /// of initial rankers hold together, at all times at once, at the confidence of the verdict.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
    /// Probability that `left` is the better ranker of the two, from these duels alone and a uniform
    /// prior.
    pub probability: f64,
    /// Estimated number of duels of this pair that are still missing, at its present win rate.
    pub duels_missing: u64,
}

/// How often the winner beats one other ranker.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Effect {
    /// Id of the other ranker.
    pub rival: String,
    /// Duels that the winner won and that count for the verdict, with ties counted by the tie rule
    /// of the experiment.
    pub wins: f64,
    /// Duels that the winner lost and that count for the verdict.
    pub losses: f64,
    /// Share of these duels that the winner won; `null` before the first duel. It is too high on
    /// average, because a verdict comes when the counts look best for the winner.
    pub win_rate: Option<f64>,
    /// That share, corrected for it; `null` before the first duel.
    #[schema(example = 0.58)]
    pub estimate: Option<f64>,
    /// Lower end of the interval for the probability that the winner wins. The intervals of all
    /// pairs of initial rankers hold together, at all times at once, at the confidence of the
    /// verdict.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
}

// The tallies have only the wins that count for the verdict: repeated answers of one unit would
// make the intervals too narrow.
/// The claims that the cheapest proof lacks.
pub(super) fn missing_claims(
    tracker: &VerdictTracker,
    tally: &Tally,
    active: &[usize],
) -> Vec<Claim> {
    Plan::make(tracker, tally, active).claims().to_vec()
}

/// The effect of `winner` on each other active ranker, the smallest first.
pub(super) fn effects(
    loaded: &LoadedExperiment,
    winner: usize,
    active: &[usize],
    tally: &Tally,
    sequences: &Sequences,
    evidence: &LeadEvidence,
) -> Vec<Effect> {
    let of = |&rival: &usize| {
        let (wins, losses) = (tally.wins(winner, rival), tally.wins(rival, winner));
        let (low, high) = sequences.of(winner, rival).interval(wins, losses);
        Effect {
            rival: loaded.spec.rankers[rival].id.clone(),
            wins,
            losses,
            win_rate: tally.mean(winner, rival),
            estimate: corrected_win_rate(evidence, wins, losses),
            low,
            high,
        }
    };
    let mut effects: Vec<_> = active.iter().filter(|&&rival| rival != winner).map(of).collect();
    let rate = |effect: &Effect| effect.estimate.unwrap_or(0.5);
    effects.sort_by(|one, other| rate(one).total_cmp(&rate(other)));
    effects
}

/// The claims that the proof still lacks, the one that lacks most duels first, and how many
/// there are.
pub(super) fn deciding_pairs(
    loaded: &LoadedExperiment,
    mut claims: Vec<Claim>,
    tally: &Tally,
    sequences: &Sequences,
) -> (Vec<DecidingPair>, usize) {
    claims.sort_by(|a, b| b.missing.total_cmp(&a.missing));
    let total = claims.len();
    let rows =
        claims.into_iter().take(PAIRS_MAX).map(|Claim { winner, loser, missing, .. }| {
            let (wins, losses) = (tally.wins(winner, loser), tally.wins(loser, winner));
            let (low, high) = sequences.of(winner, loser).interval(wins, losses);
            DecidingPair {
                left: loaded.spec.rankers[winner].id.clone(),
                right: loaded.spec.rankers[loser].id.clone(),
                wins,
                losses,
                win_rate: tally.mean(winner, loser),
                low,
                high,
                probability: probability_above_half(
                    tally.half_wins(winner, loser),
                    tally.half_wins(loser, winner),
                ),
                duels_missing: missing.ceil() as u64,
            }
        });
    (rows.collect(), total)
}
