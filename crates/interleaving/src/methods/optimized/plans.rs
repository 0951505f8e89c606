//! A cache of solved linear programs. A solution is a function of its instance, so the cache
//! changes no page. It is the only part of this crate that holds state.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::instance::{Instance, Plan};

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

/// Keeps a limited number of plans and evicts the oldest first.
#[derive(Debug)]
pub struct PlanCache {
    capacity: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    plans: HashMap<Instance, Option<Arc<Plan>>>,
    /// Oldest first.
    order: VecDeque<Instance>,
}

impl PlanCache {
    /// A cache of at most `capacity` plans, at least one. A plan takes some kilobytes.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), entries: Mutex::default() }
    }

    /// Number of plans in the cache.
    pub fn len(&self) -> usize {
        self.lock().plans.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
        let mut entries = self.lock();
        if entries.plans.insert(instance.clone(), plan.clone()).is_none() {
            entries.order.push_back(instance.clone());
        }
        while entries.plans.len() > self.capacity {
            let Some(oldest) = entries.order.pop_front() else { break };
            entries.plans.remove(&oldest);
        }
        plan
    }
}
