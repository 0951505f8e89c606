//! Pages and their values: which count, and when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::claims::guardrails::{Guardrails, KINDS, Kind};
use crate::rng::mix;

/// Most pages of one cohort.
const PAGES_MAX: usize = 2048;
/// A unit that saw one ranker alone is kept under the hash of itself and this number.
const ALONE: u64 = 0x3d8e_61b7_0fa2_c954;
/// In place of the other ranker in [`seen_with`]: any.
const ANY: u64 = u16::MAX as u64 + 1;

/// The hash under which a unit is kept that saw a ranker together with `other`, or with [`ANY`].
fn seen_with(unit: u64, ranker: u16, other: u64) -> u64 {
    mix(unit) ^ mix(u64::from(ranker) << 32 | other)
}

/// A page that was issued.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Unix milliseconds at which its duel was issued.
    pub issued_at: i64,
    /// The rankers of its duel, which differ; if it shows one alone, the leader and the control.
    pub pair: [u16; 2],
    /// The one that it shows alone.
    pub alone: Option<u16>,
    /// The unit that saw it.
    pub unit: Option<u64>,
}

/// The values of a page by ranker and metric, [`MISSING`] until they come; empty before the first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Values(Box<[f64]>);

/// The page of a duel, as far as its values are concerned.
#[derive(Debug, Clone, Copy)]
pub enum PageState<'a> {
    /// Nothing is known of it.
    Unknown,
    /// It waits for values.
    Open(&'a Values),
    /// Its window has ended: no value counts any more.
    Ended,
    /// It does not count: so many pages were issued at about the same time that only some do.
    LeftOut,
}

/// Pages that wait, by a hash of the nonce and the nonce of the duel.
pub(super) type Cohort = BTreeMap<(u64, u128), (Page, Values)>;

/// Values are 0 or above.
const MISSING: f64 = -1.0;

impl Values {
    /// The value of the first or the second ranker.
    pub fn get(&self, side: usize, metric: usize) -> Option<f64> {
        let metrics = self.0.len() / 2;
        self.0.get(side * metrics + metric).copied().filter(|&value| value != MISSING)
    }

    /// Add values that came. Those that are known stay.
    fn add(&mut self, metrics: usize, values: [&[Option<f64>]; 2]) {
        if self.0.is_empty() && values.iter().any(|values| !values.is_empty()) {
            self.0 = vec![MISSING; 2 * metrics].into();
        }
        for (known, new) in self.0.chunks_exact_mut(metrics).zip(values) {
            for (known, new) in known.iter_mut().zip(new) {
                if let Some(new) = new.filter(|_| *known == MISSING) {
                    *known = new;
                }
            }
        }
    }

    pub(super) fn is_sound(&self, metrics: usize) -> bool {
        (self.0.is_empty() || self.0.len() == 2 * metrics)
            && self.0.iter().all(|&value| value >= 0.0 || value == MISSING)
    }
}

impl Page {
    /// The hash under which its unit is kept, for one ranker of a page of two and a kind of limits;
    /// `None` without a unit.
    fn hash(&self, side: usize, kind: Kind) -> Option<u64> {
        let other = match kind {
            Kind::Limit => ANY,
            Kind::Difference => self.pair[1 - side].into(),
        };
        self.unit.map(|unit| seen_with(unit, self.pair[side], other))
    }

    /// The same if it shows one ranker alone.
    fn hash_alone(&self) -> Option<u64> {
        self.unit.map(|unit| mix(unit ^ ALONE))
    }

    /// All hashes under which its unit is kept.
    fn hashes(&self) -> impl Iterator<Item = u64> + '_ {
        let is_alone = self.alone.is_some();
        let sides = (0..2).filter(move |_| !is_alone);
        let of_two = sides.flat_map(|side| KINDS.map(|kind| self.hash(side, kind)));
        of_two.chain([self.hash_alone().filter(|_| is_alone)]).flatten()
    }
}

