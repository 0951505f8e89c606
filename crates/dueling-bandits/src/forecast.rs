//! How many more duels until the verdict, at the policy that runs.
//!
//! The forecast is a simulation. Each draw takes the preferences from their posterior, lets a copy
//! of the [`Run`] select duels and observe outcomes from there on, and stops when there is a
//! verdict. The draws share a budget of steps and run side by side, so the estimate is known before
//! the longest have ended. If the budget ends before that, the draws that have ended predict the
//! others ([`Durations`]).

use rand::RngExt;
use special::Error as _;

use crate::evidence::posterior::Posterior;
use crate::evidence::verdict::VerdictTracker;
use crate::run::Run;
use crate::{InFlight, Outcome, Policy, PolicyRng, Roster, Tally};

/// Number of draws.
const DRAWS: usize = 24;
/// Shares of the draws below the estimate and the ends of its range. They are below 1/2, 1/10 and
/// 9/10 because the draws take too long: a preference that is drawn has the error of the counts
/// twice, once in the posterior's mean and once in the draw, and pairs that are drawn closer than
/// they are take more additional duels than others save. With these shares, about one verdict in
/// ten comes before the range and one in ten after it.
const ESTIMATE: f64 = 0.35;
const LOW: f64 = 0.06;
const HIGH: f64 = 0.85;
/// Fewest comparisons for a forecast, for each active ranker. Before that the prior decides, which
/// takes rankers for more different than they are.
const COMPARISONS_A_RANKER: u64 = 40;
/// Steps of one draw between two looks at the others.
const STRIDE: u64 = 64;
/// Fewest draws that must have ended for an estimate, and for the upper end of its range.
const ENDED_FOR_ESTIMATE: usize = DRAWS / 4;
const ENDED_FOR_HIGH: usize = DRAWS / 2;
/// Most steps of one forecast, and the most for one ranker among many, whose steps take longer.
const STEPS_MAX: u64 = 1_000_000;
const STEPS_TIMES_RANKERS: u64 = 8_000_000;

/// How many more time-steps, including self-duels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// About half of all verdicts come sooner.
    pub estimate: f64,
    /// About one verdict in ten comes sooner.
    pub low: f64,
    /// About one verdict in ten comes later; `None` where too few draws ended within the budget to
    /// predict the longest.
    pub high: Option<f64>,
}

/// Why there is no forecast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoForecast {
    /// So many comparisons so far, and so many are needed.
    TooFew {
        /// Comparisons so far.
        comparisons: u64,
        /// Fewest for a forecast.
        least: u64,
    },
    /// Most of the draws had no verdict after this many further steps.
    Beyond(u64),
    /// The policy cannot be simulated from the present counts.
    NotSimulated,
}

/// Where a forecast starts.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    /// The counts so far.
    pub tally: &'a Tally,
    /// The active rankers.
    pub roster: &'a Roster,
    /// Where the verdict stands.
    pub tracker: &'a VerdictTracker,
}

/// A budget for [`forecast`] that takes at most about a second of one processor.
pub fn forecast_budget(rankers: usize) -> u64 {
    (STEPS_TIMES_RANKERS / rankers.max(1) as u64).min(STEPS_MAX)
}

