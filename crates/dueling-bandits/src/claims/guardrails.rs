//! Guardrails: does a ranker do harm by a metric, such as its latency, or is it safe?
//!
//! A page of two rankers has values of both for each metric. A metric has a limit of the mean, a
//! limit of the difference to the control on the same page, or both. For each ranker, metric and
//! kind of limit there are two claims, harm and safe, with the evidence of
//! [`betting`](crate::claims::betting). Where higher values are better, `cap - y` takes the place of
//! a value y.
//!
//! # Which pages count
//!
//! Other pages than those of the verdict. A page without results gets no click: if only answers
//! counted, a ranker that often returns nothing would never be found. So every issued page counts,
//! whatever its outcome. A value that is missing when its window has ended is the worst one for
//! either claim: otherwise a back end that fails would report nothing and be safe, and one that
//! reports nothing would do harm. Of a difference, one missing value is enough.
//!
//! Of a unit, the page that was issued first counts, of all pages with the ranker, and for a
//! difference of all pages of the ranker with the control.
//!
//! Slow values come late, so pages are collected in cohorts by their time of issue, on a clock of
//! their own. A cohort counts as a whole once its window has ended, and claims are checked after
//! each cohort. A full cohort keeps the pages whose hashes are smallest.
//!
//! # Metrics of a page
//!
//! Revenue or dwell time belong to the page as a whole, and an interleaved page blends two rankers.
//! Such metrics are judged on pages that show the leader x or the control c [alone](super::alone),
//! by a fair coin `s = ±1` of the unit. With the value y and a forecast f, the mean of `2 s (y - f)`
//! given all before the page is `(μ_x - f) - (μ_c - f) = μ_x - μ_c`, if f does not depend on the
//! coin: the mean of the values that were counted before. Without a forecast it would take 1.7
//! times as many pages at a rate of 0.2.
//!
//! Of a unit, its first page counts, whatever the pair: later ones depend on what it has seen by
//! its coin. The pair (x, c) is the one at the time of issue, in both arms. Another leader has a
//! table of its own, which goes on if it leads again; another control starts anew, as for
//! differences.
//!
//! # Errors
//!
//! That any ranker is found harmful though it is not has the error δ, and that any is found safe
//! though it is not has another δ. Each δ is shared in equal parts over rankers and limits; 0.9 of
//! it are for the rankers of the start, and `0.1 / (j (j + 1))` for the j-th that came later. Of
//! the part for differences, 0.9 are for the first control, and the rest is shared by the later
//! ones in the same way: their evidence starts anew, so each needs an error of its own.
//!
//! Safety is about whole differences. Harm is found by whole ones, with a fifth of the part for the
//! difference, or by [cut](crate::claims::betting) ones, with the rest. The two together err no more
//! than that part.
//!
//! The parts are fixed, so that any of the claims is wrong has at most their sum, whatever each
//! evidence depends on. That is why metrics of a page can count on the clock of the values and have
//! the same part of δ as those of rankers: nothing is staked from one table on another, which alone
//! would need one clock for both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::claims::Latch;
use crate::claims::betting::{Bets, Counts, Side};
use crate::claims::guardrails::metric::Rule;
use crate::claims::guardrails::pages::Cohort;
use crate::evidence::cohorts::Window;
use crate::evidence::seen_units::SeenUnits;

mod metric;
mod pages;

pub use metric::Metric;
pub use pages::{Page, PageState, Values};

/// Share of the error for the rankers, and the control, that were first.
pub(crate) const FIRST: f64 = 0.9;
/// Bytes that a map takes for each entry beside the entry itself, about.
const MAP_BYTES: usize = 16;

/// Allows for rounding where an upper bound of the evidence is compared.
const ROUNDED: f64 = 1.0 - 1e-9;

/// The kinds of limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A limit of the mean value.
    Limit,
    /// A limit of the difference to the control: between values on the same page or, for metrics of
    /// a page, between values on different pages.
    Difference,
}

impl Kind {
    /// Its name, such as `limit`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Difference => "difference",
        }
    }
}

const KINDS: [Kind; 2] = [Kind::Limit, Kind::Difference];

