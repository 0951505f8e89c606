//! Pages and their values: which count, and when.

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
#[derive(Debug, Clone, Copy)]
pub struct Values<'a>(&'a [f64]);

/// The page of a duel, as far as its values are concerned.
#[derive(Debug, Clone, Copy)]
pub enum PageState<'a> {
    /// Nothing is known of it.
    Unknown,
    /// It waits for values.
    Open(Values<'a>),
    /// Its window has ended: no value counts any more.
    Ended,
    /// It does not count: so many pages were issued at about the same time that only some do.
    LeftOut,
}

/// Pages that wait, of one cohort.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Cohort {
    /// In the order of their nonces: those of one process ascend, so most come last.
    pages: Vec<Waiting>,
    /// The values of the pages that have some, in the order in which the first ones came.
    values: Vec<f64>,
}

/// A page that waits, without padding: those of a window can be a million.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Waiting {
    /// The halves of its nonce.
    nonce: [u64; 2],
    unit: u64,
    /// Milliseconds from the start of the cohort to the issue.
    after: u32,
    pair: [u16; 2],
    alone: Option<u16>,
    /// The place of its values; [`NOWHERE`] before the first.
    place: u16,
    has_unit: bool,
}

/// Values are 0 or above.
const MISSING: f64 = -1.0;
/// Places are below [`PAGES_MAX`].
const NOWHERE: u16 = u16::MAX;

impl Values<'_> {
    /// The value of the first or the second ranker.
    pub fn get(&self, side: usize, metric: usize) -> Option<f64> {
        let metrics = self.0.len() / 2;
        self.0.get(side * metrics + metric).copied().filter(|&value| value != MISSING)
    }
}

impl Waiting {
    fn new(start: i64, nonce: u128, page: &Page) -> Self {
        let &Page { issued_at, pair, alone, unit } = page;
        Self {
            nonce: halves(nonce),
            unit: unit.unwrap_or_default(),
            after: (issued_at - start) as u32,
            pair,
            alone,
            place: NOWHERE,
            has_unit: unit.is_some(),
        }
    }

    fn nonce(&self) -> u128 {
        u128::from(self.nonce[0]) << 64 | u128::from(self.nonce[1])
    }

    fn page(&self, start: i64) -> Page {
        let &Self { after, pair, alone, unit, has_unit, .. } = self;
        Page { issued_at: start + i64::from(after), pair, alone, unit: has_unit.then_some(unit) }
    }
}

impl Cohort {
    pub(super) fn bytes(&self) -> usize {
        let (pages, values) = (self.pages.capacity(), self.values.capacity());
        size_of::<Waiting>() * pages + size_of::<f64>() * values
    }

    /// Where a page is, or where it would be.
    fn find(&self, nonce: u128) -> Result<usize, usize> {
        self.pages.binary_search_by_key(&halves(nonce), |page| page.nonce)
    }