/// Forecast with copies of the policy from `copy`, with about `budget` steps over all draws at most,
/// and only as long as `may_go_on`, which is asked between two parts of a few thousand steps. 0 where
/// there is a verdict.
pub fn forecast(
    present: Present<'_>,
    copy: impl Fn() -> Option<Box<dyn Policy>>,
    budget: u64,
    may_go_on: impl Fn() -> bool,
    rng: &mut PolicyRng,
) -> Result<Forecast, NoForecast> {
    if present.tracker.verdict().is_some() {
        return Ok(Forecast { estimate: 0.0, low: 0.0, high: Some(0.0) });
    }
    let rankers = present.tally.rankers();
    let pairs = (0..rankers).flat_map(|i| (0..i).map(move |j| (i, j)));
    let comparisons = pairs.map(|(i, j)| present.tally.half_plays(i, j)).sum::<u64>() / 2;
    let least = COMPARISONS_A_RANKER * present.roster.active().len() as u64;
    if comparisons < least {
        return Err(NoForecast::TooFew { comparisons, least });
    }
    let posterior = Posterior::among(present.tally, present.roster);
    let mut draws = (0..DRAWS)
        .map(|_| {
            Some(Draw {
                run: Run::going_on(copy()?, present.roster.clone(), present.tracker.clone()),
                preferences: posterior.preferences(rng),
                steps: 0,
            })
        })
        .collect::<Option<Vec<_>>>()
        .ok_or(NoForecast::NotSimulated)?;
    let mut ends = Vec::with_capacity(DRAWS);
    let mut spent = 0;
    // the draws that take longest are not needed
    let needed = (HIGH * (DRAWS - 1) as f64).ceil() as usize;
    loop {
        draws.retain_mut(|draw| {
            let before = draw.steps;
            let ended = draw.advance(rng);
            spent += draw.steps - before;
            if ended {
                ends.push(draw.steps as f64);
            }
            !ended
        });
        if spent >= budget || ends.len() > needed || !may_go_on() {
            break;
        }
    }
    ends.sort_unstable_by(f64::total_cmp);
    // draws run side by side: those that have not ended took as many steps as the first of them
    let reached = draws.first().map_or(0, |draw| draw.steps);
    let durations = Durations { ends, reached: reached as f64 };
    match (durations.at(ESTIMATE, ENDED_FOR_ESTIMATE), durations.at(LOW, ENDED_FOR_ESTIMATE)) {
        (Some(estimate), Some(low)) => {
            Ok(Forecast { estimate, low, high: durations.at(HIGH, ENDED_FOR_HIGH) })
        }
        _ => Err(NoForecast::Beyond(reached)),
    }
}

/// How long the draws take. Those that have not ended take more than `reached` steps.
struct Durations {
    /// Of the draws that have ended, ascending.
    ends: Vec<f64>,
    reached: f64,
}

impl Durations {
    /// A quantile. Where the draws around it have not ended, it is that of a log-normal
    /// distribution through those that have; `None` if fewer than `least` have.
    fn at(&self, share: f64, least: usize) -> Option<f64> {
        let place = share * (DRAWS - 1) as f64;
        let around = (self.ends.get(place as usize), self.ends.get(place.ceil() as usize));
        if let (Some(below), Some(above)) = around {
            return Some(below + (above - below) * place.fract());
        }
        (self.ends.len() >= least).then(|| self.log_normal(share).max(self.reached))
    }

    /// A quantile of the log-normal distribution by regression on order statistics: the straight
    /// line that fits the logarithms of the durations over the normal quantiles of their places
    /// among all draws.
    fn log_normal(&self, share: f64) -> f64 {
        let normal = |share: f64| std::f64::consts::SQRT_2 * (2.0 * share - 1.0).inv_error();
        // Blom's places, which are nearly unbiased for normal order statistics
        let place = |i: usize| normal((i as f64 + 0.625) / (DRAWS as f64 + 0.25));
        let points = || self.ends.iter().enumerate().map(|(i, end)| (place(i), end.ln()));
        let count = self.ends.len() as f64;
        let (sum_x, sum_y) = points().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
        let (mean_x, mean_y) = (sum_x / count, sum_y / count);
        let (covariance, variance) = points().fold((0.0, 0.0), |(covariance, variance), (x, y)| {
            let from_mean = x - mean_x;
            (covariance + from_mean * (y - mean_y), variance + from_mean * from_mean)
        });
        (mean_y + covariance / variance * (normal(share) - mean_x)).exp()
    }
}

/// One simulated future.
struct Draw {
    run: Run,
    preferences: Vec<f64>,
    /// Steps since the present.
    steps: u64,
}

impl Draw {
    /// Up to [`STRIDE`] further steps. Returns whether there is a verdict.
    fn advance(&mut self, rng: &mut PolicyRng) -> bool {
        let (none, rankers) = (InFlight::new(), self.run.roster().rankers());
        for _ in 0..STRIDE {
            self.steps += 1;
            let selection = self.run.select(&none, rng);
            let duel = selection.duel;
            if duel.is_self() {
                self.run.observe_self_duels(duel.first, 1);
                continue;
            }
            let first_wins =
                rng.random::<f64>() < self.preferences[duel.first * rankers + duel.second];
            let outcome = if first_wins { Outcome::First } else { Outcome::Second };
            self.run.observe(&selection.observed(outcome));
            if self.run.verdict().verdict().is_some() {
                return true;
            }
        }
        false
    }
}
