//! How long an experiment will take, before it is created.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::sync::Arc;

use clap::Args;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::service::error::ServiceError;
use crate::service::reports::duels_to_go::rounded;
use crate::service::reports::plan_orders::{COUNTED, PlannedOrders};
use crate::service::reports::pool::ReportPool;
use crate::service::reports::words::{days_in_words, grouped, two_digits};
use dueling_bandits::evidence::Target;
use dueling_bandits::forecast::plan::{self, DIFFERENCE_MAX, Pages, Plan, Question, plan_budget};
use dueling_bandits::step_rng;
use rankduel_engine::experiment_spec::{CONFIDENCE, FieldError, MARGIN, percent_hint};

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
/// Valid shares of pages with an order.
const ORDERS: RangeInclusive<f64> = 0.00001..=1.0;
const WINDOW: RangeInclusive<u32> = 60..=2_419_200;
const ARRIVAL_MAX: u32 = 604_800;
const ANSWER_MAX: u32 = 2_592_000;
/// The differences of the curve, in times of the one that is asked for.
const CURVE_FACTORS: [f64; 6] = [0.5, 0.7, 1.0, 1.4, 2.0, 4.0];
/// The seed of all plans: the same request gets the same plan.
const SEED: u64 = 0x706c_616e;

/// An experiment to plan.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema, Args)]
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
    /// By how much the best ranker beats each of the others, if you know: `rankers` - 2 numbers.
    /// Without them, the plan covers rosters from one close rival to equal rivals.
    #[arg(long, value_name = "SHARE,…", value_delimiter = ',')]
    #[serde(default)]
    #[schema(max_items = 98, example = json!([0.1, 0.2, 0.2, 0.3]))]
    pub others: Vec<f64>,
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
    /// Days that the experiment may take; the plan has the smallest difference that shows in this
    /// time. 14 by default.
    #[arg(long, value_name = "DAYS", default_value_t = default_days(), hide_default_value = true)]
    #[serde(default = "default_days")]
    #[schema(minimum = 0.01, maximum = 3650.0)]
    pub days: f64,
    /// Time after a page within which its answer comes, which the verdict waits for. An hour by
    /// default; not read if orders decide.
    #[arg(long, value_name = "SECONDS", default_value_t = default_answer_window(), hide_default_value = true)]
    #[serde(default = "default_answer_window")]
    #[schema(maximum = 2_592_000)]
    pub answer_window_seconds: u32,
    /// Share of these pages that have an order of one of their documents, if orders decide; then
    /// `answered` is not read.
    #[arg(long, value_name = "SHARE")]
    #[schema(minimum = 0.00001, maximum = 1.0, example = 0.025, nullable = false)]
    pub orders: Option<f64>,
    /// The window of orders: those that come within it after a page count. A week by default.
    #[arg(long, value_name = "SECONDS", default_value_t = default_window(), hide_default_value = true)]
    #[serde(default = "default_window")]
    #[schema(minimum = 60, maximum = 2_419_200)]
    pub window_seconds: u32,
    /// Time after an order within which its record arrives. An eighth of the window by default.
    #[arg(long, value_name = "SECONDS")]
    #[schema(maximum = 604_800, nullable = false)]
    pub arrival_seconds: Option<u32>,
    /// Share of the units that see one ranker alone, for the lift of orders. 0 by default.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, hide_default_value = true)]
    #[serde(default)]
    #[schema(minimum = 0.0, maximum = 0.5)]
    pub alone: f64,
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

fn default_answer_window() -> u32 {
    3600
}

fn default_window() -> u32 {
    7 * 86_400
}

/// How long an experiment will take.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PlanReport {
    pub sentence: String,
    /// One plan for each assumption on how far the rivals are behind the best ranker, from the
    /// shortest plan. Only `all-equal` with two rankers, only `given` with `others`. Empty if no
    /// number of pages shows the difference.
    pub rosters: Vec<PlannedRoster>,
    /// Days until half of such experiments have a verdict, for several differences, ascending.
    pub curve: Vec<DaysOf>,
    /// Only if orders decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub orders: Option<PlannedOrders>,
}

