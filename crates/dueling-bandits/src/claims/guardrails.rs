//! Guardrails: does a ranker do harm by a metric, such as its latency, or is it safe?
//!
//! A page of two rankers has values of both for each metric; higher is worse. A metric has a limit
//! of the mean, a limit of the difference to the control on the same page, or both. For each
//! ranker, metric and kind of limit there are two claims, harm and safe, with the evidence of
//! [`betting`](crate::claims::betting).
//!
//! # Which pages count
//!
//! Other pages than those of the verdict. A page without results gets no click: if only answers
//! counted, a ranker that often returns nothing would never be found. So every issued page counts,
//! whatever its outcome, and a value that is missing when its window has ended is the worst one.
//! Otherwise a back end that fails would report nothing and be safe.
//!
//! Of a unit, the page that was issued first counts, of all pages with the ranker, and for a
//! difference of all pages of the ranker with the control.
//!
//! Slow values come late, so pages are collected in cohorts by their time of issue, on a clock of
//! their own. A cohort counts as a whole once its window has ended, and claims are checked after
//! each cohort. A full cohort keeps the pages whose hashes are smallest.
//!
//! # Errors
//!
//! That any ranker is found harmful though it is not has the error δ, and that any is found safe
//! though it is not has another δ. Each δ is shared in equal parts over rankers and limits; 0.9 of
//! it are for the rankers of the start, and `0.1 / (j (j + 1))` for the j-th that came later. Of
//! the part for differences, 0.9 are for the first control, and the rest is shared by the later
//! ones in the same way: their evidence starts anew, so each needs an error of its own.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::claims::Latch;
use crate::claims::betting::{Bets, Counts, Side};
use crate::evidence::seen_units::{SeenUnits, mix};

/// Cohorts that a window is divided into, and the shortest one, in milliseconds.
const COHORTS: i64 = 512;
const SHORTEST_MS: i64 = 1000;
/// Most pages of one cohort.
const PAGES_MAX: usize = 2048;
/// Share of the error for the rankers, and the control, that were first.
const FIRST: f64 = 0.9;
/// Bytes that a map takes for each entry beside the entry itself, about.
const MAP_BYTES: usize = 16;

/// A metric of a ranker: a number for each page, higher is worse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Larger values count as this.
    pub cap: f64,
    /// A mean above it is harm, below it is safe: above 0, below the cap.
    pub limit: Option<f64>,
    /// The same for the difference to the control, above 0.
    pub difference: Option<f64>,
}

/// The kinds of limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of the value.
    Limit,
    /// Of its difference to that of the control on the same page.
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

/// A decided claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    /// Of this ranker.
    pub ranker: usize,
    /// The metric's number.
    pub metric: usize,
    /// Against this limit.
    pub kind: Kind,
    /// Harm or safe.
    pub side: Side,
    /// After so many pages.
    pub after: u64,
}

const KINDS: [Kind; 2] = [Kind::Limit, Kind::Difference];

/// A page, or some of its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Unix milliseconds at which its duel was issued.
    pub issued_at: i64,
    /// The rankers of its duel, which differ.
    pub pair: [u16; 2],
    /// The unit that saw it.
    pub unit: Option<u64>,
    /// The values of the first ranker by metric, and those of the second. What is missing may come
    /// later.
    pub values: [Vec<Option<f64>>; 2],
}

/// A claim, decided or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claim {
    /// Of this ranker.
    pub ranker: usize,
    /// The metric's number.
    pub metric: usize,
    /// Against this limit.
    pub kind: Kind,
    /// Harm or safe.
    pub side: Side,
    /// The claim is wrong in at most this share of experiments.
    pub error: f64,
    /// Pages that count.
    pub pages: u64,
    /// Their mean value, or mean difference.
    pub mean: Option<f64>,
    /// Number of pages when it was decided.
    pub decided_after: Option<u64>,
}

#[derive(Debug)]
struct Rule {
    cap: f64,
    /// By kind.
    bets: [Option<Bets>; 2],
}

/// The guardrails of an experiment.
#[derive(Debug)]
pub struct Guardrails {
    rules: Vec<Rule>,
    window_ms: i64,
    error: f64,
    seed: u64,
    state: State,
}

