//! What exploring has cost, with how sure that is: the plug-in estimate beside the posterior, over
//! time.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::rfc3339;
use crate::engine::loaded::LoadedExperiment;
use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::reports::single_flight::SingleFlight;
use crate::service::reports::standings::{RegretEstimate, copeland_scores};
use dueling_bandits::evidence::history::Checkpoint;
use dueling_bandits::evidence::posterior::window;
use dueling_bandits::evidence::{Estimate, History, Posterior};
use dueling_bandits::preference::Regret;
use dueling_bandits::{Roster, Tally, step_rng};

/// Steps that "now" takes at least, where there are so many.
const RECENT_STEPS: u64 = 1000;
/// Sets these draws apart from whatever else is drawn from an experiment's seed.
const REGRET_STREAM: u64 = 0x7265_6772_6574;

/// What exploring has cost: estimates, since nobody knows the true preferences of a live
/// experiment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RegretReport {
    /// The plug-in estimate.
    #[serde(flatten)]
    pub plug_in: RegretEstimate,
    /// The same under the posterior of all pairs.
    pub posterior: PosteriorRegret,
    /// Condorcet regret.
    pub condorcet: CondorcetRegret,
    /// What is being lost of late; `null` before the first step.
    pub recent: Option<RecentRegret>,
    /// Cumulative Copeland regret over time, priced with what is known now; at most 129 points, the
    /// last one is now.
    pub series: Vec<RegretPoint>,
}

/// A posterior mean with its 95 % credible interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Band {
    /// Posterior mean.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Band {
    pub(crate) fn of(estimate: Estimate, factor: f64) -> Self {
        Self {
            mean: estimate.mean * factor,
            low: estimate.low * factor,
            high: estimate.high * factor,
        }
    }
}

/// Cumulative Copeland regret under the posterior: `Beta(1 + wins, 1 + losses)` for each pair,
/// apart from the others.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PosteriorRegret {
    /// Draws that it was computed from; fewer for many rankers.
    pub draws: usize,
    /// Probability of the intervals.
    #[schema(example = 0.95)]
    pub level: f64,
    /// What the duels have cost.
    pub copeland_regret: Band,
    /// What uniform pairs would have cost over as many steps.
    pub uniform_copeland_regret: Band,
}

/// Cumulative Condorcet regret: over all steps, the mean over both rankers shown of how much more
/// often than every other time the Condorcet winner would beat them.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CondorcetRegret {
    /// Id of the ranker that beats all others in today's counts; `null` while none does.
    pub winner: Option<String>,
    /// Plug-in estimate; `null` without a winner.
    pub regret: Option<f64>,
    /// What uniform pairs would have cost over as many steps; `null` without a winner.
    pub uniform_regret: Option<f64>,
    /// Posterior probability that there is a Condorcet winner.
    pub probability: f64,
    /// Under the posterior, given that there is one; `null` where that is too rare to say.
    pub posterior: Option<CondorcetPosterior>,
    /// Why something is `null`.
    pub reason: Option<String>,
}

/// Condorcet regret under the posterior, given that there is a Condorcet winner.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CondorcetPosterior {
    /// What the duels have cost.
    pub regret: Band,
    /// What uniform pairs would have cost over as many steps.
    pub uniform_regret: Band,
}

/// What is being lost of late, as Copeland regret of 1000 steps.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RecentRegret {
    /// The newest steps that it was estimated from.
    pub steps: u64,
    /// Plug-in estimate.
    pub plug_in: f64,
    /// Posterior mean.
    pub mean: f64,
    /// Lower end of the 95 % credible interval.
    pub low: f64,
    /// Upper end of the 95 % credible interval.
    pub high: f64,
    /// Posterior mean of what 1000 steps of uniform pairs cost.
    pub uniform: f64,
}

/// Cumulative Copeland regret up to one moment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RegretPoint {
    /// Log position.
    pub position: u64,
    /// Time-steps until then: answered duels and self-duels.
    pub steps: u64,
    /// When that was.
    #[schema(format = DateTime)]
    pub at: String,
    /// Plug-in estimate.
    pub plug_in: f64,
    /// Posterior mean.
    pub mean: f64,
    /// Lower end of the 95 % credible interval.
    pub low: f64,
    /// Upper end of the 95 % credible interval.
    pub high: f64,
    /// Plug-in estimate of what uniform pairs would have cost.
    pub uniform_plug_in: f64,
    /// Posterior mean of what uniform pairs would have cost.
    pub uniform_mean: f64,
}

