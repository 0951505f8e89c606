//! Who is best, and how sure that is: the verdict on an experiment.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::error::ServiceError;
use crate::engine::experiment_spec::{CONFIDENCE, ConcludeAt};
use crate::engine::loaded::LoadedExperiment;
use crate::service::Service;
use crate::service::reports::standings::answered_duels;
use crate::store::Status;
use dueling_bandits::evidence::{Certainty, Forecast, History, NoForecast, Posterior, forecast};
use dueling_bandits::{Tally, step_rng};

/// The confidence of a verdict unless the caller or the experiment says otherwise.
pub const DEFAULT_CONFIDENCE: f64 = 0.95;
/// Most deciding pairs that are listed.
const PAIRS_MAX: usize = 50;
/// Sets these draws apart from whatever else is drawn from an experiment's seed.
const VERDICT_STREAM: u64 = 0x7665_7264_6963;

/// What a kept verdict was made for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct VerdictKey {
    position: u64,
    /// Of the experiment's record.
    version: u64,
    confidence: f64,
}

/// Who is best, and how sure that is.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Verdict {
    /// The experiment's name.
    pub experiment: String,
    /// Log position that this is at.
    pub position: u64,
    /// Duels that were answered, self-duels apart.
    pub duels: u64,
    /// `winners` and `possible` are right with this probability: at every moment at once, so one
    /// may look as often as one likes and stop when one likes.
    #[schema(example = 0.95)]
    pub confidence: f64,
    /// How far it is.
    pub state: VerdictState,
    /// The verdict in a sentence or two.
    #[schema(example = "`neural` is the best ranker: it beats all 4 others.")]
    pub sentence: String,
    /// Ids of the rankers that are certainly a Copeland winner; empty while it is open.
    pub winners: Vec<String>,
    /// Ids of the rankers that can still be a Copeland winner; never empty.
    pub possible: Vec<String>,
    /// Id of the ranker that is most probably a Copeland winner.
    pub leader: String,
    /// One row a ranker, in the experiment's order.
    pub rankers: Vec<RankerVerdict>,
    /// The open pairs that can change who wins, at most 50: those that the leader is part of first,
    /// then those of two rankers that can both win; within these the least settled first.
    pub deciding_pairs: Vec<DecidingPair>,
    /// How many there are.
    pub deciding_pairs_total: usize,
    /// How many more duels it takes at the present rate; `null` where that cannot be said, and 0
    /// when it is decided.
    pub duels_to_go: Option<DuelsToGo>,
    /// Why `duels_to_go` is `null`.
    pub duels_to_go_reason: Option<String>,
    /// Draws from the posterior that the probabilities were counted in.
    pub draws: usize,
    /// When the experiment concludes by itself.
    pub conclude_at: Option<ConcludeAt>,
    /// How it was concluded; `null` unless it is.
    pub concluded: Option<Conclusion>,
}

/// How far a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictState {
    /// No duel has said anything yet.
    NothingKnown,
    /// Several rankers can still be the best.
    Open,
    /// It is certain, at the stated confidence, who is a Copeland winner.
    Decided,
}

/// What is known of one ranker.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RankerVerdict {
    /// Its id.
    pub id: String,
    /// Whether it was retired: it can no longer win, and nobody's score counts it.
    pub retired: bool,
    /// Whether it can still be a Copeland winner.
    pub possible: bool,
    /// Whether it is certainly a Copeland winner.
    pub certain: bool,
    /// How many others it certainly beats.
    pub certain_wins: usize,
    /// How many others it beats at most: all but those that certainly beat it.
    pub possible_wins: usize,
    /// Posterior probability that it is a Copeland winner, alone or level with others.
    pub copeland_probability: f64,
    /// Posterior probability that it beats every other.
    pub condorcet_probability: f64,
}

/// A pair of which it is not certain who is better, and that can change who wins.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DecidingPair {
    /// Id of one ranker; of the leader, where it is one of the two.
    pub left: String,
    /// Id of the other.
    pub right: String,
    /// Duels that the one won, a tie counted as the experiment says.
    pub wins: f64,
    /// Duels that it lost.
    pub losses: f64,
    /// Its share of wins; `null` before the first.
    pub win_rate: Option<f64>,
    /// Lower end of the interval of its probability to win: all intervals of the pairs of the
    /// rankers that the experiment began with hold at every moment, together, at the verdict's
    /// confidence.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
    /// Posterior probability that it is the better of the two.
    pub probability: f64,
}

