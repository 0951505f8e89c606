//! A cache of solved linear programs. A solution is a function of its instance, so the cache
//! changes no page. It is the only part of this crate that holds state.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::instance::{Instance, Plan};

/// Bytes of an entry beside those of its instance and its plan, with room for growth.
const ENTRY_BYTES: usize = 128;

/// A source of plans.
pub trait Plans: Sync {
    /// The plan of an instance; `None` if [`Instance::solve`] returns `None`.
    fn plan(&self, instance: &Instance) -> Option<Arc<Plan>>;
}

/// Solves every instance anew.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uncached;

impl Plans for Uncached {
    fn plan(&self, instance: &Instance) -> Option<Arc<Plan>> {
        instance.solve().map(Arc::new)
    }
}

/// Keeps plans up to a limited number of bytes and evicts the oldest first.
#[derive(Debug)]
pub struct PlanCache {
    bytes: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    plans: HashMap<Arc<Instance>, Option<Arc<Plan>>>,
    /// Oldest first, with the bytes of each.
    order: VecDeque<(Arc<Instance>, usize)>,
    bytes: usize,
}

impl PlanCache {
    /// A cache of plans that take `bytes` together, and of at least one plan. A plan of ten
    /// documents takes about 1200 bytes.
    pub fn new(bytes: usize) -> Self {
        Self { bytes, entries: Mutex::default() }
    }

    /// Number of plans in the cache.
    pub fn len(&self) -> usize {
        self.lock().plans.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The plan of an instance, if it is in the cache. Does not wait for other threads: while one
    /// of them changes the cache, no plan is in it.
    pub fn cached(&self, instance: &Instance) -> Option<Option<Arc<Plan>>> {
        self.entries.try_lock().ok()?.plans.get(instance).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // A panic cannot leave an entry half written, so a poisoned lock is safe to use.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plans for PlanCache {
    fn plan(&self, instance: &Instance) -> Option<Arc<Plan>> {
        if let Some(plan) = self.lock().plans.get(instance) {
            return plan.clone();
        }
        // The lock is released while solving: two threads with the same instance both solve it.
        let plan = instance.solve().map(Arc::new);
        let bytes = ENTRY_BYTES + instance.bytes() + plan.as_ref().map_or(0, |plan| plan.bytes());
        let instance = Arc::new(instance.clone());
        let mut entries = self.lock();
        if entries.plans.insert(Arc::clone(&instance), plan.clone()).is_none() {
            entries.order.push_back((instance, bytes));
            entries.bytes += bytes;
        }
        while entries.bytes > self.bytes && entries.plans.len() > 1 {
            let Some((oldest, bytes)) = entries.order.pop_front() else { break };
            entries.plans.remove(&oldest);
            entries.bytes -= bytes;
        }
        plan
    }
}