impl Service {
    /// What exploring has cost: at the position where the log is now or later. Computed once a
    /// position.
    pub async fn regret_report(
        &self,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<Arc<RegretReport>, ServiceError> {
        let asked_at = loaded.fold()?.position();
        let experiment = Arc::clone(loaded);
        let compute =
            move || experiment.regret_report().map(|report| (report.plug_in.position, report));
        let cache = loaded.extensions().get::<SingleFlight<u64, RegretReport>>();
        cache.get(|&position| position >= asked_at, compute).await
    }
}

impl LoadedExperiment {
    fn regret_report(&self) -> Result<RegretReport, ServiceError> {
        let (plug_in, tally, roster, history, shown, last_at) = {
            let fold = self.fold()?;
            (
                self.plug_in_regret(&fold),
                fold.policy().tally().clone(),
                fold.roster().clone(),
                fold.history().clone(),
                fold.counts().appearances().to_vec(),
                fold.recorded_at(),
            )
        };
        let mut moments = history.checkpoints();
        if history.steps() > moments.last().map_or(0, |newest| newest.steps) {
            let (position, steps) = (plug_in.position, history.steps());
            moments.push(Checkpoint {
                position,
                steps,
                recorded_at: last_at,
                shown: shown.clone(),
            });
        }
        let evidence = Evidence { tally: &tally, roster: &roster, history: &history };
        Ok(price(
            plug_in,
            evidence,
            &moments,
            &shown,
            self.with_record(|record| record.seed),
            |i| self.spec.rankers[i].id.clone(),
        ))
    }
}

/// What regret is estimated from.
#[derive(Clone, Copy)]
struct Evidence<'a> {
    tally: &'a Tally,
    roster: &'a Roster,
    history: &'a History,
}

/// `moments` ascend and end with now; `shown` is what was shown until now.
fn price(
    plug_in: RegretEstimate,
    Evidence { tally, roster, history }: Evidence<'_>,
    moments: &[Checkpoint],
    shown: &[u64],
    seed: u64,
    id: impl Fn(usize) -> String,
) -> RegretReport {
    let steps = history.steps();
    let before = window(moments, steps, RECENT_STEPS);
    let recent: Vec<u64> = match before {
        Some(before) => shown.iter().zip(&before.shown).map(|(all, before)| all - before).collect(),
        None => shown.to_vec(),
    };
    let recent_steps = steps - before.map_or(0, |before| before.steps);

    // everything until now goes last: Condorcet regret is of that
    let priced: Vec<&[u64]> =
        moments.iter().map(|moment| &*moment.shown).chain([&*recent, shown]).collect();
    let draws = Posterior::draws(tally.rankers());
    let rng = &mut step_rng(seed ^ REGRET_STREAM, plug_in.position);
    let drawn = Posterior::among(tally, roster).regret(&priced, draws, rng);
    let scores =
        Regret::from_copeland_scores_among(&copeland_scores(tally, roster), roster.active());
    let (recent_drawn, now) = (drawn.copeland[moments.len()], drawn.copeland[moments.len() + 1]);

    let series = moments
        .iter()
        .zip(&drawn.copeland)
        .map(|(moment, estimate)| RegretPoint {
            position: moment.position,
            steps: moment.steps,
            at: rfc3339(moment.recorded_at),
            plug_in: scores.of_appearances(&moment.shown),
            mean: estimate.mean,
            low: estimate.low,
            high: estimate.high,
            uniform_plug_in: scores.of_uniform_pairs(moment.steps),
            uniform_mean: drawn.uniform_step.mean * moment.steps as f64,
        })
        .collect();
    let thousand = 1000.0 / recent_steps as f64;
    RegretReport {
        posterior: PosteriorRegret {
            draws,
            level: 0.95,
            copeland_regret: Band::of(now, 1.0),
            uniform_copeland_regret: Band::of(drawn.uniform_step, steps as f64),
        },
        condorcet: {
            let posterior = drawn.condorcet.map(|(regret, uniform)| CondorcetPosterior {
                regret: Band::of(regret, 1.0),
                uniform_regret: Band::of(uniform, steps as f64),
            });
            condorcet(tally, roster, shown, steps, drawn.condorcet_probability, posterior, id)
        },
        recent: (steps > 0).then(|| RecentRegret {
            steps: recent_steps,
            plug_in: scores.of_appearances(&recent) * thousand,
            mean: recent_drawn.mean * thousand,
            low: recent_drawn.low * thousand,
            high: recent_drawn.high * thousand,
            uniform: drawn.uniform_step.mean * 1000.0,
        }),
        series,
        plug_in,
    }
}

fn condorcet(
    tally: &Tally,
    roster: &Roster,
    shown: &[u64],
    steps: u64,
    probability: f64,
    posterior: Option<CondorcetPosterior>,
    id: impl Fn(usize) -> String,
) -> CondorcetRegret {
    let active = roster.active();
    let winner =
        active.iter().copied().find(|&i| active.iter().all(|&j| j == i || tally.leads(i, j)));
    let priced = winner.map(|winner| {
        // one that takes part no more, and that the winner does not beat, costs nothing beside it
        let loss = |i| {
            if i == winner { 0.0 } else { (tally.mean(winner, i).unwrap_or(0.5) - 0.5).max(0.0) }
        };
        Regret::from_losses((0..tally.rankers()).map(loss).collect()).with_uniform_pairs_of(active)
    });
    let reason = match (winner, &posterior) {
        (None, Some(_)) => Some("in today's counts no ranker beats all others".into()),
        (_, None) => Some(format!(
            "a ranker that beats all others has probability {probability:.3}: too little to price it"
        )),
        _ => None,
    };
    CondorcetRegret {
        winner: winner.map(id),
        regret: priced.as_ref().map(|priced| priced.of_appearances(shown)),
        uniform_regret: priced.as_ref().map(|priced| priced.of_uniform_pairs(steps)),
        probability,
        posterior,
        reason,
    }
}