/// How far the rivals are behind the best ranker. The closest rival is behind by `difference`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rivals {
    /// The other rivals are behind by 0.28, or by three times `difference` if that is more.
    OneClose,
    /// Each further rival is behind by 1.7 times as much as the one before.
    Ladder,
    /// The other rivals are behind by the same.
    AllEqual,
    /// The other rivals are behind as the request says.
    Given,
}

impl From<plan::Rivals> for Rivals {
    fn from(rivals: plan::Rivals) -> Self {
        match rivals {
            plan::Rivals::OneClose => Self::OneClose,
            plan::Rivals::Ladder => Self::Ladder,
            plan::Rivals::AllEqual => Self::AllEqual,
            plan::Rivals::Given => Self::Given,
        }
    }
}

/// The plan for one roster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct PlannedRoster {
    pub rivals: Rivals,
    /// Number of pages until the verdict of the default policy.
    pub pages: Expected,
    pub days: Expected,
    /// The cost of these pages: the number of pages on which a user prefers the best ranker to the
    /// shown ones, beyond one half of all pages.
    pub regret_pages: f64,
    /// The smallest difference that half of such experiments show within `days` of the request;
    /// `null` if not even the largest one, 0.45.
    pub smallest_difference: Option<f64>,
    /// The difference that was simulated: that of the request, or a larger one from which `pages`
    /// are extrapolated.
    pub simulated_difference: f64,
}

/// A forecast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Expected {
    /// Half of such experiments take less.
    pub median: f64,
    /// Nine of ten such experiments take less.
    pub high: f64,
}

/// Days until half of the experiments with one difference have a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct DaysOf {
    /// By how much the best ranker beats the second best, above one half.
    pub difference: f64,
    /// Days for the roster that takes the shortest.
    pub shortest: f64,
    /// Days for the roster that takes the longest.
    pub longest: f64,
}

