//! The verdict: which ranker is best, and with what confidence.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::experiment_spec::{CONFIDENCE, ConcludeAt};
use crate::engine::loaded::LoadedExperiment;
use crate::events::Status;
use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::reports::single_flight::SingleFlight;
use crate::service::reports::standings::answered_duels;
use crate::service::reports::verdict_sentence::{Finding, rounded};
use dueling_bandits::evidence::{Certainty, History, Posterior, Unknowable, forecast};
use dueling_bandits::{Tally, step_rng};

/// Default confidence of a verdict.
pub const DEFAULT_CONFIDENCE: f64 = 0.95;
/// Most deciding pairs in a verdict.
const PAIRS_MAX: usize = 50;
/// Separates these random draws from other uses of the seed of an experiment.
const VERDICT_STREAM: u64 = 0x7665_7264_6963;

/// What a cached verdict was computed for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct VerdictKey {
    position: u64,
    /// Of the experiment's record.
    version: u64,
    confidence: f64,
}

/// Which ranker is best, and with what confidence.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Verdict {
    /// The experiment's name.
    pub experiment: String,
    /// Log position of this verdict.
    pub position: u64,
    /// Number of answered duels, without self-duels.
    pub duels: u64,
    /// Probability with which `winners` and `possible` are correct. It holds at all times at once,
    /// so you can check as often as you like and stop at any time.
    #[schema(example = 0.95)]
    pub confidence: f64,
    /// How far the experiment is.
    pub state: VerdictState,
    /// The verdict in a sentence or two.
    #[schema(example = "`neural` is the best ranker: it beats all 4 others.")]
    pub sentence: String,
    /// Ids of the rankers that are certainly a Copeland winner; empty while the verdict is open.
    pub winners: Vec<String>,
    /// Ids of the rankers that can still be a Copeland winner; never empty.
    pub possible: Vec<String>,
    /// Id of the ranker that is most probably a Copeland winner.
    pub leader: String,
    /// One row for each ranker, in the order of the experiment.
    pub rankers: Vec<RankerVerdict>,
    /// Undecided pairs that can change the winner, at most 50: pairs with the leader first, then
    /// pairs of two possible winners, then others; within these, pairs with the least evidence
    /// first.
    pub deciding_pairs: Vec<DecidingPair>,
    /// Number of all such pairs.
    pub deciding_pairs_total: usize,
    /// Estimated number of further duels until the verdict is decided, at the present rate; 0 if it
    /// is decided, `null` if there is no estimate.
    pub duels_to_go: Option<DuelsToGo>,
    /// Why `duels_to_go` is `null`.
    pub duels_to_go_reason: Option<String>,
    /// Number of posterior draws that the probabilities were estimated from.
    pub draws: usize,
    /// When the experiment concludes by itself.
    pub conclude_at: Option<ConcludeAt>,
    /// How the experiment was concluded; `null` if it is not.
    pub concluded: Option<Conclusion>,
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
    /// Its id.
    pub id: String,
    /// Whether it is retired: it can no longer win, and does not count in the scores of others.
    pub retired: bool,
    /// Whether it can still be a Copeland winner.
    pub possible: bool,
    /// Whether it is certainly a Copeland winner.
    pub certain: bool,
    /// Number of other rankers that it certainly beats.
    pub certain_wins: usize,
    /// Number of other rankers that it can beat: all except those that certainly beat it.
    pub possible_wins: usize,
    /// Posterior probability that it is a Copeland winner, alone or tied with others.
    pub copeland_probability: f64,
    /// Posterior probability that it beats every other.
    pub condorcet_probability: f64,
}

/// A pair that can change the winner and whose better ranker is not certain.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DecidingPair {
    /// Id of one ranker: of the leader, if the pair has it.
    pub left: String,
    /// Id of the other ranker.
    pub right: String,
    /// Duels that `left` won, with ties counted by the tie rule of the experiment.
    pub wins: f64,
    /// Duels that `left` lost.
    pub losses: f64,
    /// Share of duels that `left` won; `null` before the first duel.
    pub win_rate: Option<f64>,
    /// Lower end of the interval for the probability that `left` wins. The intervals of all pairs
    /// of initial rankers hold together, at all times at once, at the confidence of the verdict.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
    /// Posterior probability that `left` is the better ranker of the two.
    pub probability: f64,
}

