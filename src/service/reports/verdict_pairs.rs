//! The pairs behind a verdict: those that the proof still lacks, and by how much the leader beats
//! each rival.

use serde::Serialize;
use utoipa::ToSchema;

use dueling_bandits::Tally;
use dueling_bandits::evidence::effect::corrected_win_rate;
use dueling_bandits::evidence::ladder::Ladder;
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::plan::{Claim, Plan};
use dueling_bandits::evidence::{Sequences, Standing, VerdictTracker};
use dueling_bandits::win_probability::beta_above_half;
use rankduel_engine::loaded::LoadedExperiment;

/// Most deciding pairs in a verdict.
const PAIRS_MAX: usize = 50;

/// A pair that completes the leader's proof.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DecidingPair {
    /// The ranker that has to win the pair.
    pub left: String,
    pub right: String,
    /// Number of duels that `left` won and that count for the verdict, with ties by the tie rule. One
    /// that counts by its score, as a basket does where orders decide, counts its weight.
    pub wins: f64,
    pub losses: f64,
    /// Share of these duels that `left` won; `null` before the first duel.
    pub win_rate: Option<f64>,
    /// Lower end of the interval for the probability that `left` wins. The intervals of all pairs
    /// of initial rankers hold together, at all times at once, at the confidence of the verdict.
    pub low: f64,
    pub high: f64,
    /// Probability that `left` is the better ranker of the two, from these duels alone and a
    /// uniform prior.
    pub probability: f64,
    /// Estimated number of further duels of the pair that the proof needs, at the present win rate.
    pub duels_missing: u64,
}

/// How often the leader beats one other ranker.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Effect {
    pub rival: String,
    /// Number of duels that the leader won and that count for the verdict, with ties by the tie
    /// rule. One that counts by its score, as a basket does where orders decide, counts its weight.
    pub wins: f64,
    pub losses: f64,
    /// Share of these duels that the leader won; where orders decide, its share of the credit for
    /// them. `null` before the first one. At a verdict it is too high on average, because the verdict
    /// comes when the counts look best for the winner.
    pub win_rate: Option<f64>,
    /// `win_rate`, corrected for this excess; `null` before the first duel, while the verdict is
    /// open, and where duels count by a score.
    #[schema(example = 0.58)]
    pub estimate: Option<f64>,
    /// Lower end of the interval for the probability that the leader wins the pair. It is
    /// `1/2 - margin` or more only if the rival is ruled out. This end holds at all times at once,
    /// and is wrong in at most 1 - `confidence` of experiments.
    pub low: f64,
    /// Upper end of the interval, with an error of its own of the same size.
    pub high: f64,
    /// Whether the evidence against the rival is enough. Once all rivals are ruled out, the leader
    /// wins.
    pub ruled_out: bool,
}

/// The effect of the leader with this standing on each other active ranker, the smallest first.
/// `ruled_out` tells for which the evidence is enough.
pub(super) fn effects(
    loaded: &LoadedExperiment,
    (tracker, tally, active): (&VerdictTracker, &Tally, &[usize]),
    standing: &Standing,
    ruled_out: impl Fn(usize) -> bool,
) -> Vec<Effect> {
    let evidence = LeadEvidence::over(tracker.target().margin);
    let (counted, leader) = (tracker.counted(), standing.ranker);
    let is_decided = tracker.verdict().is_some();
    // of two rankers, the proof that rules the rival out is about the pair itself, and stays
    let proven_low = if active.len() == 2 { 0.5 - tracker.target().margin } else { 0.0 };
    let of = |(rival, (low, high)): (usize, (f64, f64))| {
        let is_out = ruled_out(rival);
        let low = if is_out { low.max(proven_low) } else { low };
        let wins_of = |x, y| counted.wins(tally, x, y);
        let (wins, losses) = (wins_of(leader, rival), wins_of(rival, leader));
        // the correction is that of whole wins
        let is_decided = is_decided && counted.scores().is_empty();
        let corrected = || corrected_win_rate(&evidence, wins, losses);
        Effect {
            rival: loaded.spec.rankers[rival].id.clone(),
            wins,
            losses,
            win_rate: share(wins, losses),
            estimate: is_decided.then(corrected).flatten(),
            low,
            high: high.max(low),
            ruled_out: is_out,
        }
    };
    let intervals = Ladder::default().intervals(tracker, tally, active, standing);
    let mut effects: Vec<_> = intervals.into_iter().map(of).collect();
    let rate = |effect: &Effect| effect.estimate.or(effect.win_rate).unwrap_or(0.5);
    effects.sort_by(|one, other| rate(one).total_cmp(&rate(other)));
    effects
}

fn share(wins: f64, losses: f64) -> Option<f64> {
    (wins + losses > 0.0).then(|| wins / (wins + losses))
}

/// The claims that the cheapest proof still lacks, the one that lacks most duels first, and how
/// many there are.
pub(super) fn deciding_pairs(
    loaded: &LoadedExperiment,
    tracker: &VerdictTracker,
    tally: &Tally,
    active: &[usize],
) -> (Vec<DecidingPair>, usize) {
    let mut claims = Plan::make(tracker, tally, active).claims().to_vec();
    claims.sort_by(|a, b| b.missing.total_cmp(&a.missing));
    let confidence = tracker.target().confidence;
    let sequences = Sequences::new(loaded.initial_rankers, tally.rankers(), confidence);
    let counted = tracker.counted();
    let total = claims.len();
    let rows =
        claims.into_iter().take(PAIRS_MAX).map(|Claim { winner, loser, missing, .. }| {
            let wins_of = |x, y| counted.wins(tally, x, y);
            let (wins, losses) = (wins_of(winner, loser), wins_of(loser, winner));
            let (low, high) = sequences.of(winner, loser).interval(wins, losses);
            DecidingPair {
                left: loaded.spec.rankers[winner].id.clone(),
                right: loaded.spec.rankers[loser].id.clone(),
                wins,
                losses,
                win_rate: share(wins, losses),
                low,
                high,
                probability: beta_above_half(wins, losses),
                duels_missing: missing.ceil() as u64,
            }
        });
    (rows.collect(), total)
}
