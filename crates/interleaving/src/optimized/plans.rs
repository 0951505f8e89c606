//! Solved linear programs, kept. A solution is a function of its question, so that keeping it
//! changes no page; this is the one part of interleaving that holds anything.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::program::{Plan, Question};

/// Where plans come from.
pub trait Plans: Sync {
    /// The plan of a question; `None` where [`Question::solve`] has none.
    fn plan(&self, question: &Question) -> Option<Arc<Plan>>;
}

/// Solves every question anew.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uncached;

impl Plans for Uncached {
    fn plan(&self, question: &Question) -> Option<Arc<Plan>> {
        question.solve().map(Arc::new)
    }
}

/// Keeps so many answers, and forgets the oldest first.
#[derive(Debug)]
pub struct PlanCache {
    capacity: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    plans: HashMap<Question, Option<Arc<Plan>>>,
    /// Oldest first.
    order: VecDeque<Question>,
}

impl PlanCache {
    /// A cache of at most `capacity` answers, at least one. A plan takes some kilobytes.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), kept: Mutex::default() }
    }

    /// Answers kept.
    pub fn len(&self) -> usize {
        self.kept().plans.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        // whatever a panic has interrupted, each entry is whole
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plans for PlanCache {
    fn plan(&self, question: &Question) -> Option<Arc<Plan>> {
        if let Some(plan) = self.kept().plans.get(question) {
            return plan.clone();
        }
        // unlocked meanwhile: two who ask the same at once both solve it
        let plan = question.solve().map(Arc::new);
        let mut kept = self.kept();
        if kept.plans.insert(question.clone(), plan.clone()).is_none() {
            kept.order.push_back(question.clone());
        }
        while kept.plans.len() > self.capacity {
            let Some(oldest) = kept.order.pop_front() else { break };
            kept.plans.remove(&oldest);
        }
        plan
    }
}
