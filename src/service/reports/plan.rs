//! How long an experiment will take, before it is created.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::service::error::ServiceError;
use crate::service::reports::duels_to_go::rounded;
use crate::service::reports::grouped::grouped;
use crate::service::reports::pool::ReportPool;
use dueling_bandits::evidence::Target;
use dueling_bandits::forecast::plan::{Pages, Question, plan, plan_budget};
use dueling_bandits::step_rng;
use rankduel_engine::experiment_spec::{CONFIDENCE, FieldError, MARGIN};

/// Most rankers of a plan: its simulations keep the counts of all pairs many times.
const RANKERS_MAX: usize = 100;
/// Valid differences of a plan.
const DIFFERENCES: RangeInclusive<f64> = 0.0001..=0.45;
/// Valid shares of pages with a winner.
const ANSWERED: RangeInclusive<f64> = 0.001..=1.0;
/// Most pages a day.
const PAGES_MAX: f64 = 1e9;
/// Valid days.
const DAYS: RangeInclusive<f64> = 0.01..=3650.0;
/// Most of the answers that may come from users who answered before.
const REPEATS_MAX: f64 = 0.99;
/// The longest simulation. On an idle machine it ends before that.
const TIME_LIMIT: Duration = Duration::from_secs(4);
/// The seed of all plans: the same request gets the same plan.
const SEED: u64 = 0x706c_616e;

/// An experiment to plan.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, ToSchema, Args)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// Number of rankers, 2 to 100.
    #[arg(long, value_name = "N")]
    #[schema(minimum = 2, maximum = 100, example = 6)]
    pub rankers: usize,
    /// The smallest difference of interest: by how much the best ranker beats the second best,
    /// above one half. With 0.04, it wins 54 % of the pages that have a winner.
    #[arg(long, value_name = "SHARE")]
    #[schema(minimum = 0.0001, maximum = 0.45, example = 0.04)]
    pub difference: f64,
    /// Pages a day on which a duel is shown.
    #[arg(long, value_name = "N")]
    #[schema(minimum = 1.0, maximum = 1e9, example = 5000.0)]
    pub pages_per_day: f64,
    /// Share of these pages whose clicks name a winner. 0.3 by default.
    #[arg(long, value_name = "SHARE", default_value_t = default_answered(), hide_default_value = true)]
    #[serde(default = "default_answered")]
    #[schema(minimum = 0.001, maximum = 1.0)]
    pub answered: f64,
    /// Share of these answers that come from users who answered before: the verdict counts one
    /// answer of each. 0 by default.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, hide_default_value = true)]
    #[serde(default)]
    #[schema(minimum = 0.0, maximum = 0.99)]
    pub repeats: f64,
    /// Confidence of the verdict. 0.95 by default.
    #[arg(long, value_name = "SHARE", default_value_t = default_confidence(), hide_default_value = true)]
    #[serde(default = "default_confidence")]
    #[schema(minimum = 0.5, maximum = 0.9999)]
    pub confidence: f64,
    /// Differences up to this size do not matter. 0.01 by default.
    #[arg(long, value_name = "SHARE", default_value_t = default_margin(), hide_default_value = true)]
    #[serde(default = "default_margin")]
    #[schema(minimum = 0.0, maximum = 0.2)]
    pub margin: f64,
    /// The time that there is, for the smallest difference that it can show. 14 by default.
    #[arg(long, value_name = "DAYS", default_value_t = default_days(), hide_default_value = true)]
    #[serde(default = "default_days")]
    #[schema(minimum = 0.01, maximum = 3650.0)]
    pub days: f64,
}

fn default_answered() -> f64 {
    0.3
}

fn default_confidence() -> f64 {
    0.95
}

fn default_margin() -> f64 {
    0.01
}

fn default_days() -> f64 {
    14.0
}

/// How long an experiment will take.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PlanReport {
    pub sentence: String,
    /// Until the verdict, from simulations of the default policy; `null` if most simulations had
    /// none within the time of a plan.
    pub pages: Option<Expected>,
    pub days: Option<Expected>,
    /// The cost of these pages: on so many more of them a user preferred the best ranker than if it
    /// was shown alone.
    pub regret_pages: Option<f64>,
    /// The smallest difference that half of such experiments show within `days` of the request;
    /// `null` if no simulation ended.
    pub smallest_difference: Option<f64>,
    /// Days until the verdict for several differences, ascending.
    pub curve: Vec<DaysOf>,
}

/// A forecast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Expected {
    /// Half of such experiments take less.
    pub median: f64,
    /// Nine of ten such experiments take less; `null` where too few simulations ended to tell.
    pub high: Option<f64>,
}

/// Days until the verdict for one difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct DaysOf {
    /// By how much the best ranker beats the second best, above one half.
    pub difference: f64,
    pub days: Expected,
}