/// An estimate of how many more time-steps, answered duels and self-duels, it takes until it is
/// decided: each pair compared as often as of late, preferences drawn from the posterior. Policies
/// compare less and less what they hold for decided, so it is later rather than sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct DuelsToGo {
    /// The median.
    pub estimate: u64,
    /// One case in ten is below.
    pub low: u64,
    /// One case in ten is above; `null` where those come to no end.
    pub high: Option<u64>,
}

/// How an experiment was concluded.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Conclusion {
    /// Id of the winner that it was concluded on.
    pub winner: Option<String>,
    /// Whether the service did it by itself.
    pub automatic: bool,
    /// Why, where the service did it.
    pub reason: Option<String>,
}

impl Service {
    /// The verdict at this confidence, of [`LoadedExperiment::verdict_confidence`], at the position
    /// where the log is now or later. Computed once a position and confidence.
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
        loaded.estimates.verdict.get(good_enough, compute).await
    }
}

impl LoadedExperiment {
    /// The confidence of a verdict: the one asked for, else the experiment's own, else
    /// [`DEFAULT_CONFIDENCE`]. The error says what is wrong with the one asked for.
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
        let chances = posterior.winner_probabilities(draws, rng);
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
        let sentence = self.sentence(
            state,
            &certainty,
            &chances.copeland,
            leader,
            forecast.as_ref().ok(),
            confidence,
        );
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
            duels_to_go_reason: forecast.err().map(|why| self.why_no_forecast(why, &history)),
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

    fn why_no_forecast(&self, why: NoForecast, history: &History) -> String {
        let id = |ranker: usize| &self.spec.rankers[ranker].id;
        match why {
            NoForecast::NoDuels => "no duel has been counted yet".into(),
            NoForecast::TooManyPairs(pairs) => {
                format!("{pairs} pairs can still decide it: too early to tell")
            }
            NoForecast::NotCompared(i, j) => format!(
                "pairs that would decide it are not compared of late, such as `{}` and `{}`: what the policy does now (step \
                 {}) would never settle them",
                id(i),
                id(j),
                history.steps()
            ),
            NoForecast::Even => {
                "rankers that can still win look so alike that no number of duels may tell them apart".into()
            }
        }
    }

    fn sentence(
        &self,
        state: VerdictState,
        certainty: &Certainty,
        chances: &[f64],
        leader: usize,
        forecast: Option<&Forecast>,
        confidence: f64,
    ) -> String {
        let id = |ranker: usize| &self.spec.rankers[ranker].id;
        let others = certainty.roster().active().len() - 1;
        let sure = percent(confidence);
        match (state, &certainty.certain()[..]) {
            (VerdictState::NothingKnown, _) => {
                format!(
                    "Nothing is known yet: none of the {} rankers has been compared.",
                    others + 1
                )
            }
            (_, &[winner]) if certainty.certain_wins(winner) == others => {
                format!(
                    "`{}` is the best ranker: it beats {}. That is {sure} sure.",
                    id(winner),
                    all_others(others)
                )
            }
            (_, &[winner]) => format!(
                "`{}` is the best ranker: it beats at least {} of the {others} others, and no other ranker beats so many. That \
                 is {sure} sure.",
                id(winner),
                certainty.certain_wins(winner)
            ),
            (_, &[]) => {
                let possible = certainty.possible().len();
                let end = match forecast {
                    Some(forecast) => {
                        format!(
                            "About {} more duels at the present rate will decide it.",
                            grouped(rounded(forecast.estimate))
                        )
                    }
                    None => "How many more duels it takes cannot be said yet.".into(),
                };
                format!(
                    "`{}` leads and is a best ranker with a probability of about {}, but {possible} of {} rankers can still be \
                     the best. {end}",
                    id(leader),
                    percent(chances[leader]),
                    others + 1
                )
            }
            (_, winners) => format!(
                "{} are equally good: none beats more others than they do. Any of them may be chosen. That is {sure} sure.",
                winners
                    .iter()
                    .map(|&winner| format!("`{}`", id(winner)))
                    .collect::<Vec<_>>()
                    .join(" and ")
            ),
        }
    }
}

/// The most probable Copeland winner: among the certain ones, if there are; between equals the one
/// that leads the counts.
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

fn all_others(others: usize) -> String {
    if others == 1 { "the other one".into() } else { format!("all {others} others") }
}

/// To two digits, as an estimate should be.
fn rounded(estimate: f64) -> u64 {
    if estimate < 100.0 {
        return estimate.ceil() as u64;
    }
    let unit = 10_f64.powf(estimate.log10().floor() - 1.0);
    ((estimate / unit).round() * unit) as u64
}

/// `12 000` as `12,000`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent, never rounded up to certainty.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 99.0 && percent < 100.0 {
        format!("{:.2} %", (percent * 100.0).floor() / 100.0)
    } else {
        format!("{percent:.0} %")
    }
}