impl Guardrails {
    /// The end of the newest cohort whose window has ended, if that or an earlier one has pages.
    pub fn due(&self, now: i64) -> Option<i64> {
        let until = self.window.start_of_cohort(now - self.window.ms);
        self.open.keys().next().filter(|&&oldest| oldest < until).map(|_| until)
    }

    /// Pages that were issued before this time come too late.
    pub fn complete_until(&self) -> i64 {
        self.complete_until
    }

    /// A page was issued, or some values of its first and second ranker came, by metric. Values
    /// that came before stay. Returns whether it came in time.
    pub fn add(&mut self, nonce: u128, page: Page, values: [&[Option<f64>]; 2]) -> bool {
        if page.issued_at < self.complete_until {
            self.mark_seen(&page);
            return false;
        }
        let start = self.window.start_of_cohort(page.issued_at);
        let cohort = self.open.entry(start).or_default();
        let (known, known_values) =
            cohort.entry(key_of(nonce)).or_insert_with(|| (page, Values::default()));
        known.unit = known.unit.or(page.unit);
        known_values.add(self.rules.len(), values);
        let left_out = if cohort.len() > PAGES_MAX { cohort.pop_last() } else { None };
        if let Some((_, (page, _))) = left_out {
            self.mark_seen(&page);
        }
        true
    }

