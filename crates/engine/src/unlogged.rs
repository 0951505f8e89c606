//! The queue for the log: self-duels, units that got a page of one ranker alone, homes of units,
//! and pages of experiments with metrics, that were issued and are not in the log yet. They wait in
//! memory and are appended every few seconds, so that issuing a duel waits for no database.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dueling_bandits::orders::Home;
use rankduel_store::Nonce;
use rankduel_store::events::{ControlEvent, PageValues, UnitHash};
use rankduel_store::order_events::HomeRow;

/// Most units, and most pages, that wait. Those beyond, which are issued while the store does not
/// answer for long, do not count.
const WAITING_MAX: usize = 100_000;
/// Most pages, or homes, of one entry.
const PAGES_AT_ONCE: usize = 1_000;

/// The part of one experiment.
#[derive(Debug)]
pub(crate) struct Unlogged {
    self_duels: Vec<AtomicU64>,
    waiting: Mutex<Waiting>,
    /// Held while entries are appended, so that each is sent to the store once.
    flushing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Waiting {
    alone: BTreeSet<UnitHash>,
    homes: BTreeMap<u64, Home>,
    /// Homes whose entries are pending.
    pending_homes: BTreeMap<u64, Home>,
    /// By the nonce of the duel.
    pages: BTreeMap<u128, PageValues>,
    /// Entries that may or may not be in the log. Each is repeated under the same nonce until the
    /// store confirms it, so that it counts once.
    pending: VecDeque<(Nonce, ControlEvent)>,
}

impl Unlogged {
    pub fn new(rankers: usize) -> Self {
        let self_duels = (0..rankers).map(|_| AtomicU64::new(0)).collect();
        Self { self_duels, waiting: Mutex::default(), flushing: tokio::sync::Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count_self_duel(&self, ranker: usize) {
        self.self_duels[ranker].fetch_add(1, Ordering::Relaxed);
    }

    pub fn shown_alone(&self, unit: u64) {
        let alone = &mut self.waiting().alone;
        if alone.len() < WAITING_MAX {
            alone.insert(UnitHash(unit));
        }
    }

    /// The home of a unit that has none in the log: the first one that it gets here.
    pub fn choose_home(&self, unit: u64, home: Home) -> Home {
        let Waiting { homes, pending_homes, .. } = &mut *self.waiting();
        if let Some(&known) = pending_homes.get(&unit) {
            return known;
        }
        let is_full = homes.len() >= WAITING_MAX;
        match homes.entry(unit) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) if !is_full => *place.insert(home),
            Entry::Vacant(_) => home,
        }
    }

    /// Wait until nobody else appends entries, and keep others from it.
    pub async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.flushing.lock().await
    }

    /// A page was issued, or its values came. Of a page that waits already, the first values stand.
    pub fn add_page(&self, page: PageValues) {
        let pages = &mut self.waiting().pages;
        let is_full = pages.len() >= WAITING_MAX;
        match pages.entry(page.duel.as_u128()) {
            Entry::Occupied(mut known) => {
                for (known, new) in known.get_mut().values.iter_mut().zip(page.values) {
                    known.resize(known.len().max(new.len()), None);
                    for (known, new) in known.iter_mut().zip(new) {
                        *known = known.or(new);
                    }
                }
            }
            Entry::Vacant(place) if !is_full => {
                place.insert(page);
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Whether the page of a duel is not confirmed to be in the log.
    pub fn has_page(&self, duel: Nonce) -> bool {
        let Waiting { pages, pending, .. } = &*self.waiting();
        let has = |event: &ControlEvent| match event {
            // in the order of the map that they come from
            ControlEvent::Values { pages } => {
                pages.binary_search_by_key(&duel, |page| page.duel.as_u128()).is_ok()
            }
            _ => false,
        };
        pages.contains_key(&duel) || pending.iter().any(|(_, event)| has(event))
    }

    /// Whether anything is not confirmed to be in the log.
    pub fn any(&self) -> bool {
        let Waiting { alone, homes, pages, pending, .. } = &*self.waiting();
        !(alone.is_empty() && homes.is_empty() && pages.is_empty() && pending.is_empty())
            || self.self_duels.iter().any(|count| count.load(Ordering::Relaxed) > 0)
    }

    /// Make entries of all that waits and is not `known` by the log, unless earlier ones are pending
    /// still. [`Unlogged::next`] has them.
    pub fn collect(&self, fresh_nonce: impl Fn() -> Nonce, known: impl Fn(&PageValues) -> bool) {
        let Waiting { alone, homes, pending_homes, pages, pending } = &mut *self.waiting();
        if !pending.is_empty() {
            return;
        }
        *pending_homes = std::mem::take(homes);
        let rows: Vec<_> = pending_homes.iter().map(row).collect();
        for units in rows.chunks(PAGES_AT_ONCE).map(<[_]>::to_vec) {
            pending.push_back((fresh_nonce(), ControlEvent::Homes { units }));
        }
        pages.retain(|_, page| !known(page));
        while !pages.is_empty() {
            let rest = match pages.keys().nth(PAGES_AT_ONCE).copied() {
                Some(next) => pages.split_off(&next),
                None => BTreeMap::new(),
            };
            let pages = std::mem::replace(pages, rest).into_values().collect();
            pending.push_back((fresh_nonce(), ControlEvent::Values { pages }));
        }
        let counts: Vec<_> = (0u16..)
            .zip(&self.self_duels)
            .map(|(ranker, count)| (ranker, count.swap(0, Ordering::Relaxed)))
            .filter(|&(_, count)| count > 0)
            .collect();
        let alone: Vec<_> = std::mem::take(alone).into_iter().collect();
        if !counts.is_empty() || !alone.is_empty() {
            pending.push_back((fresh_nonce(), ControlEvent::SelfDuels { counts, alone }));
        }
    }

    /// The next entry to append, until it is [`Unlogged::confirmed`].
    pub fn next(&self) -> Option<(Nonce, ControlEvent)> {
        self.waiting().pending.front().cloned()
    }

    /// The entry with this nonce is in the log.
    pub fn confirmed(&self, nonce: Nonce) {
        let Waiting { pending, pending_homes, .. } = &mut *self.waiting();
        pending.pop_front_if(|(of, _)| *of == nonce);
        if pending.is_empty() {
            // they are folded
            pending_homes.clear();
        }
    }
}

fn row((&unit, &Home { pair, at, ticket, chosen_at }): (&u64, &Home)) -> HomeRow {
    (UnitHash(unit), pair.0, pair.1, ticket, chosen_at, at)
}