impl PlanRequest {
    /// All errors.
    pub fn errors(&self) -> Vec<FieldError> {
        let &Self { rankers, difference, pages_per_day, answered, repeats, confidence, .. } = self;
        let (margin, days, others) = (self.margin, self.days, self.others.len());
        let orders = self.orders.unwrap_or(1.0);
        let (window, arrival) = (self.window_seconds, self.arrival_seconds());
        let answer = self.answer_window_seconds;
        let differences = difference..=*DIFFERENCES.end();
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
            (ORDERS.contains(&orders), "orders", orders, "0.00001 to 1"),
            ((0.0..=0.5).contains(&self.alone), "alone", self.alone, "0 to 0.5"),
            (answer <= ANSWER_MAX, "answer_window_seconds", answer.into(), "0 to 2,592,000"),
            (WINDOW.contains(&window), "window_seconds", window.into(), "60 to 2,419,200"),
            (arrival <= ARRIVAL_MAX, "arrival_seconds", arrival.into(), "0 to 604,800"),
        ];
        let wrong = checks.into_iter().filter(|(right, ..)| !right);
        let mut errors: Vec<_> = wrong
            .map(|(_, field, value, range)| {
                let is_share = !(["rankers", "pages_per_day", "days"].contains(&field)
                    || field.ends_with("_seconds"));
                let hint = if is_share { percent_hint(value) } else { String::new() };
                // as it was written
                let is_whole = value.fract() == 0.0 && value.abs() < 1e15;
                let value = if is_whole { format!("{value}") } else { format!("{value:?}") };
                let detail = format!("`{field}` is {value}; it must be {range}{hint}");
                FieldError::new(format!("/{field}"), detail)
            })
            .collect();
        let of_orders = [
            ("alone", self.alone != 0.0),
            ("window_seconds", window != default_window()),
            ("arrival_seconds", self.arrival_seconds.is_some()),
        ];
        let without = of_orders.into_iter().filter(|(_, given)| *given && self.orders.is_none());
        errors.extend(without.map(|(field, _)| {
            let detail = format!("`{field}` is about orders: give their share, `orders`, too");
            FieldError::new(format!("/{field}"), detail)
        }));
        if others > 0 && others + 2 != rankers {
            let detail = format!("`others` has {others} numbers; it must have `rankers` - 2");
            errors.push(FieldError::new("/others", detail));
        }
        let wrong =
            self.others.iter().enumerate().filter(|(_, other)| !differences.contains(*other));
        errors.extend(wrong.map(|(place, other)| {
            let detail = format!("`others` has {other:?}; it must be `difference` to 0.45");
            FieldError::new(format!("/others/{place}"), detail)
        }));
        errors
    }

    /// The plan, computed here. The work is bounded, so that the same request gets the same plan on
    /// a busy machine. Once `is_awaited` says that the caller has gone, the work ends without a plan.
    pub fn report(&self, is_awaited: impl Fn() -> bool) -> Result<PlanReport, ServiceError> {
        ServiceError::unless_valid(self.errors())?;
        let question = Question {
            rankers: self.rankers,
            difference: self.difference,
            others: self.others.clone(),
            target: Target { confidence: self.confidence, margin: self.margin },
            counting: self.orders.map_or(self.answered, |orders| COUNTED * orders)
                * (1.0 - self.repeats),
            late: self.orders.map_or(0.0, |_| self.order_days() * self.pages_per_day),
        };
        let budget = plan_budget(self.rankers);
        let plans = plan::plan(&question, budget, is_awaited, &mut step_rng(SEED, 0))
            .map_err(|error| ServiceError::internal(error.to_string()))?
            .ok_or_else(|| ServiceError::internal("nobody waits for the plan"))?;
        let rosters: Vec<_> = plans.iter().filter_map(|plan| self.roster(plan)).collect();
        // `pages_per_day` are those of the other units
        let alone_per_day = self.pages_per_day * self.alone / (1.0 - self.alone);
        let orders = self.orders.map(|share| {
            PlannedOrders::of(share, alone_per_day, self.wait_days(), 1.0 - self.confidence)
        });
        let mut sentence = self.sentence(&rosters, &plans);
        if let (Some(planned), Some(share)) = (&orders, self.orders) {
            sentence += &planned.sentence(share);
        }
        Ok(PlanReport { sentence, curve: self.curve(&plans), rosters, orders })
    }

    fn arrival_seconds(&self) -> u32 {
        self.arrival_seconds.unwrap_or(self.window_seconds / 8)
    }

    /// Days from a page until it counts.
    fn wait_days(&self) -> f64 {
        let of_orders = f64::from(self.window_seconds) + f64::from(self.arrival_seconds());
        let of_answers = f64::from(self.answer_window_seconds);
        if self.orders.is_some() { of_orders / 86_400.0 } else { of_answers / 86_400.0 }
    }

    /// Mean days from a page to its order: half a day if the window is a week, as in the simulated
    /// shop.
    fn order_days(&self) -> f64 {
        f64::from(self.window_seconds) / 86_400.0 / 14.0
    }

    /// Days until so many pages count.
    fn days_of(&self, pages: f64) -> f64 {
        two_digits(pages / self.pages_per_day + self.wait_days())
    }

    /// Pages that count within the days of the request.
    fn pages_in_time(&self) -> f64 {
        (self.days - self.wait_days()).max(0.0) * self.pages_per_day
    }

    /// The plan of one roster; `None` if no number of pages shows the difference.
    fn roster(&self, plan: &Plan) -> Option<PlannedRoster> {
        let Pages { median, high, regret } = plan.pages(self.difference)?;
        let days = |pages: f64| self.days_of(pages);
        let smallest = plan.smallest_difference(self.pages_in_time());
        Some(PlannedRoster {
            rivals: plan.rivals().into(),
            pages: Expected { median: rounded(median) as f64, high: rounded(high) as f64 },
            days: Expected { median: days(median), high: days(high) },
            regret_pages: two_digits(regret),
            // differences within the margin are not shown
            smallest_difference: smallest.map(|it| two_digits(it.max(self.margin))),
            simulated_difference: plan.simulated(),
        })
    }

    fn curve(&self, plans: &[Plan]) -> Vec<DaysOf> {
        let differences = CURVE_FACTORS.map(|times| times * self.difference);
        let plausible = differences.into_iter().filter(|&it| it <= DIFFERENCE_MAX);
        let of = |difference| {
            let all = plans.iter().map(|plan| plan.pages(difference));
            let days = all.map(|pages| Some(self.days_of(pages?.median)));
            let days: Vec<f64> = days.collect::<Option<_>>()?;
            let shortest = days.iter().copied().fold(f64::INFINITY, f64::min);
            let longest = days.iter().copied().fold(0.0, f64::max);
            Some(DaysOf { difference, shortest, longest })
        };
        plausible.filter_map(of).collect()
    }

    fn sentence(&self, rosters: &[PlannedRoster], plans: &[Plan]) -> String {
        let (Some(first), Some(last)) = (rosters.first(), rosters.last()) else {
            return format!(
                "A difference of {} is too small to be shown at a margin of {}. Raise the smallest \
                 difference or the margin.",
                self.difference, self.margin
            );
        };
        let is_range = rosters.len() > 1;
        let median = |roster: &PlannedRoster| days_in_words(roster.days.median);
        let high = days_in_words(last.days.high);
        let mut text = match is_range {
            true => format!(
                "Half of such experiments have a verdict within {} if one rival is close to the \
                 best ranker and the others are far behind, and within {} if all rivals are \
                 equally close; nine of ten of these within {high}",
                median(first),
                median(last),
            ),
            false => format!(
                "Half of such experiments have a verdict within {}, nine of ten within {high}",
                median(first)
            ),
        };
        let range = |of: fn(&PlannedRoster) -> f64| {
            let [least, most] = [first, last].map(|it| grouped(of(it).round() as u64, ','));
            if least == most { most } else { format!("{least} to {most}") }
        };
        let regret = range(|it| it.regret_pages);
        let noun = if regret == "1" { "page" } else { "pages" };
        let _ = write!(
            text,
            ": {} pages by the median. On {regret} {noun} of these a user prefers the best ranker \
             to the shown ones. {}",
            range(|it| it.pages.median),
            self.shown_in_time([first, last], plans)
        );
        if rosters.iter().any(|it| it.simulated_difference > self.difference) {
            text += " This is extrapolated from larger differences, and may be too short by half.";
        }
        text
    }

    /// The smallest difference that the days of the request show.
    fn shown_in_time(&self, [first, last]: [&PlannedRoster; 2], plans: &[Plan]) -> String {
        let days = days_in_words(self.days);
        let wins = |difference: f64| format!("{:.1} %", 100.0 * (0.5 + difference));
        let Some(smallest) = first.smallest_difference else {
            let largest = plans.first().and_then(|plan| plan.pages(DIFFERENCE_MAX));
            return format!(
                "In {days} they show no difference: {} pages, and a best ranker that wins {} takes \
                 {}.",
                grouped(self.pages_in_time().round() as u64, ','),
                wins(DIFFERENCE_MAX),
                largest.map_or_else(String::new, |it| grouped(rounded(it.median), ',')),
            );
        };
        let against_equals = match last.smallest_difference {
            Some(same) if same == smallest => String::new(),
            Some(larger) => format!(", and {} or more if all are equally close", wins(larger)),
            None => ", and no difference if all are equally close".into(),
        };
        format!(
            "In {days} half of them show a best ranker that wins {} or more against the second \
             best{against_equals}.",
            wins(smallest)
        )
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
