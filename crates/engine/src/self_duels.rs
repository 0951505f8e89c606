//! Self-duels that were issued and are not in the log yet, and units that got a page of one ranker
//! alone. They are counted in memory and appended to the log as one event every few seconds.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rankduel_store::Nonce;
use rankduel_store::events::{ControlEvent, UnitHash};

/// Self-duels to append: the nonce of the event, and the event.
pub type Flush = (Nonce, ControlEvent);

/// Most units that wait for the log. Those beyond are not counted, whichever ranker they see.
const UNITS_MAX: usize = 100_000;

/// Counts of one experiment.
#[derive(Debug)]
pub(crate) struct SelfDuels {
    counts: Vec<AtomicU64>,
    alone: Mutex<BTreeSet<UnitHash>>,
    /// A flush that may or may not be in the log. It is repeated under the same nonce until the
    /// store confirms it, so that it counts once.
    pending: Mutex<Option<Flush>>,
}

impl SelfDuels {
    pub fn new(rankers: usize) -> Self {
        Self {
            counts: (0..rankers).map(|_| AtomicU64::new(0)).collect(),
            alone: Mutex::default(),
            pending: Mutex::default(),
        }
    }

    pub fn count(&self, ranker: usize) {
        self.counts[ranker].fetch_add(1, Ordering::Relaxed);
    }

    pub fn shown_alone(&self, unit: u64) {
        let mut alone = lock(&self.alone);
        if alone.len() < UNITS_MAX {
            alone.insert(UnitHash(unit));
        }
    }

    /// Whether there are self-duels that are not confirmed to be in the log.
    pub fn any(&self) -> bool {
        self.pending().is_some()
            || self.counts.iter().any(|count| count.load(Ordering::Relaxed) > 0)
            || !lock(&self.alone).is_empty()
    }

    /// The flush to append now, if there is one. It stays pending until [`SelfDuels::flushed`].
    pub fn to_flush(&self, fresh_nonce: impl FnOnce() -> Nonce) -> Option<Flush> {
        let mut pending = self.pending();
        if pending.is_none() {
            let counts: Vec<_> = (0u16..)
                .zip(&self.counts)
                .map(|(ranker, count)| (ranker, count.swap(0, Ordering::Relaxed)))
                .filter(|&(_, count)| count > 0)
                .collect();
            let alone: Vec<_> = std::mem::take(&mut *lock(&self.alone)).into_iter().collect();
            if !counts.is_empty() || !alone.is_empty() {
                *pending = Some((fresh_nonce(), ControlEvent::SelfDuels { counts, alone }));
            }
        }
        pending.clone()
    }

    /// The flush with this nonce is in the log.
    pub fn flushed(&self, nonce: Nonce) {
        let mut pending = self.pending();
        if pending.as_ref().is_some_and(|(of, _)| *of == nonce) {
            *pending = None;
        }
    }

    fn pending(&self) -> MutexGuard<'_, Option<Flush>> {
        lock(&self.pending)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
