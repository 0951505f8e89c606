//! Orders in the verdict: how they found their pages, how many wait, the clicks beside them, and
//! the lift of the leader.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::reports::plan_orders::ordering_units;
use crate::service::reports::verdict_pairs::Effect;
use crate::service::reports::words::{grouped, moment, two_digits};
use dueling_bandits::orders::{Join, Left, Lift};
use rankduel_engine::clock::rfc3339;
use rankduel_engine::cohorts::SLACK_MS;
use rankduel_engine::experiment_spec::{DecideBy, OrderMeasure};
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// Fewest ordering units before a lift is stated.
const LIFT_ORDERS: u32 = 500;
/// The half width of a lift that the sentence about more units is about.
const LIFT_WIDTH: f64 = 0.1;

/// Orders, in an experiment that they decide.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = OrdersReport)]
pub struct OrdersView {
    /// How many have ordered, when they count, and how long orders take.
    pub sentence: String,
    /// Units that clicked, and those of them that ordered what they had clicked.
    pub units: u64,
    pub ordered: u64,
    /// Baskets that have closed: each counts as one answer if its unit has ordered.
    pub closed: u64,
    /// When the next basket closes; `null` if none is open.
    #[schema(format = DateTime)]
    pub next_closes_at: Option<String>,
    /// Half of the orders, and nine tenths, come within this time after the first page.
    pub half_within_seconds: Option<i64>,
    pub most_within_seconds: Option<i64>,
    /// Numbers of lines, by how they found a page of their unit: `credited`, `of_both` rankers,
    /// `not_clicked`, of units shown one ranker `alone`, `unit_unknown`, `before_page`, `late`, and
    /// `returning` after the basket closed.
    #[schema(value_type = Object)]
    pub joined: Join,
    /// Share of units whose baskets are kept; below 1 if they would take too much memory.
    pub sampled: f64,
    /// The preference by clicks, and how often it agrees with orders.
    pub clicks: Option<String>,
    /// The lift of the leader over the control, shown `alone`: `sentence`, `units` and `ordered` of
    /// both, the intervals of `orders` and `money` (0.1 for 10 % more), and their `error`.
    #[schema(value_type = Option<Object>)]
    pub lift: Option<LiftView>,
    /// As in `by orders`.
    #[serde(skip)]
    pub by: String,
    /// As in `within 7 days of their first page`.
    #[serde(skip)]
    pub within: String,
}

/// The lift of the leader over the control, shown alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiftView {
    /// A sentence for people.
    pub sentence: String,
    /// Units that saw the leader alone, and the control.
    pub units: [u64; 2],
    /// Those that ordered.
    pub ordered: [u32; 2],
    /// The interval of the relative lift of orders: 0.1 for 10 % more. It holds at all times.
    pub orders: [f64; 2],
    /// That of money; `null` if lines count.
    pub money: Option<[f64; 2]>,
    /// Share of experiments in which an interval is ever wrong.
    pub error: f64,
}

/// The copied part of the fold.
#[derive(Debug, Clone)]
pub(super) struct OrdersInput {
    decide_by: DecideBy,
    open: (u64, u64),
    ordered: (u64, u64),
    next_closes_ms: Option<i64>,
    left: Left,
    sampled: f64,
    control: Option<usize>,
    rankers: usize,
}

impl OrdersInput {
    pub(super) fn of(fold: &Fold) -> Option<Self> {
        let (state, baskets) = (fold.state(), fold.state().baskets.as_deref()?);
        Some(Self {
            decide_by: state.spec.decide_by.clone()?,
            open: baskets.units(),
            ordered: baskets.ordered(),
            next_closes_ms: next_closes_ms(fold),
            left: baskets.left().clone(),
            sampled: baskets.sampled(),
            control: state.spec.control_index(),
            rankers: state.spec.rankers.len(),
        })
    }

    /// The view, where `leader` leads with these `effects`, at this confidence.
    pub(super) fn view(
        &self,
        loaded: &LoadedExperiment,
        leader: usize,
        effects: &[Effect],
        confidence: f64,
    ) -> OrdersView {
        let name = |ranker: usize| loaded.spec.rankers[ranker].id.as_str();
        let rival = effects.first().and_then(|it| loaded.spec.ranker_index(&it.rival));
        let ((open, closed), (now, before)) = (self.open, self.ordered);
        OrdersView {
            sentence: self.sentence(),
            units: open + closed,
            ordered: now + before,
            closed,
            next_closes_at: self.next_closes_ms.map(rfc3339),
            half_within_seconds: self.within_seconds(0.5),
            most_within_seconds: self.within_seconds(0.9),
            joined: self.left.join,
            sampled: self.sampled,
            clicks: effects.first().zip(rival).and_then(|(effect, rival)| {
                let clicks = self.clicks((leader, rival), (name(leader), effect), confidence)?;
                Some(match loaded.spec.rankers.len() {
                    2 => clicks,
                    _ => format!("Of `{}` and `{}`: {clicks}", name(leader), effect.rival),
                })
            }),
            lift: self.lift((leader, rival), &name, 1.0 - confidence),
            by: match (self.decide_by.by, &*self.decide_by.event) {
                (OrderMeasure::Money, _) => "by money".into(),
                (OrderMeasure::Orders, "order") => "by orders".into(),
                (OrderMeasure::Orders, event) => format!("by `{event}`"),
            },
            within: duration(i64::from(self.decide_by.window_seconds)),
        }
    }

    fn within_seconds(&self, share: f64) -> Option<i64> {
        self.left.delays.quantile(share).map(|it| it / 1000)
    }