/// The saved state of [`Guardrails`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Pages issued before this time come too late.
    complete_until: i64,
    /// By the start of the cohort, then by a hash of the nonce and the nonce of the duel.
    open: BTreeMap<i64, BTreeMap<(u64, u128), Page>>,
    seen: SeenUnits,
    /// Rankers of the start.
    initial: u16,
    /// By ranker, metric and kind.
    tables: Vec<Table>,
    control: Option<u16>,
    /// How many controls there have been.
    controls: u16,
    /// A control for the cohorts from this time on.
    next: Option<(u16, i64)>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Table {
    counts: Counts,
    harm: Latch,
    safe: Latch,
}

impl Guardrails {
    /// Guardrails before the first page. `control` is the ranker that people see today, `error`
    /// that of each of the two families, harm and safe.
    pub fn new(
        metrics: &[Metric],
        window_ms: i64,
        (error, seed): (f64, u64),
        rankers: usize,
        control: Option<usize>,
    ) -> Self {
        let state = State {
            complete_until: i64::MIN,
            open: BTreeMap::new(),
            seen: SeenUnits::default(),
            initial: rankers as u16,
            tables: vec![Table::default(); rankers * metrics.len() * KINDS.len()],
            control: control.map(|control| control as u16),
            controls: u16::from(control.is_some()),
            next: None,
        };
        Self::with(metrics, window_ms, (error, seed), state)
    }

    fn with(metrics: &[Metric], window_ms: i64, (error, seed): (f64, u64), state: State) -> Self {
        let rule = |metric: &Metric| Rule {
            cap: metric.cap,
            bets: [
                metric.limit.map(|limit| Bets::on_value(metric.cap, limit)),
                metric.difference.map(Bets::on_difference),
            ],
        };
        Self { rules: metrics.iter().map(rule).collect(), window_ms, error, seed, state }
    }

    /// The guardrails that [`Guardrails::state`] was taken from; `None` if it does not fit.
    pub fn restore(
        metrics: &[Metric],
        window_ms: i64,
        (error, seed): (f64, u64),
        rankers: usize,
        state: State,
    ) -> Option<Self> {
        let page = |page: &Page| {
            let [first, second] = page.pair;
            let fits = |values: &Vec<Option<f64>>| {
                values.len() <= metrics.len() && values.iter().flatten().all(|value| *value >= 0.0)
            };
            first != second
                && usize::from(first.max(second)) < rankers
                && page.values.iter().all(fits)
        };
        let controls = state.control.into_iter().chain(state.next.map(|(next, _)| next));
        let is_sound = state.tables.len() == rankers * metrics.len() * KINDS.len()
            && (1..=rankers).contains(&usize::from(state.initial))
            && state.seen.is_sound()
            && state.open.values().flat_map(BTreeMap::values).all(page)
            && controls.into_iter().all(|control| usize::from(control) < rankers)
            && (state.control.is_none() || state.controls > 0);
        is_sound.then(|| Self::with(metrics, window_ms, (error, seed), state))
    }

    /// The state to save.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The error of all claims of harm, and that of all claims of safety.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// How many metrics there are.
    pub fn metrics(&self) -> usize {
        self.rules.len()
    }

    /// Time within which the values of a page come, in milliseconds.
    pub fn window_ms(&self) -> i64 {
        self.window_ms
    }

    /// Estimated bytes in memory: half a megabyte once a unit was counted, the tables, and the
    /// pages that wait.
    pub fn bytes(&self) -> usize {
        let values = 2 * self.rules.len() * size_of::<Option<f64>>();
        let page = size_of::<((u64, u128), Page)>() + values + MAP_BYTES;
        let pages: usize = self.state.open.values().map(BTreeMap::len).sum();
        let rules = self.rules.len() * size_of::<Rule>();
        let tables = self.state.tables.len() * size_of::<Table>();
        self.state.seen.bytes() + page * pages + tables + rules
    }

    /// The ranker that differences are to.
    pub fn control(&self) -> Option<usize> {
        self.state.control.map(usize::from)
    }

    /// One more ranker takes part.
    pub fn enlist(&mut self) {
        let tables = self.state.tables.len() + self.rules.len() * KINDS.len();
        self.state.tables.resize(tables, Table::default());
    }

    /// From the first cohort after this time on, `control` is the ranker that people see.
    pub fn name_control(&mut self, control: usize, at: i64) {
        let from = self.start_of(at.max(self.state.complete_until)) + self.width_ms();
        self.state.next = Some((control as u16, from));
    }

    fn width_ms(&self) -> i64 {
        (self.window_ms / COHORTS).max(SHORTEST_MS)
    }

    fn start_of(&self, issued_at: i64) -> i64 {
        issued_at - issued_at.rem_euclid(self.width_ms())
    }

