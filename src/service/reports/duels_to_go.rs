//! How many more pages the verdict takes, by simulating the policy from the present on.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::reports::words::grouped;
use dueling_bandits::PolicyRng;
use dueling_bandits::evidence::Target;
use dueling_bandits::forecast::{Forecast, NoForecast, Present, forecast, forecast_budget};
use dueling_bandits::parameters::Setup;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// A forecast is used again until the number of steps has grown by this share.
const STALE_AFTER: f64 = 0.05;

/// Estimated number of further pages (answered duels and self-duels) until the verdict, from
/// simulations of the policy with preferences drawn from the posterior. Answers that wait are
/// expected to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct DuelsToGo {
    /// The expected number: the 35 % quantile of the simulations. Their median is too long.
    pub estimate: u64,
    /// The number of the shortest simulation. About one verdict in twenty comes sooner, with many
    /// rankers up to one in six.
    pub low: u64,
    /// The 85 % quantile of the simulations; `null` if too few of them ended. About one verdict in
    /// twenty comes later.
    pub high: Option<u64>,
}

/// A forecast, with the step and the target that it was made for.
#[derive(Clone, Copy)]
struct Kept {
    steps: u64,
    target: Target,
    found: Result<Forecast, NoForecast>,
}

#[derive(Default)]
struct Newest(Mutex<Option<Kept>>);

/// The saved state of the policy, for a forecast at this target; `None` if none has to be made.
pub(super) fn forecast_input(
    loaded: &LoadedExperiment,
    fold: &Fold,
    target: Target,
) -> Option<Vec<u8>> {
    let policy = fold.run().policy();
    let own = target == fold.run().verdict().target();
    if own
        && (fold.run().verdict().verdict().is_some()
            || kept_forecast(loaded, policy.tally().steps(), target).is_some())
    {
        return None;
    }
    Some(policy.save())
}

fn kept_forecast(loaded: &LoadedExperiment, steps: u64, target: Target) -> Option<Kept> {
    let newest = loaded.extensions().get::<Newest>();
    let kept = *newest.0.lock().unwrap_or_else(PoisonError::into_inner);
    let fresh = |at: u64| steps >= at && (steps - at) as f64 <= STALE_AFTER * at as f64;
    kept.filter(|kept| kept.target == target && fresh(kept.steps))
}

/// The forecast from `present`, or why there is none. With `keep`, a recent forecast is used again
/// and a new one is kept; without a recent one, the policy is simulated from its state `saved`.
/// `counting_share` is the share of pages that count.
pub(super) fn duels_to_go(
    loaded: &LoadedExperiment,
    present: Present<'_>,
    keep: bool,
    counting_share: f64,
    saved: Option<&[u8]>,
    rng: &mut PolicyRng,
) -> Result<DuelsToGo, String> {
    let Present { tally, tracker, .. } = present;
    if tracker.verdict().is_some() {
        return Ok(DuelsToGo { estimate: 0, low: 0, high: Some(0) });
    }
    let steps = tally.steps();
    let kept = if keep { kept_forecast(loaded, steps, tracker.target()) } else { None };
    let (at, found) = match kept {
        Some(Kept { steps: at, found, .. }) => (at, found),
        None => {
            let setup = Setup { rankers: loaded.initial_rankers, seed: 0 };
            let copy = || loaded.spec.policy.restore(setup, saved?);
            let budget = forecast_budget(tally.rankers());
            let found = forecast(present, copy, budget, rng);
            let newest = loaded.extensions().get::<Newest>();
            if keep && let Ok(mut kept) = newest.0.lock() {
                *kept = Some(Kept { steps, target: tracker.target(), found });
            }
            (steps, found)
        }
    };
    let since = (steps - at) as f64;
    // in a simulation, every answer counts
    let remaining = |forecast: f64| rounded((forecast / counting_share - since).max(1.0));
    match found {
        Ok(Forecast { estimate, low, high }) => Ok(DuelsToGo {
            estimate: remaining(estimate),
            low: remaining(low),
            high: high.map(remaining),
        }),
        Err(none) => Err(in_words(none, counting_share, loaded.spec.decide_by.is_some())),
    }
}

/// Why there is no forecast. It is of all pages, also those whose answers are left out.
fn in_words(none: NoForecast, counting_share: f64, of_baskets: bool) -> String {
    match none {
        NoForecast::TooFew { comparisons, least } => {
            let [found, needed] = [comparisons, least].map(|it| grouped(it, ','));
            let found_have = match (of_baskets, comparisons == 1) {
                // one without an order counts half
                (true, true) => "basket is closed",
                (true, false) => "baskets are closed",
                (false, true) => "page has a winner",
                (false, false) => "pages have a winner",
            };
            format!("{found} {found_have}, and an estimate needs {needed}")
        }
        NoForecast::Beyond(steps) => format!(
            "more than {} further pages; simulations that ran so far had no verdict",
            grouped(rounded(steps as f64 / counting_share), ',')
        ),
        NoForecast::NotSimulated => "the policy cannot be simulated from the present counts".into(),
    }
}

/// An estimate rounded to two significant digits.
pub(super) fn rounded(estimate: f64) -> u64 {
    if estimate < 100.0 {
        return estimate.ceil() as u64;
    }
    let unit = 10_f64.powf(estimate.log10().floor() - 1.0);
    ((estimate / unit).round() * unit) as u64
}