/// A claim, decided or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claim {
    /// The ranker that the claim is about.
    pub ranker: usize,
    /// The number of the metric.
    pub metric: usize,
    /// The kind of limit that the claim is about.
    pub kind: Kind,
    /// Harm or safe.
    pub side: Side,
    /// The claim is wrong in at most this share of experiments.
    pub error: f64,
    /// Number of pages that count.
    pub pages: u64,
    /// Number of these pages without a value; for a difference, those that lack one of the two.
    pub missing: u64,
    /// The largest share of pages without a value that cannot break the limit by itself.
    pub missing_bearable: f64,
    /// The mean of the values that came, or by how much they are worse than the control on average.
    pub mean: Option<f64>,
    /// The size at which differences are cut, also in the mean, if harm was found by cut ones.
    pub cut: Option<f64>,
    /// Number of pages when the claim was decided.
    pub decided_after: Option<u64>,
}

/// The guardrails of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guardrails {
    /// Unix milliseconds; pages issued before this time come too late.
    complete_until: i64,
    /// Cohorts that are not complete, by their start.
    open: BTreeMap<i64, Cohort>,
    seen: SeenUnits,
    /// Number of rankers at the start.
    initial: u16,
    /// The counts, by ranker, metric and kind: see [`Self::table`].
    tables: Vec<Table>,
    /// By metric, the sum of the values that were counted on pages of one ranker alone.
    sums: Vec<Sum>,
    control: Option<u16>,
    /// How many controls there have been.
    controls: u16,
    /// The next control, and the start of the first cohort from which on it is the control.
    next: Option<(u16, i64)>,
    #[serde(skip)]
    rules: Vec<Rule>,
    #[serde(skip)]
    window: Window,
    #[serde(skip)]
    error: f64,
    #[serde(skip)]
    seed: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Table {
    /// Counts of the values that came.
    counts: Counts,
    /// Counts of the same values after cutting them, if differences are cut.
    cut: Counts,
    /// Number of pages without a value.
    missing: u32,
    harm: Latch,
    /// Whether harm was found by cut differences.
    by_cut: bool,
    safe: Latch,
}

/// The sum of some values and their number, from which the next value is forecast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Sum {
    sum: f64,
    values: f64,
}

impl Sum {
    /// Before the first value: one imagined value of half the cap.
    fn new(metric: &Metric) -> Self {
        Self { sum: 0.5 * metric.cap, values: 1.0 }
    }

    fn mean(self) -> f64 {
        self.sum / self.values
    }

    fn add(&mut self, value: f64) {
        self.sum += value;
        self.values += 1.0;
    }
}

impl Guardrails {
    /// Guardrails before the first page. `control` is the ranker that people see today, and `error`
    /// the error of each of the two families, harm and safe.
    pub fn new(
        metrics: &[Metric],
        window_ms: i64,
        error: f64,
        seed: u64,
        rankers: usize,
        control: Option<usize>,
    ) -> Self {
        Self {
            complete_until: i64::MIN,
            open: BTreeMap::new(),
            seen: SeenUnits::default(),
            initial: rankers as u16,
            tables: vec![Table::default(); rankers * metrics.len() * KINDS.len()],
            sums: metrics.iter().map(Sum::new).collect(),
            control: control.map(|control| control as u16),
            controls: u16::from(control.is_some()),
            next: None,
            rules: metrics.iter().map(Rule::new).collect(),
            window: Window::new(window_ms),
            error,
            seed,
        }
    }

    /// Decoded guardrails with the parts that are not saved; `None` if they do not fit this many
    /// rankers.
    pub fn restored(
        self,
        metrics: &[Metric],
        window_ms: i64,
        error: f64,
        seed: u64,
        rankers: usize,
    ) -> Option<Self> {
        let controls = self.control.into_iter().chain(self.next.map(|(next, _)| next));
        let is_sound = self.tables.len() == rankers * metrics.len() * KINDS.len()
            && self.sums.len() == metrics.len()
            && self.sums.iter().all(|it| it.sum.is_finite() && it.values >= 1.0)
            && (1..=rankers).contains(&usize::from(self.initial))
            && self.seen.is_sound()
            && self.open.values().all(|cohort| cohort.is_sound(rankers, metrics.len()))
            && controls.into_iter().all(|control| usize::from(control) < rankers)
            && (self.control.is_none() || self.controls > 0);
        let rules = metrics.iter().map(Rule::new).collect();
        let window = Window::new(window_ms);
        is_sound.then_some(Self { rules, window, error, seed, ..self })
    }

