//! The duels that a request is about, for its log line and its span.
//!
//! They are ambient, as spans are in the crate tracing: code that handles a duel calls [`mention`],
//! and the layer that writes the request's log line collects them.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

tokio::task_local! {
    static CURRENT: RequestDuels;
}

/// The number of a duel in logs and spans: the nonce of its `duel_id`, as in an exported log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DuelNumber(pub u128);

impl fmt::Display for DuelNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Most requests are about one duel, which needs no allocation.
type Numbers = SmallVec<[DuelNumber; 1]>;

/// The duels of a request that is being answered.
#[derive(Debug, Clone, Default)]
pub struct RequestDuels(Arc<Mutex<Numbers>>);

impl RequestDuels {
    /// Run `future` as a part of this request.
    pub async fn within<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// The duels of the current request.
    pub fn current() -> Self {
        CURRENT.try_with(Self::clone).unwrap_or_default()
    }

    /// Run `work` as a part of this request.
    pub fn within_now<T>(self, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, work)
    }

    /// Each duel once, in the order in which they were mentioned.
    pub fn take(&self) -> Numbers {
        // every entry is complete, even after a panic
        let mut numbers =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if numbers.len() > 1 {
            let mut known = HashSet::new();
            numbers.retain(|number| known.insert(*number));
        }
        numbers
    }
}

/// Add a duel to those of the current request, by its nonce.
pub fn mention(duel: u128) {
    // fails for work in the background, which belongs to no request
    let _ = CURRENT.try_with(|RequestDuels(numbers)| {
        numbers.lock().unwrap_or_else(PoisonError::into_inner).push(DuelNumber(duel));
    });
}
