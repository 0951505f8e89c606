//! Remembers that repeats were seen lately.

use std::sync::atomic::{AtomicU32, Ordering};

/// Appends that check for repeats after one that met a repeat. Repeats seldom come alone, and a
/// failed optimistic append costs a line in the server's log.
const CHECKED_APPENDS: u32 = 256;

/// How many of the next appends check for repeats before they write.
#[derive(Debug, Default)]
pub(super) struct RepeatGuard(AtomicU32);

impl RepeatGuard {
    /// Whether this append must check first; counts it.
    pub fn is_raised(&self) -> bool {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
    }

    pub fn raise(&self) {
        self.0.store(CHECKED_APPENDS, Ordering::Relaxed);
    }
}