    fn values(&self, page: &Waiting, metrics: usize) -> Values<'_> {
        let row = usize::from(page.place) * 2 * metrics;
        Values(self.values.get(row..row + 2 * metrics).unwrap_or_default())
    }

    /// The page that leaves if a page with this nonce comes: `Err` if that is the new one.
    fn left_out(&self, nonce: u128) -> Result<Option<usize>, ()> {
        if self.pages.len() < PAGES_MAX {
            return Ok(None);
        }
        let keys = self.pages.iter().map(|page| key_of(page.nonce())).zip(0..);
        let last = keys.max().filter(|(last, _)| *last > key_of(nonce));
        last.map(|(_, at)| Some(at)).ok_or(())
    }

    /// Add a page, or the values of one. Values that are known stay. Returns the page that is left
    /// out for it.
    fn add(
        &mut self,
        start: i64,
        nonce: u128,
        page: &Page,
        metrics: usize,
        values: [&[Option<f64>]; 2],
    ) -> Option<Page> {
        let mut left_out = None;
        let at = match self.find(nonce) {
            Ok(at) => at,
            Err(_) => {
                let Ok(leaves) = self.left_out(nonce) else { return Some(*page) };
                let mut new = Waiting::new(start, nonce, page);
                if let Some(last) = leaves.map(|at| self.pages.remove(at)) {
                    new.place = last.place;
                    self.values_mut(new.place, metrics).fill(MISSING);
                    left_out = Some(last.page(start));
                }
                let (Ok(at) | Err(at)) = self.find(nonce);
                make_room(&mut self.pages, 1);
                self.pages.insert(at, new);
                at
            }
        };
        let known = &mut self.pages[at];
        if let Some(unit) = page.unit.filter(|_| !known.has_unit) {
            (known.unit, known.has_unit) = (unit, true);
        }
        if values.iter().all(|values| values.is_empty()) {
            return left_out;
        }
        if known.place == NOWHERE {
            known.place = (self.values.len() / (2 * metrics)) as u16;
            make_room(&mut self.values, 2 * metrics);
            self.values.resize(self.values.len() + 2 * metrics, MISSING);
        }
        let place = known.place;
        for (known, new) in self.values_mut(place, metrics).chunks_exact_mut(metrics).zip(values) {
            for (known, new) in known.iter_mut().zip(new) {
                if let Some(new) = new.filter(|_| *known == MISSING) {
                    *known = new;
                }
            }
        }
        left_out
    }

    fn values_mut(&mut self, place: u16, metrics: usize) -> &mut [f64] {
        let row = usize::from(place) * 2 * metrics;
        self.values.get_mut(row..row + 2 * metrics).unwrap_or_default()
    }

    /// Whether a decoded cohort fits these numbers.
    pub(super) fn is_sound(&self, rankers: usize, metrics: usize) -> bool {
        let rows = self.values.len() / (2 * metrics);
        let page = |page: &Waiting| {
            let [first, second] = page.pair;
            first != second
                && usize::from(first.max(second)) < rankers
                && page.alone.is_none_or(|alone| page.pair.contains(&alone))
                && (page.place == NOWHERE || usize::from(page.place) < rows)
        };
        self.pages.len() <= PAGES_MAX
            && self.pages.is_sorted_by(|one, next| one.nonce < next.nonce)
            && self.pages.iter().all(page)
            && rows <= PAGES_MAX
            && rows * 2 * metrics == self.values.len()
            && self.values.iter().all(|&value| value >= 0.0 || value == MISSING)
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
        if let Some(page) = cohort.add(start, nonce, &page, self.rules.len(), values) {
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
        match cohort.find(nonce) {
            Ok(at) => PageState::Open(cohort.values(&cohort.pages[at], self.rules.len())),
            Err(_) if cohort.left_out(nonce).is_err() => PageState::LeftOut,
            Err(_) => PageState::Unknown,
        }
    }

    /// Whether to [`add`](Self::add) these values would change nothing: no page and no value counts
    /// twice.
    pub fn has(&self, nonce: u128, page: &Page, values: [&[Option<f64>]; 2]) -> bool {
        match self.page(nonce, page.issued_at) {
            PageState::Unknown => false,
            PageState::Ended | PageState::LeftOut => {
                self.hashes(page).all(|hash| self.seen.contains(hash))
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

    /// Whether a ranker has a limit of this kind.
    fn has_limit(&self, kind: Kind) -> bool {
        let mut rules = self.rules.iter().filter(|rule| !rule.metric.of_page);
        rules.any(|rule| rule.bets[kind as usize].is_some())
    }

    /// All hashes under which the unit of a page is kept.
    fn hashes(&self, page: &Page) -> impl Iterator<Item = u64> + use<> {
        let mut hashes = [None; 4];
        if page.alone.is_some() {
            hashes[0] = page.hash_alone();
        } else {
            for kind in KINDS.into_iter().filter(|&kind| self.has_limit(kind)) {
                for side in 0..2 {
                    hashes[2 * side + kind as usize] = page.hash(side, kind);
                }
            }
        }
        hashes.into_iter().flatten()
    }

    /// A page was seen and does not count. No later page of its unit with these rankers counts.
    fn mark_seen(&mut self, page: &Page) {
        for hash in self.hashes(page) {
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
        for (start, mut cohort) in std::mem::replace(&mut self.open, later) {
            self.change_control(start);
            let mut pages = std::mem::take(&mut cohort.pages);
            pages.sort_unstable_by_key(|page| (page.after, page.nonce));
            let mut changed = Vec::new();
            for page in &pages {
                let values = cohort.values(page, self.rules.len());
                self.count(page.nonce(), &page.page(start), values, &mut changed);
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
    fn count(&mut self, nonce: u128, page: &Page, values: Values<'_>, changed: &mut Vec<usize>) {
        if page.alone.is_some() {
            return self.count_alone(nonce, page, values, changed);
        }
        let metrics = self.rules.len();
        for side in 0..2 {
            let (ranker, other) = (page.pair[side], page.pair[1 - side]);
            for kind in KINDS {
                let is_compared = kind == Kind::Limit || self.control == Some(other);
                let has_kind = self.has_limit(kind) && is_compared;
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
    fn count_alone(
        &mut self,
        nonce: u128,
        page: &Page,
        values: Values<'_>,
        changed: &mut Vec<usize>,
    ) {
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

/// Make room for this many more, and for less beyond them than a vector does by itself.
fn make_room<T>(vector: &mut Vec<T>, more: usize) {
    if vector.capacity() - vector.len() < more {
        vector.reserve_exact(more + vector.len() / 4);
    }
}

fn halves(nonce: u128) -> [u64; 2] {
    [(nonce >> 64) as u64, nonce as u64]
}

/// A full cohort keeps the pages with the least of these.
fn key_of(nonce: u128) -> (u64, u128) {
    (mix(nonce as u64 ^ (nonce >> 64) as u64), nonce)
}

/// A number in [0, 1) that depends on the page and the table, and not on the value.
fn coin(seed: u64, nonce: u128, table: usize) -> f64 {
    let page = mix(mix(seed ^ nonce as u64) ^ (nonce >> 64) as u64);
    (mix(page ^ table as u64) >> 11) as f64 / (1_u64 << 53) as f64
}