    fn sentence(&self) -> String {
        let ((open, closed), (now, before)) = (self.open, self.ordered);
        let (clicked, ordered) = (open + closed, now + before);
        if clicked == 0 {
            return "Nobody has clicked yet.".into();
        }
        let number = |number| grouped(number, ',');
        let has = if ordered == 1 { "has" } else { "have" };
        let closed = match closed {
            0 => "no basket is closed yet".into(),
            1 => "1 basket is closed".into(),
            closed => format!("{} baskets are closed", number(closed)),
        };
        let next = self.next_closes_ms.map(|at| format!(", and the next closes at {}", moment(at)));
        let mut sentence = format!(
            "{} of {} people who clicked {has} ordered; {closed}{}.",
            number(ordered),
            number(clicked),
            next.unwrap_or_default()
        );
        if let [Some(half), Some(most)] = [0.5, 0.9].map(|share| self.within_seconds(share)) {
            let (half, long) = (duration(rounded(half)), duration(rounded(most)));
            sentence +=
                &format!(" Half of the orders come within {half}, nine of ten within {long}");
            let is_shorter = 2 * most < i64::from(self.decide_by.window_seconds);
            let shorter = format!(": a window of {long} would wait less.");
            sentence += if is_shorter { &shorter } else { "." };
        }
        sentence
    }

    fn clicks(
        &self,
        (leader, rival): (usize, usize),
        (name, effect): (&str, &Effect),
        confidence: f64,
    ) -> Option<String> {
        let agreement = self.left.beside.agreement(confidence);
        let both = agreement.agree + agreement.disagree;
        if both == 0 {
            return None;
        }
        let clicks = self.left.beside.clicks_interval((leader, rival), self.rankers, confidence);
        let preferred = |(low, high): (f64, f64)| match (low > 0.5, high < 0.5) {
            (true, _) => format!("prefer `{name}` ({})", range(low, high)),
            (_, true) => format!("prefer `{}` ({})", effect.rival, range(1.0 - high, 1.0 - low)),
            _ => format!("may prefer either (`{name}` has {})", range(low, high)),
        };
        let agree = f64::from(agreement.agree) / f64::from(both);
        let (low, high) = agreement.interval;
        Some(format!(
            "Clicks {}, orders {}. They agree in {:.0} % of baskets ({}). Orders decide.",
            preferred(clicks),
            preferred((effect.low, effect.high)),
            100.0 * agree,
            range(low, high)
        ))
    }

    /// The lift of the leader, or of its nearest rival if the leader is the control.
    fn lift<'a>(
        &self,
        (leader, rival): (usize, Option<usize>),
        name: &impl Fn(usize) -> &'a str,
        error: f64,
    ) -> Option<LiftView> {
        let control = self.control?;
        let ranker = if leader == control { rival? } else { leader };
        let Lift { arms, error, orders, money } = self.left.lifts.lift(ranker, control, error)?;
        let (units, ordered) = (arms.units.iter().sum::<u64>(), arms.ordered.iter().sum::<u32>());
        let (own, other) = (name(ranker), name(control));
        let sentence = if ordered < LIFT_ORDERS {
            let missing = ordering_units(LIFT_WIDTH, error).saturating_sub(ordered.into()) as f64;
            let more = two_digits(missing * units as f64 / f64::from(ordered)) as u64;
            let more = match ordered {
                0 => String::new(),
                _ => format!(": ± 10 % takes about {} more units", grouped(more, ',')),
            };
            format!(
                "Shown alone, `{own}` and `{other}` have too few orders to compare{more}. So far \
                 {} of {} units have ordered.",
                grouped(ordered.into(), ','),
                grouped(units, ',')
            )
        } else {
            let money = money.map(|money| format!(", and {} money", more_or_less(money)));
            format!(
                "Shown alone, `{own}` brings {} orders{} from each unit than `{other}` ({} units, \
                 with {:.0} % confidence at all times).",
                more_or_less(orders),
                money.unwrap_or_default(),
                grouped(units, ','),
                100.0 * (1.0 - error)
            )
        };
        let ends = |(low, high): (f64, f64)| [low, high.min(f64::MAX)];
        Some(LiftView {
            sentence,
            units: arms.units,
            ordered: arms.ordered,
            orders: ends(orders),
            money: money.map(ends),
            error,
        })
    }
}

/// When the oldest open basket closes, in Unix milliseconds.
pub(super) fn next_closes_ms(fold: &Fold) -> Option<i64> {
    let end = fold.has_open_baskets().then(|| fold.oldest_cohort_end()).flatten()?;
    Some(end + fold.run().cohorts().window_ms() + SLACK_MS)
}

/// Shares as text, from the lower to the higher.
pub(super) fn range(low: f64, high: f64) -> String {
    format!("{:.0} to {:.0} %", 100.0 * low, 100.0 * high)
}

/// An interval of a lift, as in `2 % less to 19 % more`.
fn more_or_less((low, high): (f64, f64)) -> String {
    let end = |lift: f64| match (100.0 * lift).round() {
        percent if percent < 0.0 => format!("{} % less", -percent),
        percent if percent > 1e6 => "any number more".into(),
        percent => format!("{percent} % more"),
    };
    format!("{} to {}", end(low), end(high))
}

/// Seconds, to the unit that people would say.
fn rounded(seconds: i64) -> i64 {
    let unit = [86_400, 3600, 60].into_iter().find(|unit| seconds >= 2 * unit).unwrap_or(60);
    (seconds + unit - 1) / unit * unit
}

/// Seconds in the largest unit that they are a multiple of.
fn duration(seconds: i64) -> String {
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds % unit == 0).unwrap_or((1, "s"));
    let count = seconds / unit;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}
