//! How many more duels until the verdict, at the policy that runs.
//!
//! The forecast is a simulation. Each draw takes the preferences from their posterior, lets a copy
//! of the [`Run`] select duels and observe outcomes from there on, and stops when there is a
//! verdict. The draws share a budget of steps and run side by side, so the estimate is known before
//! the longest have ended. If the budget ends before that, the draws that have ended predict the
//! others.

mod draws;
pub mod plan;

use crate::evidence::posterior::Posterior;
use crate::evidence::verdict::VerdictTracker;
use crate::forecast::draws::{Draw, Durations, Race};
use crate::run::Run;
use crate::{Policy, PolicyRng, Roster, Tally};

/// Number of draws.
const DRAWS: usize = 24;
/// Shares of the draws below the estimate and the ends of its range: that of half of the verdicts,
/// and that of nine of ten. They are low because the draws take too long: a preference that is
/// drawn has the error of the counts twice, once in the posterior's mean and once in the draw, and
/// pairs that are drawn closer than they are take more additional duels than others save. How many
/// verdicts the range holds was measured (`crates/lab/notes/estimates.md`).
const ESTIMATE: f64 = 0.35;
const LOW: f64 = 0.0;
const HIGH: f64 = 0.85;
/// Fewest comparisons for a forecast, for each active ranker. Before that the prior decides, which
/// takes rankers for more different than they are.
const COMPARISONS_A_RANKER: u64 = 40;
/// Fewest draws that must have ended for an estimate, and for the upper end of its range.
const ENDED_FOR_ESTIMATE: usize = DRAWS / 4;
const ENDED_FOR_HIGH: usize = DRAWS / 2;
/// Most steps of one forecast, and the most for one ranker among many, whose steps take longer.
const STEPS_MAX: u64 = 500_000;
const STEPS_TIMES_RANKERS: u64 = 4_000_000;

/// How many more time-steps, including self-duels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// About half of all verdicts come sooner.
    pub estimate: f64,
    /// About one verdict in twenty comes sooner; with many rankers up to one in six.
    pub low: f64,
    /// About one verdict in twenty comes later; `None` where too few draws ended within the budget to
    /// predict the longest.
    pub high: Option<f64>,
}

/// Why there is no forecast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoForecast {
    /// Too few comparisons so far.
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

/// A budget for [`forecast`] that takes at most about a second of one processor. It is counted in
/// steps, so that the forecast does not depend on the load of the machine.
pub fn forecast_budget(rankers: usize) -> u64 {
    (STEPS_TIMES_RANKERS / rankers.max(1) as u64).min(STEPS_MAX)
}

/// Forecast with copies of the policy from `copy`, with about `budget` steps over all draws at
/// most. 0 where there is a verdict.
pub fn forecast(
    present: Present<'_>,
    copy: impl Fn() -> Option<Box<dyn Policy>>,
    budget: u64,
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
    let draws = (0..DRAWS)
        .map(|number| {
            let run = Run::going_on(copy()?, present.roster.clone(), present.tracker.clone());
            Some(Draw::new(number, run, posterior.preferences(rng), 0))
        })
        .collect::<Option<Vec<_>>>()
        .ok_or(NoForecast::NotSimulated)?;
    // the draws that take longest are not needed
    let needed = (HIGH * (DRAWS - 1) as f64).ceil() as usize + 1;
    let mut race = Race::new(draws, needed, budget);
    while race.go_on(rng) {}
    let durations = Durations::of(&race, |draw| draw.steps as f64);
    match (durations.at(ESTIMATE, ENDED_FOR_ESTIMATE), durations.at(LOW, ENDED_FOR_ESTIMATE)) {
        (Some(estimate), Some(low)) => {
            Ok(Forecast { estimate, low, high: durations.at(HIGH, ENDED_FOR_HIGH) })
        }
        _ => Err(NoForecast::Beyond(durations.reached() as u64)),
    }
}