    /// The error of all claims of harm, and that of all claims of safety.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// How many metrics there are.
    pub fn metrics(&self) -> usize {
        self.rules.len()
    }

    /// Estimated bytes in memory: those of the known units, the tables, and the pages that wait.
    pub fn bytes(&self) -> usize {
        let cohort = size_of::<(i64, Cohort)>() + MAP_BYTES;
        let pages: usize = self.open.values().map(|it| cohort + it.bytes()).sum();
        let rules = self.rules.len() * size_of::<Rule>();
        let tables = self.tables.len() * size_of::<Table>();
        self.seen.bytes() + pages + tables + rules
    }

    /// The ranker with which differences compare.
    pub fn control(&self) -> Option<usize> {
        self.control.map(usize::from)
    }

    /// One more ranker takes part.
    pub fn enlist(&mut self) {
        let tables = self.tables.len() + self.rules.len() * KINDS.len();
        self.tables.resize(tables, Table::default());
    }

    /// From the first cohort after this time on, `control` is the ranker that people see.
    pub fn name_control(&mut self, control: usize, at: i64) {
        let start = self.window.start_of_cohort(at.max(self.complete_until));
        let from = start + self.window.width_ms();
        self.next = Some((control as u16, from));
    }

    /// If the time of `next` has come at the time `at`, make it the control. Then clear the tables
    /// of differences, which compared with the old control.
    fn change_control(&mut self, at: i64) {
        let Some((control, _)) = self.next.take_if(|(_, from)| *from <= at) else { return };
        if self.control == Some(control) {
            return;
        }
        self.control = Some(control);
        self.controls = self.controls.saturating_add(1);
        let first_difference = Kind::Difference as usize;
        for differences in self.tables.iter_mut().skip(first_difference).step_by(KINDS.len()) {
            *differences = Table::default();
        }
    }

    /// The place of a table; the inverse of [`Self::subject`].
    fn table(&self, ranker: usize, metric: usize, kind: Kind) -> usize {
        (ranker * self.rules.len() + metric) * KINDS.len() + kind as usize
    }

    /// Decide the claims of a table whose evidence has reached the inverse of their error.
    fn check(&mut self, table: usize) {
        let (ranker, metric, kind) = self.subject(table);
        let part = self.error_of(ranker, kind);
        let pages = self.tables[table].pages();
        let rule = &self.rules[metric];
        let Some(whole) = &rule.bets[kind as usize] else { return };
        let Table { counts, cut, missing, harm, by_cut, safe } = &mut self.tables[table];
        let check = |latch: &mut Latch, bets: &Bets, side, counts: &Counts, error: f64| {
            let least = -libm::log(error) * ROUNDED;
            if latch.decided_at().is_none() && bets.ln_at_most(side, counts, *missing) >= least {
                latch.check(bets.ln(side, counts, *missing), error, pages);
            }
        };
        check(safe, whole, Side::Safe, counts, part);
        let [of_whole, of_cut] = rule.shares(kind);
        check(harm, whole, Side::Harm, counts, part * of_whole);
        if let Some(bets) = rule.cut(kind).filter(|_| harm.decided_at().is_none()) {
            check(harm, bets, Side::Harm, cut, part * of_cut);
            *by_cut = harm.decided_at().is_some();
        }
    }

    /// The ranker, metric and kind of a table.
    fn subject(&self, table: usize) -> (usize, usize, Kind) {
        let row = table / KINDS.len();
        (row / self.rules.len(), row % self.rules.len(), KINDS[table % KINDS.len()])
    }

