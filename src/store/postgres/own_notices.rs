//! Recognizes notices of commits of this process.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::store::{ExperimentId, Notice};

/// Most announcements that are remembered.
const REMEMBERED: usize = 4096;

/// The heads that this process announced and has not heard of yet.
///
/// A log has one entry at each position and one process appended it, so no other process announces
/// the same head. (The number of the server process that sent a notice would not do: behind a
/// pooler, many clients share one.)
#[derive(Debug, Clone, Default)]
pub(super) struct OwnNotices(Arc<Mutex<Announced>>);

#[derive(Debug, Default)]
struct Announced {
    heads: HashSet<(ExperimentId, u64)>,
    /// The same, oldest first, and those that were heard of.
    order: VecDeque<(ExperimentId, u64)>,
}

impl OwnNotices {
    /// Remember that this process announces that a log has grown to `head`.
    pub fn remember(&self, experiment: ExperimentId, head: u64) {
        let mut announced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        announced.heads.insert((experiment, head));
        announced.order.push_back((experiment, head));
        if announced.order.len() > REMEMBERED
            && let Some(oldest) = announced.order.pop_front()
        {
            announced.heads.remove(&oldest);
        }
    }

    /// Whether this process sent the notice; true once for each announcement.
    pub fn take(&self, notice: &Notice) -> bool {
        let mut announced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        announced.heads.remove(&(notice.experiment, notice.head))
    }
}