    /// The end of the newest cohort whose window has ended, if that or an earlier one has pages.
    pub fn due(&self, now: i64) -> Option<i64> {
        let until = self.start_of(now - self.window_ms);
        self.state.open.keys().next().filter(|&&oldest| oldest < until).map(|_| until)
    }

    /// A page was issued, or some of its values came: what is known of it already stays. Returns
    /// whether it came in time.
    pub fn add(&mut self, nonce: u128, page: Page) -> bool {
        if page.issued_at < self.state.complete_until {
            self.know(&page);
            return false;
        }
        let start = self.start_of(page.issued_at);
        let key = (mix(nonce as u64 ^ (nonce >> 64) as u64), nonce);
        let cohort = self.state.open.entry(start).or_default();
        if let Some(known) = cohort.get_mut(&key) {
            known.unit = known.unit.or(page.unit);
            for (known, new) in known.values.iter_mut().zip(page.values) {
                let length = known.len().max(new.len());
                known.resize(length, None);
                for (known, new) in known.iter_mut().zip(new) {
                    *known = known.or(new);
                }
            }
            return true;
        }
        cohort.insert(key, page);
        let left_out = if cohort.len() > PAGES_MAX { cohort.pop_last() } else { None };
        if let Some((_, page)) = left_out {
            self.know(&page);
        }
        true
    }

    /// No page of this unit with these rankers counts from here on: this one was seen, and does
    /// not count.
    fn know(&mut self, page: &Page) {
        for side in 0..2 {
            for kind in KINDS {
                self.is_first(page, side, kind);
            }
        }
    }

    /// Whether a page is the first one of its unit that counts for a ranker.
    fn is_first(&mut self, page: &Page, side: usize, kind: Kind) -> bool {
        let (ranker, other) = (page.pair[side], page.pair[1 - side]);
        let Some(unit) = page.unit else { return true };
        let with = match kind {
            Kind::Limit => u64::from(u16::MAX) + 1,
            Kind::Difference => other.into(),
        };
        self.state.seen.insert(mix(unit) ^ mix(u64::from(ranker) << 32 | with))
    }

    /// No value of a page issued before `until` can come any more: count these pages, cohort by
    /// cohort.
    pub fn complete(&mut self, until: i64) {
        let until = self.start_of(until);
        if until <= self.state.complete_until {
            return;
        }
        self.state.complete_until = until;
        let later = self.state.open.split_off(&until);
        for (start, cohort) in std::mem::replace(&mut self.state.open, later) {
            self.change_control(start);
            let mut pages: Vec<_> = cohort
                .into_iter()
                .map(|((_, nonce), page)| (page.issued_at, nonce, page))
                .collect();
            pages.sort_unstable_by_key(|&(issued_at, nonce, _)| (issued_at, nonce));
            let mut changed = BTreeSet::new();
            for (_, nonce, page) in &pages {
                self.count(*nonce, page, &mut changed);
            }
            for table in changed {
                self.check(table);
            }
        }
        self.change_control(until);
    }

    fn change_control(&mut self, at: i64) {
        let Some((control, _)) = self.state.next.take_if(|(_, from)| *from <= at) else { return };
        if self.state.control == Some(control) {
            return;
        }
        self.state.control = Some(control);
        self.state.controls = self.state.controls.saturating_add(1);
        for differences in self.state.tables.iter_mut().skip(1).step_by(KINDS.len()) {
            *differences = Table::default();
        }
    }

    fn count(&mut self, nonce: u128, page: &Page, changed: &mut BTreeSet<usize>) {
        let value = |side: usize, metric: usize, rule: &Rule| {
            let known = page.values[side].get(metric).copied().flatten();
            known.map_or(rule.cap, |value| value.clamp(0.0, rule.cap))
        };
        for side in 0..2 {
            let (ranker, other) = (page.pair[side], page.pair[1 - side]);
            for kind in KINDS {
                let counts = kind == Kind::Limit || self.state.control == Some(other);
                if !counts || !self.is_first(page, side, kind) {
                    continue;
                }
                for (metric, rule) in self.rules.iter().enumerate() {
                    let Some(bets) = &rule.bets[kind as usize] else { continue };
                    let own = value(side, metric, rule);
                    let counted = match kind {
                        Kind::Limit => own,
                        Kind::Difference => own - value(1 - side, metric, rule),
                    };
                    let table = self.table(ranker.into(), metric, kind);
                    let level = bets.level(counted, coin(self.seed, nonce, table));
                    let count = &mut self.state.tables[table].counts[level];
                    *count = count.saturating_add(1);
                    changed.insert(table);
                }
            }
        }
    }

