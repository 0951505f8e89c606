//! Clocks. Only this module reads the system's clock; other code gets a clock passed in.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A source of the current time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Unix time in milliseconds.
    fn now_ms(&self) -> i64;
}

/// A clock that is shared by the tasks of a process.
pub type SharedClock = Arc<dyn Clock>;

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now_ms(&self) -> i64 {
        jiff::Timestamp::now().as_millisecond()
    }
}

/// A clock for tests: it changes only when it is advanced. Clones share one time.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock at this unix time in milliseconds.
    pub fn at(now_ms: i64) -> Self {
        Self(Arc::new(AtomicI64::new(now_ms)))
    }

    /// Advance by this many milliseconds; a negative number goes back.
    pub fn advance_ms(&self, milliseconds: i64) {
        self.0.fetch_add(milliseconds, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Whether these unix milliseconds are a time that can be written as a date: from the year -9999 to
/// 9999. Sums and differences of such times do not overflow.
pub fn is_a_time(unix_ms: i64) -> bool {
    jiff::Timestamp::from_millisecond(unix_ms).is_ok()
}

/// The unix milliseconds of an RFC 3339 text; `None` if it is none. Without an offset it is none.
pub fn of_rfc3339(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

const MILLISECONDS_A_DAY: f64 = 86_400_000.0;

/// Days from one time to another, both in unix milliseconds.
pub fn days_since(then: i64, now: i64) -> f64 {
    (now - then) as f64 / MILLISECONDS_A_DAY
}

/// The unix milliseconds at which so many days are over.
pub fn days_after(then: i64, days: f64) -> i64 {
    then.saturating_add((days * MILLISECONDS_A_DAY).ceil() as i64)
}

/// A unix time in milliseconds as RFC 3339 text with three digits of a second and `Z`: all times
/// have the same width, so their order as text is their order in time.
pub fn rfc3339(unix_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(unix_ms)
        .map_or_else(|_| unix_ms.to_string(), |time| format!("{time:.3}"))
}