/// Estimated number of further time-steps (answered duels and self-duels) until the verdict is
/// decided. It assumes that each pair is compared as often as recently, with preferences drawn from
/// the posterior. Policies compare pairs less often the more certain they are, so the true number
/// tends to be larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct DuelsToGo {
    /// Median.
    pub estimate: u64,
    /// 10 % quantile.
    pub low: u64,
    /// 90 % quantile; `null` if the verdict is never decided in these cases.
    pub high: Option<u64>,
}

/// How an experiment was concluded.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Conclusion {
    /// Id of the winner.
    pub winner: Option<String>,
    /// Whether the service concluded it by itself.
    pub automatic: bool,
    /// Why the service concluded it.
    pub reason: Option<String>,
}

impl Service {
    /// The verdict at a confidence from [`LoadedExperiment::verdict_confidence`], at the current
    /// log position or later. Computed once for each position and confidence.
    pub async fn verdict(
        &self,
        loaded: &Arc<LoadedExperiment>,
        confidence: f64,
    ) -> Result<Arc<Verdict>, ServiceError> {
        let asked_at = loaded.fold()?.position();
        let version = loaded.with_record(|record| record.version);
        let experiment = Arc::clone(loaded);
        let compute = move || {
            let verdict = experiment.verdict(confidence)?;
            Ok((VerdictKey { position: verdict.position, version, confidence }, verdict))
        };
        let good_enough = |key: &VerdictKey| {
            key.confidence == confidence && key.position >= asked_at && key.version >= version
        };
        let cache = loaded.extensions().get::<SingleFlight<VerdictKey, Verdict>>();
        cache.get(good_enough, compute).await
    }
}

impl LoadedExperiment {
    /// The confidence of a verdict: the requested one, else that of the experiment, else
    /// [`DEFAULT_CONFIDENCE`]. Returns an error if the requested one is invalid.
    pub fn verdict_confidence(&self, asked: Option<f64>) -> Result<f64, String> {
        let own = self.spec.conclude_at.map(|at| at.confidence);
        let confidence = asked.or(own).unwrap_or(DEFAULT_CONFIDENCE);
        if CONFIDENCE.contains(&confidence) {
            return Ok(confidence);
        }
        Err(format!(
            "`confidence` is {confidence}; it must be {} to {}",
            CONFIDENCE.start(),
            CONFIDENCE.end()
        ))
    }

    fn verdict(&self, confidence: f64) -> Result<Verdict, ServiceError> {
        let (position, duels, tally, (roster, initial_rankers), history, by_itself) = {
            let fold = self.fold()?;
            (
                fold.position(),
                answered_duels(&fold),
                fold.policy().tally().clone(),
                (fold.roster().clone(), fold.initial_rankers()),
                fold.history().clone(),
                fold.concluded_by_itself().map(str::to_owned),
            )
        };
        let (seed, status, winner) =
            self.with_record(|record| (record.seed, record.status, record.winner));
        let rng = &mut step_rng(seed ^ VERDICT_STREAM, position);
        let id = |ranker: usize| self.spec.rankers[ranker].id.clone();
        let ids = |rankers: &[usize]| rankers.iter().map(|&ranker| id(ranker)).collect();

        let certainty = Certainty::among(&tally, &roster, initial_rankers, confidence);
        let (certain, possible) = (certainty.certain(), certainty.possible());
        let posterior = Posterior::among(&tally, &roster);
        let draws = Posterior::draws(tally.rankers());
        let chances = posterior.chances(draws, rng);
        let leader = leader(&chances.copeland, &tally, roster.active(), &certain);
        let (deciding_pairs, deciding_pairs_total) =
            self.deciding_pairs(&tally, &certainty, &posterior, leader);
        let forecast = forecast(&tally, &certainty, &history, rng);
        let active = roster.active();
        let compared =
            active.iter().any(|&i| active.iter().any(|&j| j < i && tally.half_plays(i, j) > 0));
        let state = match (certain.is_empty(), compared) {
            (false, _) => VerdictState::Decided,
            (true, true) => VerdictState::Open,
            (true, false) => VerdictState::NothingKnown,
        };
        let concluded = (status == Status::Concluded).then(|| Conclusion {
            winner: winner.map(|winner| id(winner.into())),
            automatic: by_itself.is_some(),
            reason: by_itself,
        });
        let finding = Finding {
            certainty: &certainty,
            compared,
            leader,
            leader_probability: chances.copeland[leader],
            forecast: forecast.as_ref().ok(),
            confidence,
        };
        let sentence = finding.sentence(|ranker| &self.spec.rankers[ranker].id);
        Ok(Verdict {
            experiment: self.name.clone(),
            position,
            duels,
            confidence,
            state,
            sentence,
            winners: ids(&certain),
            possible: ids(&possible),
            leader: id(leader),
            rankers: (0..tally.rankers())
                .map(|i| RankerVerdict {
                    id: id(i),
                    retired: !roster.is_active(i),
                    possible: possible.contains(&i),
                    certain: certain.contains(&i),
                    certain_wins: certainty.certain_wins(i),
                    possible_wins: certainty.possible_wins(i),
                    copeland_probability: chances.copeland[i],
                    condorcet_probability: chances.condorcet[i],
                })
                .collect(),
            deciding_pairs,
            deciding_pairs_total,
            duels_to_go: forecast.as_ref().ok().map(|forecast| DuelsToGo {
                estimate: rounded(forecast.estimate),
                low: rounded(forecast.low),
                high: forecast.high.map(rounded),
            }),
            duels_to_go_reason: forecast.err().map(|why| self.why_unknowable(why, &history)),
            draws,
            conclude_at: self.spec.conclude_at,
            concluded,
        })
    }