    fn table(&self, ranker: usize, metric: usize, kind: Kind) -> usize {
        (ranker * self.rules.len() + metric) * KINDS.len() + kind as usize
    }

    fn check(&mut self, table: usize) {
        let (ranker, metric, kind) = self.subject(table);
        let error = self.part(ranker, kind);
        let Some(bets) = &self.rules[metric].bets[kind as usize] else { return };
        let Table { counts, harm, safe } = &mut self.state.tables[table];
        let pages = counts.iter().map(|&count| u64::from(count)).sum();
        harm.check(bets.ln(Side::Harm, counts), error, pages);
        safe.check(bets.ln(Side::Safe, counts), error, pages);
    }

    /// The ranker, metric and kind of a table.
    fn subject(&self, table: usize) -> (usize, usize, Kind) {
        let row = table / KINDS.len();
        (row / self.rules.len(), row % self.rules.len(), KINDS[table % KINDS.len()])
    }

    /// The error of a claim.
    fn part(&self, ranker: usize, kind: Kind) -> f64 {
        let initial = usize::from(self.state.initial);
        let limits = |kind: Kind| {
            self.rules.iter().filter(|rule| rule.bets[kind as usize].is_some()).count() as f64
        };
        let (values, differences) = (limits(Kind::Limit), limits(Kind::Difference));
        // the control of the start has no difference to itself
        let is_rival = |ranker: &usize| Some(*ranker) != self.control();
        let rivals = (0..initial).filter(is_rival).count() as f64;
        let all = values * initial as f64 + differences * (initial as f64 - 1.0);
        let of_ranker = match ranker.checked_sub(initial) {
            Some(later) => share_of_later(later) / (values + differences),
            None if kind == Kind::Limit => FIRST / all,
            None => FIRST / all * (initial as f64 - 1.0) / rivals,
        };
        let of_control = match (kind, self.state.controls) {
            (Kind::Limit, _) => 1.0,
            (Kind::Difference, 0 | 1) => FIRST,
            (Kind::Difference, nth) => share_of_later(usize::from(nth) - 2),
        };
        self.error * of_ranker * of_control
    }

    /// The decided claims, by ranker, metric and kind, harm before safe.
    pub fn decided(&self) -> impl Iterator<Item = Decided> + '_ {
        self.state.tables.iter().enumerate().flat_map(move |(nth, table)| {
            let (ranker, metric, kind) = self.subject(nth);
            let sides = [(Side::Harm, table.harm), (Side::Safe, table.safe)];
            sides.into_iter().filter_map(move |(side, latch)| {
                let after = latch.decided_at()?;
                Some(Decided { ranker, metric, kind, side, after })
            })
        })
    }

    /// All claims, by ranker, metric and kind, harm before safe. There is none of the difference of
    /// the control to itself, or without a control.
    pub fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        let tables = self.state.tables.iter().enumerate();
        tables.flat_map(move |(nth, table)| {
            let (ranker, metric, kind) = self.subject(nth);
            let is_compared = self.control().is_some_and(|control| control != ranker);
            let bets = self.rules[metric].bets[kind as usize].as_ref();
            let bets = bets.filter(|_| kind == Kind::Limit || is_compared);
            bets.into_iter().flat_map(move |bets| {
                let pages = table.counts.iter().map(|&count| u64::from(count)).sum();
                [(Side::Harm, table.harm), (Side::Safe, table.safe)].map(|(side, latch)| Claim {
                    ranker,
                    metric,
                    kind,
                    side,
                    error: self.part(ranker, kind),
                    pages,
                    mean: bets.mean(&table.counts),
                    decided_after: latch.decided_at(),
                })
            })
        })
    }
}

/// Of the error that the first ones leave, the share of the one with this number among the later
/// ones, from 0. All shares together are 0.1.
fn share_of_later(number: usize) -> f64 {
    let number = number as f64;
    (1.0 - FIRST) / ((number + 1.0) * (number + 2.0))
}

/// A coin in [0, 1) that depends on the page and the table, and not on the value.
fn coin(seed: u64, nonce: u128, table: usize) -> f64 {
    let page = mix(mix(seed ^ nonce as u64) ^ (nonce >> 64) as u64);
    (mix(page ^ table as u64) >> 11) as f64 / (1_u64 << 53) as f64
}