    /// The state of the page of a duel that was issued at this time.
    pub fn page(&self, nonce: u128, issued_at: i64) -> PageState<'_> {
        if issued_at < self.complete_until {
            return PageState::Ended;
        }
        let start = self.window.start_of_cohort(issued_at);
        let Some(cohort) = self.open.get(&start) else { return PageState::Unknown };
        let key = key_of(nonce);
        let is_beyond = |last: &(u64, u128)| cohort.len() >= PAGES_MAX && *last < key;
        match (cohort.get(&key), cohort.keys().next_back()) {
            (Some((_, values)), _) => PageState::Open(values),
            (None, last) if last.is_some_and(is_beyond) => PageState::LeftOut,
            (None, _) => PageState::Unknown,
        }
    }

    /// Whether to [`add`](Self::add) these values would change nothing: no page and no value counts
    /// twice.
    pub fn has(&self, nonce: u128, page: &Page, values: [&[Option<f64>]; 2]) -> bool {
        match self.page(nonce, page.issued_at) {
            PageState::Unknown => false,
            PageState::Ended | PageState::LeftOut => {
                page.hashes().all(|hash| self.seen.contains(hash))
            }
            PageState::Open(known) => (0..2).all(|side| {
                let mut values = values[side].iter().enumerate();
                values.all(|(metric, it)| it.is_none() || known.get(side, metric).is_some())
            }),
        }
    }

    /// Whether a metric is about pages that show one ranker alone, or about those that show two.
    pub fn is_about(&self, alone: bool) -> bool {
        self.rules.iter().any(|rule| rule.metric.of_page == alone)
    }

    /// A page was seen and does not count. No later page of its unit with these rankers counts.
    fn mark_seen(&mut self, page: &Page) {
        for hash in page.hashes() {
            self.seen.insert(hash);
        }
    }

    /// Whether a page is the first one of its unit that counts for a ranker.
    fn is_first(&mut self, page: &Page, side: usize, kind: Kind) -> bool {
        page.hash(side, kind).is_none_or(|hash| self.seen.insert(hash))
    }

    /// Whether a page that shows one ranker alone is the first one of its unit.
    fn is_first_alone(&mut self, page: &Page) -> bool {
        page.hash_alone().is_none_or(|hash| self.seen.insert(hash))
    }

    /// No value of a page issued before `until` can come any more: count these pages, cohort by
    /// cohort.
    pub fn complete(&mut self, until: i64) {
        let until = self.window.start_of_cohort(until);
        if until <= self.complete_until {
            return;
        }
        self.complete_until = until;
        let later = self.open.split_off(&until);
        for (start, cohort) in std::mem::replace(&mut self.open, later) {
            self.change_control(start);
            let mut pages: Vec<_> = cohort.into_iter().collect();
            pages.sort_unstable_by_key(|((_, nonce), (page, _))| (page.issued_at, *nonce));
            let mut changed = Vec::new();
            for ((_, nonce), (page, values)) in &pages {
                self.count(*nonce, page, values, &mut changed);
            }
            changed.sort_unstable();
            changed.dedup();
            for table in changed {
                self.check(table);
            }
        }
        self.change_control(until);
    }

    /// Count a page that is complete, and add the tables that it changes to `changed`.
    fn count(&mut self, nonce: u128, page: &Page, values: &Values, changed: &mut Vec<usize>) {
        if page.alone.is_some() {
            return self.count_alone(nonce, page, values, changed);
        }
        let metrics = self.rules.len();
        for side in 0..2 {
            let (ranker, other) = (page.pair[side], page.pair[1 - side]);
            for kind in KINDS {
                let has_kind = kind == Kind::Limit || self.control == Some(other);
                if !has_kind || !self.is_first(page, side, kind) {
                    continue;
                }
                for metric in 0..metrics {
                    let rule = &self.rules[metric];
                    if rule.metric.of_page {
                        continue;
                    }
                    let badness = |side| Some(rule.badness(values.get(side, metric)?));
                    let counted = match kind {
                        Kind::Limit => badness(side),
                        Kind::Difference => {
                            badness(side).zip(badness(1 - side)).map(|(own, other)| own - other)
                        }
                    };
                    let table = self.table(ranker.into(), metric, kind);
                    self.count_at(table, counted, nonce, changed);
                }
            }
        }
    }

    /// Count a page of the leader or the control alone: `± 2 (value - forecast)`, as the module
    /// says.
    fn count_alone(&mut self, nonce: u128, page: &Page, values: &Values, changed: &mut Vec<usize>) {
        let [leader, control] = page.pair;
        if !self.is_first_alone(page) || self.control != Some(control) {
            return;
        }
        let (side, sign) = if page.alone == Some(leader) { (0, 2.0) } else { (1, -2.0) };
        for metric in 0..self.rules.len() {
            let rule = &self.rules[metric];
            if rule.metric.of_page {
                let value = values.get(side, metric).map(|value| rule.badness(value));
                let counted = value.map(|value| {
                    let forecast = self.sums[metric].mean();
                    self.sums[metric].add(value);
                    sign * (value - forecast)
                });
                let table = self.table(leader.into(), metric, Kind::Difference);
                self.count_at(table, counted, nonce, changed);
            }
        }
    }

    /// Count a value of a table, or that it is missing, if the table has a limit.
    fn count_at(&mut self, at: usize, value: Option<f64>, nonce: u128, changed: &mut Vec<usize>) {
        let (_, metric, kind) = self.subject(at);
        let rule = &self.rules[metric];
        let Some(bets) = &rule.bets[kind as usize] else { return };
        let table = &mut self.tables[at];
        changed.push(at);
        let Some(value) = value else {
            table.missing = table.missing.saturating_add(1);
            return;
        };
        let coin = coin(self.seed, nonce, at);
        for (bets, counts) in [(Some(bets), &mut table.counts), (rule.cut(kind), &mut table.cut)] {
            if let Some(bets) = bets {
                let level = bets.level(value, coin);
                counts[level] = counts[level].saturating_add(1);
            }
        }
    }
}

/// The key of a page in its cohort.
fn key_of(nonce: u128) -> (u64, u128) {
    (mix(nonce as u64 ^ (nonce >> 64) as u64), nonce)
}

/// A number in [0, 1) that depends on the page and the table, and not on the value.
fn coin(seed: u64, nonce: u128, table: usize) -> f64 {
    let page = mix(mix(seed ^ nonce as u64) ^ (nonce >> 64) as u64);
    (mix(page ^ table as u64) >> 11) as f64 / (1_u64 << 53) as f64
}