    fn deciding_pairs(
        &self,
        tally: &Tally,
        certainty: &Certainty,
        posterior: &Posterior<'_>,
        leader: usize,
    ) -> (Vec<DecidingPair>, usize) {
        let possible = certainty.possible();
        let rank = |&(i, j): &(usize, usize)| match i == leader || j == leader {
            true => 0,
            false if possible.binary_search(&i).is_ok() && possible.binary_search(&j).is_ok() => 1,
            false => 2,
        };
        let evidence = |&(i, j): &(usize, usize)| {
            dueling_bandits::math::mixture::evidence_against_half(
                tally.wins(i, j),
                tally.wins(j, i),
            )
        };
        let mut pairs: Vec<_> = certainty
            .deciding_pairs()
            .into_iter()
            .map(|pair| (rank(&pair), evidence(&pair), pair))
            .collect();
        pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        let total = pairs.len();
        let rows = pairs.into_iter().take(PAIRS_MAX).map(|(_, _, (low, high))| {
            let (i, j) = if high == leader { (high, low) } else { (low, high) };
            let (wins, losses) = (tally.wins(i, j), tally.wins(j, i));
            let (from, to) = certainty.sequence(i, j).interval(wins, losses);
            DecidingPair {
                left: self.spec.rankers[i].id.clone(),
                right: self.spec.rankers[j].id.clone(),
                wins,
                losses,
                win_rate: tally.mean(i, j),
                low: from,
                high: to,
                probability: posterior.probability_above_half(i, j),
            }
        });
        (rows.collect(), total)
    }

    fn why_unknowable(&self, why: Unknowable, history: &History) -> String {
        let id = |ranker: usize| &self.spec.rankers[ranker].id;
        match why {
            Unknowable::NoDuels => "no duel has been counted yet".into(),
            Unknowable::TooManyPairs(pairs) => {
                format!("{pairs} pairs can still decide it: too early for an estimate")
            }
            Unknowable::NotCompared(i, j) => format!(
                "pairs that would decide it were not compared recently, such as `{}` and `{}`: as the policy selects now (step \
                 {}), they would never be decided",
                id(i),
                id(j),
                history.steps()
            ),
            Unknowable::Even => {
                "the possible winners are so similar that no number of duels may tell them apart"
                    .into()
            }
        }
    }
}

/// The most probable Copeland winner, among the certain ones if there are any. If several have the
/// same probability, the one that leads the counts.
fn leader(chances: &[f64], tally: &Tally, active: &[usize], certain: &[usize]) -> usize {
    if !certain.is_empty() {
        return tally.copeland_leader_among(certain);
    }
    let most = active.iter().map(|&i| chances[i]).fold(0.0, f64::max);
    let level: Vec<usize> = active.iter().copied().filter(|&i| chances[i] == most).collect();
    match level[..] {
        [leader] => leader,
        _ => {
            let first = tally.copeland_leader_among(active);
            if level.contains(&first) { first } else { level[0] }
        }
    }
}