impl PlanRequest {
    fn errors(&self) -> Vec<FieldError> {
        let &Self { rankers, difference, pages_per_day, answered, repeats, confidence, .. } = self;
        let (margin, days) = (self.margin, self.days);
        let checks = [
            ((2..=RANKERS_MAX).contains(&rankers), "rankers", rankers as f64, "2 to 100"),
            (
                DIFFERENCES.contains(&difference),
                "difference",
                difference,
                "0.0001 to 0.45: 0.04 stands for a best ranker that wins 54 %",
            ),
            (
                (1.0..=PAGES_MAX).contains(&pages_per_day),
                "pages_per_day",
                pages_per_day,
                "1 to 1,000,000,000",
            ),
            (ANSWERED.contains(&answered), "answered", answered, "0.001 to 1"),
            ((0.0..=REPEATS_MAX).contains(&repeats), "repeats", repeats, "0 to 0.99"),
            (CONFIDENCE.contains(&confidence), "confidence", confidence, "0.5 to 0.9999"),
            (MARGIN.contains(&margin), "margin", margin, "0 to 0.2"),
            (DAYS.contains(&days), "days", days, "0.01 to 3650"),
        ];
        let wrong = checks.into_iter().filter(|(right, ..)| !right);
        wrong
            .map(|(_, field, value, range)| {
                let detail = format!("`{field}` is {value:?}; it must be {range}");
                FieldError::new(format!("/{field}"), detail)
            })
            .collect()
    }

    /// The plan, computed here. `is_awaited` is asked from time to time.
    pub fn report(&self, is_awaited: impl Fn() -> bool) -> Result<PlanReport, ServiceError> {
        ServiceError::unless_valid(self.errors())?;
        let question = Question {
            rankers: self.rankers,
            difference: self.difference,
            target: Target { confidence: self.confidence, margin: self.margin },
            counting: self.answered * (1.0 - self.repeats),
        };
        let begun = Instant::now();
        let go_on = || begun.elapsed() < TIME_LIMIT && is_awaited();
        let budget = plan_budget(self.rankers);
        let plan = plan(&question, budget, go_on, &mut step_rng(SEED, 0))
            .map_err(|error| ServiceError::internal(error.to_string()))?;
        let smallest = plan.smallest_difference(self.days * self.pages_per_day);
        // differences within the margin are not shown
        let smallest = smallest.map(|difference| difference.max(self.margin));
        let days = |pages: &Pages| Expected {
            median: two_digits(pages.median / self.pages_per_day),
            high: pages.high.map(|high| two_digits(high / self.pages_per_day)),
        };
        let curve = plan.curve.iter();
        let curve = curve.map(|of| DaysOf { difference: of.difference, days: days(of) }).collect();
        let pages = plan.pages.ok();
        Ok(PlanReport {
            sentence: self.sentence(plan.pages, smallest),
            pages: pages.map(|pages| Expected {
                median: rounded(pages.median) as f64,
                high: pages.high.map(|high| rounded(high) as f64),
            }),
            days: pages.as_ref().map(days),
            regret_pages: pages.map(|pages| two_digits(pages.regret)),
            smallest_difference: smallest.map(two_digits),
            curve,
        })
    }

    fn sentence(&self, pages: Result<Pages, f64>, smallest: Option<f64>) -> String {
        let of_days = |pages: f64| days_in_words(two_digits(pages / self.pages_per_day));
        let of_pages = |pages: f64| grouped(rounded(pages), ',');
        let mut text = match pages {
            Ok(Pages { median, high, regret, .. }) => {
                let mut text =
                    format!("Half of such experiments have a verdict within {}", of_days(median));
                if let Some(high) = high {
                    let _ = write!(text, ", nine of ten within {}", of_days(high));
                }
                let regret = grouped(two_digits(regret).round() as u64, ',');
                let (median, noun) =
                    (of_pages(median), if regret == "1" { "page" } else { "pages" });
                let _ = write!(
                    text,
                    ": {median} pages by the median. On {regret} {noun} of these a user prefers the \
                     best ranker to the shown ones."
                );
                text
            }
            Err(reached) => format!(
                "More than {}: most simulations had no verdict after {} pages. Raise the smallest \
                 difference or the margin, or compare fewer rankers.",
                of_days(reached),
                of_pages(reached)
            ),
        };
        if let Some(smallest) = smallest {
            let _ = write!(
                text,
                " In {} half of them show a best ranker that wins {:.1} % or more against the second \
                 best.",
                days_in_words(self.days),
                100.0 * (0.5 + two_digits(smallest))
            );
        }
        text
    }
}

/// Plan an experiment, on a thread for reports. An invalid request is refused without waiting for
/// one.
pub async fn planned(
    reports: &Arc<ReportPool>,
    request: PlanRequest,
) -> Result<PlanReport, ServiceError> {
    ServiceError::unless_valid(request.errors())?;
    reports.threads.run_awaited(move |is_awaited| request.report(is_awaited)).await?
}

fn two_digits(number: f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    // the text has the digits, without the rounding errors of powers of ten
    format!("{number:.1e}").parse().unwrap_or(number)
}

fn days_in_words(days: f64) -> String {
    match days {
        1.0 => "1 day".into(),
        days if days >= 1000.0 => format!("{} days", grouped(days.round() as u64, ',')),
        days => format!("{days} days"),
    }
}