    /// The error of a claim of harm, and of one of safety, by the module's rule: a part of
    /// [`Self::error`] for the ranker, and of that a part for the control.
    fn error_of(&self, ranker: usize, kind: Kind) -> f64 {
        let initial = usize::from(self.initial);
        let limits = |kind: Kind| {
            self.rules.iter().filter(|rule| rule.bets[kind as usize].is_some()).count() as f64
        };
        let (values, differences) = (limits(Kind::Limit), limits(Kind::Difference));
        // an initial ranker that is the control has no difference to itself
        let is_initial = self.control().is_some_and(|control| control < initial);
        let rivals = (initial - usize::from(is_initial)) as f64;
        let all = values * initial as f64 + differences * (initial as f64 - 1.0);
        let of_ranker = match ranker.checked_sub(initial) {
            Some(later) => share_of_later(later) / (values + differences),
            None if kind == Kind::Limit => FIRST / all,
            None => FIRST / all * (initial as f64 - 1.0) / rivals,
        };
        let of_control = match (kind, self.controls) {
            (Kind::Limit, _) => 1.0,
            (Kind::Difference, 0 | 1) => FIRST,
            (Kind::Difference, nth) => share_of_later(usize::from(nth) - 2),
        };
        self.error * of_ranker * of_control
    }

    /// All claims, by ranker, metric and kind, harm before safe. There are none about the
    /// difference of the control to itself, and none about differences without a control.
    pub fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        self.claims_where(|_| true)
    }

    /// The decided claims.
    pub fn decided(&self) -> impl Iterator<Item = Claim> + '_ {
        self.claims_where(|latch| latch.decided_at().is_some())
    }

    /// The value that the mean of a claim is proven to be worse than, for harm, or better than, for
    /// safety, with the error of the claim; `None` if nothing is proven. A decided claim stays
    /// decided, so its bound never comes back over its limit. For differences it is about how much
    /// worse the values are than those of the control.
    pub fn bound(&self, claim: &Claim) -> Option<f64> {
        let Claim { kind, side, .. } = *claim;
        let rule = self.rules.get(claim.metric)?;
        let table = self.tables.get(self.table(claim.ranker, claim.metric, kind))?;
        let [of_whole, of_cut] = rule.shares(kind);
        let cut = rule.cut(kind).filter(|_| claim.cut.is_some());
        let (bets, counts, share) = match (cut, side) {
            (Some(bets), _) => (bets, &table.cut, of_cut),
            (None, Side::Harm) => (rule.bets[kind as usize].as_ref()?, &table.counts, of_whole),
            (None, Side::Safe) => (rule.bets[kind as usize].as_ref()?, &table.counts, 1.0),
        };
        let bound = bets.bound(side, counts, table.missing, claim.error * share);
        let decided = claim.decided_after.and(rule.limit(kind));
        let both = bound.into_iter().chain(decided);
        let best = match side {
            Side::Harm => both.reduce(f64::max),
            Side::Safe => both.reduce(f64::min),
        };
        best.map(|bound| rule.value_of_badness(bound, kind))
    }

    fn claims_where(&self, is_wanted: fn(Latch) -> bool) -> impl Iterator<Item = Claim> + '_ {
        let sides = self.tables.iter().enumerate().flat_map(|(nth, table)| {
            [(Side::Harm, table.harm), (Side::Safe, table.safe)].map(|it| (nth, table, it))
        });
        let wanted = sides.filter(move |&(_, _, (_, latch))| is_wanted(latch));
        wanted.filter_map(|(nth, table, (side, latch))| {
            let (ranker, metric, kind) = self.subject(nth);
            let is_compared = self.control().is_some_and(|control| control != ranker);
            let rule = &self.rules[metric];
            let whole = rule.bets[kind as usize].as_ref()?;
            let cut = rule.cut(kind).filter(|_| side == Side::Harm && table.by_cut);
            let (bets, counts) = cut.map_or((whole, &table.counts), |bets| (bets, &table.cut));
            (kind == Kind::Limit || is_compared).then(|| Claim {
                ranker,
                metric,
                kind,
                side,
                error: self.error_of(ranker, kind),
                pages: table.pages(),
                missing: table.missing.into(),
                missing_bearable: rule.missing_bearable(kind),
                mean: rule.mean(bets, counts, kind),
                cut: cut.map(Bets::most),
                decided_after: latch.decided_at(),
            })
        })
    }
}

impl Table {
    fn pages(&self) -> u64 {
        self.counts.iter().chain([&self.missing]).map(|&count| u64::from(count)).sum()
    }
}

/// The share of the error for the later ranker or control with this number, from 0. All these
/// shares together are what [`FIRST`] leaves.
pub(crate) fn share_of_later(number: usize) -> f64 {
    let number = number as f64;
    (1.0 - FIRST) / ((number + 1.0) * (number + 2.0))
}
