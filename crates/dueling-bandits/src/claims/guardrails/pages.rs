//! Pages and their values: which count, and when.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::claims::guardrails::{Guardrails, KINDS, Kind};
use crate::evidence::seen_units::{SeenUnits, mix};

/// Cohorts that a window is divided into, and the shortest one, in milliseconds.
const COHORTS: i64 = 512;
const SHORTEST_MS: i64 = 1000;
/// Most pages of one cohort.
const PAGES_MAX: usize = 2048;
/// Units that saw one ranker alone are known under another hash.
const ALONE: u64 = 0x3d8e_61b7_0fa2_c954;
/// A unit that saw a ranker, whatever the other one was.
const ANY: u64 = u16::MAX as u64 + 1;

/// The hash under which a unit is known that saw a ranker, with any or with this other one.
fn seen_with(unit: u64, ranker: u16, other: u64) -> u64 {
    mix(unit) ^ mix(u64::from(ranker) << 32 | other)
}

/// The units that saw a page of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShownUnits {
    /// Rankers of that experiment.
    rankers: u16,
    seen: SeenUnits,
}

impl ShownUnits {
    /// Whether a unit saw any page, or looks like one that did: a new one is mistaken with up to
    /// `rankers + 1` times the probability of a [`SeenUnits`].
    pub fn contains(&self, unit: u64) -> bool {
        let saw = |ranker: u16| self.seen.contains(seen_with(unit, ranker, ANY));
        (0..self.rankers).any(saw) || self.seen.contains(mix(unit ^ ALONE))
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.seen.bytes()
    }

    /// Whether decoded units can be some.
    pub fn is_sound(&self) -> bool {
        self.seen.is_sound()
    }
}

/// A page, or some of its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Unix milliseconds at which its duel was issued.
    pub issued_at: i64,
    /// The rankers of its duel, which differ; if it shows one alone, the leader and the control.
    pub pair: [u16; 2],
    /// The one that it shows alone.
    pub alone: Option<u16>,
    /// The unit that saw it.
    pub unit: Option<u64>,
    /// The values of the first ranker by metric, and those of the second. What is missing may come
    /// later.
    pub values: [Vec<Option<f64>>; 2],
}

impl Page {
    fn value(&self, side: usize, metric: usize) -> Option<f64> {
        self.values[side].get(metric).copied().flatten()
    }

    /// The hash under which its unit is known for a ranker of a page of two; `None` without a unit.
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

    /// All of its own.
    fn hashes(&self) -> impl Iterator<Item = u64> + '_ {
        let is_alone = self.alone.is_some();
        let sides = (0..2).filter(move |_| !is_alone);
        let of_two = sides.flat_map(|side| KINDS.map(|kind| self.hash(side, kind)));
        of_two.chain([self.hash_alone().filter(|_| is_alone)]).flatten()
    }
}

impl Guardrails {
    pub(super) fn width_ms(&self) -> i64 {
        (self.window_ms / COHORTS).max(SHORTEST_MS)
    }

    pub(super) fn start_of(&self, issued_at: i64) -> i64 {
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
        for hash in page.hashes() {
            self.state.seen.insert(hash);
        }
    }

    /// The units that saw a page so far, also of those that wait for their values.
    pub fn shown_units(&self) -> ShownUnits {
        let mut seen = self.state.seen.clone();
        let open = self.state.open.values().flat_map(BTreeMap::values);
        for hash in open.flat_map(Page::hashes) {
            seen.insert(hash);
        }
        let rankers = self.state.tables.len() / (self.rules.len() * KINDS.len());
        ShownUnits { rankers: rankers as u16, seen }
    }

    /// No page of these units counts, not even one that waits: they saw another experiment before
    /// this one started. Not part of the saved state.
    pub fn know_elsewhere(&mut self, units: ShownUnits) {
        self.elsewhere = Some(Box::new(units));
    }

    /// The units of another experiment whose pages never count here; `None` before they are known.
    pub fn known_elsewhere(&self) -> Option<&ShownUnits> {
        self.elsewhere.as_deref()
    }

    /// Whether a page is the first one of its unit that counts for a ranker.
    fn is_first(&mut self, page: &Page, side: usize, kind: Kind) -> bool {
        page.hash(side, kind).is_none_or(|hash| self.state.seen.insert(hash))
    }

    /// Whether a page that shows one ranker alone is the first one of its unit.
    fn is_first_alone(&mut self, page: &Page) -> bool {
        page.hash_alone().is_none_or(|hash| self.state.seen.insert(hash))
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
                let elsewhere = self.elsewhere.as_ref().zip(page.unit);
                if !elsewhere.is_some_and(|(units, unit)| units.contains(unit)) {
                    self.count(*nonce, page, &mut changed);
                }
            }
            for table in changed {
                self.check(table);
            }
        }
        self.change_control(until);
    }

    fn count(&mut self, nonce: u128, page: &Page, changed: &mut BTreeSet<usize>) {
        if let Some(shown) = page.alone {
            return self.count_alone(nonce, page, shown, changed);
        }
        for side in 0..2 {
            let (ranker, other) = (page.pair[side], page.pair[1 - side]);
            for kind in KINDS {
                let counts = kind == Kind::Limit || self.state.control == Some(other);
                if !counts || !self.is_first(page, side, kind) {
                    continue;
                }
                for metric in 0..self.rules.len() {
                    let rule = &self.rules[metric];
                    if rule.metric.of_page {
                        continue;
                    }
                    let own = rule.badness(page.value(side, metric));
                    let counted = match kind {
                        Kind::Limit => own,
                        Kind::Difference => own - rule.badness(page.value(1 - side, metric)),
                    };
                    let table = self.table(ranker.into(), metric, kind);
                    self.count_at(table, counted, nonce, changed);
                }
            }
        }
    }

    /// Count a page of the leader or the control alone.
    fn count_alone(&mut self, nonce: u128, page: &Page, shown: u16, changed: &mut BTreeSet<usize>) {
        let [leader, control] = page.pair;
        if !self.is_first_alone(page) || self.state.control != Some(control) {
            return;
        }
        let (side, sign) = if shown == leader { (0, 2.0) } else { (1, -2.0) };
        for metric in 0..self.rules.len() {
            let rule = &self.rules[metric];
            if rule.metric.of_page {
                let value = rule.badness(page.value(side, metric));
                let (sum, values) = &mut self.state.sums[metric];
                let forecast = *sum / *values;
                (*sum, *values) = (*sum + value, *values + 1.0);
                let table = self.table(leader.into(), metric, Kind::Difference);
                self.count_at(table, sign * (value - forecast), nonce, changed);
            }
        }
    }

    /// Count a value of a table, if that has a limit.
    fn count_at(&mut self, table: usize, value: f64, nonce: u128, changed: &mut BTreeSet<usize>) {
        let (_, metric, kind) = self.subject(table);
        let rule = &self.rules[metric];
        let Some(bets) = &rule.bets[kind as usize] else { return };
        let level = bets.level(value, coin(self.seed, nonce, table));
        let is_graded = rule.is_graded(value);
        let table_of = &mut self.state.tables[table];
        table_of.is_graded |= is_graded;
        table_of.counts[level] = table_of.counts[level].saturating_add(1);
        changed.insert(table);
    }
}

/// A coin in [0, 1) that depends on the page and the table, and not on the value.
fn coin(seed: u64, nonce: u128, table: usize) -> f64 {
    let page = mix(mix(seed ^ nonce as u64) ^ (nonce >> 64) as u64);
    (mix(page ^ table as u64) >> 11) as f64 / (1_u64 << 53) as f64
}
