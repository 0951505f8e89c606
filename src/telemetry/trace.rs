//! What is known of a request while it is answered: the duels that it is about, and its span where
//! spans are exported.
//!
//! Ambient, as tracing is: whoever learns of a duel says so ([`issued`], [`about`]), and the shell
//! that has the request's log line and span takes it from here.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::{SmallVec, smallvec};

use super::export::{ChildSpan, RequestSpan};

tokio::task_local! {
    static CURRENT: Arc<RequestTrace>;
}

/// A duel as logs and spans name it: the nonce of its `duel_id`, as an exported log has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DuelNumber(pub u128);

impl fmt::Display for DuelNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Where a caller's span stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// The trace.
    pub trace: u128,
    /// The caller's span in it.
    pub span: u64,
    /// Whether the caller keeps the trace.
    pub sampled: bool,
}

/// Most requests are about one duel, and keep it without an allocation.
type PendingNotices = SmallVec<[(DuelNumber, bool); 1]>;

/// One request that is being answered.
pub struct RequestTrace {
    span: RequestSpan,
    /// As they are told, and whether the request has handed them out.
    told: Mutex<PendingNotices>,
}

/// The duels that a request is about.
#[derive(Debug, Default)]
pub struct Duels {
    /// Each once, in the order that they came up in.
    pub all: SmallVec<[DuelNumber; 1]>,
    /// How many of them, the first ones, were handed out by it.
    pub issued: usize,
}

impl Duels {
    /// Of what was told, each with whether the request has handed it out.
    fn of(told: &[(DuelNumber, bool)]) -> Self {
        // nearly every request: nothing to compare
        if let [(duel, issued)] = *told {
            return Self { all: smallvec![duel], issued: usize::from(issued) };
        }
        let mut known = HashSet::new();
        let mut of_kind = |kind| {
            let told = told.iter().filter(|(_, issued)| *issued == kind).map(|(duel, _)| *duel);
            told.filter(|duel| known.insert(*duel)).collect::<SmallVec<_>>()
        };
        let mut all = of_kind(true);
        let issued = all.len();
        all.extend(of_kind(false));
        Self { all, issued }
    }
}

impl RequestTrace {
    /// A request of this method and route begins.
    pub fn start(method: &'static str, route: &str, parent: Option<Parent>) -> Arc<Self> {
        Arc::new(Self { span: RequestSpan::start(method, route, parent), told: Mutex::default() })
    }

    /// What `future` says of duels is said of this request.
    pub async fn within<F: Future>(self: Arc<Self>, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// The same for what waits for nothing.
    pub fn within_now<T>(self: Arc<Self>, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, work)
    }

    /// The trace of its span, where it has one.
    pub fn trace_id(&self) -> Option<String> {
        self.span.trace_id()
    }

    /// It was answered with this status; its duels.
    pub fn end(&self, status: u16, request_id: &str) -> Duels {
        let duels = Duels::of(&std::mem::take(&mut *self.told()));
        self.span.end(status, request_id, &duels);
        duels
    }

    fn told(&self) -> std::sync::MutexGuard<'_, PendingNotices> {
        // whatever a panic has interrupted, each entry is whole
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The request that is being answered has handed out this duel.
pub fn issued(duel: u128) {
    // what runs in the background belongs to no request
    let _ = CURRENT.try_with(|request| request.told().push((DuelNumber(duel), true)));
}

/// The request that is being answered names this duel, which was handed out before.
pub fn about(duel: u128) {
    let _ = CURRENT.try_with(|request| request.told().push((DuelNumber(duel), false)));
}

/// A part of the request that is being answered, up to the drop.
pub fn part(name: &'static str) -> Option<ChildSpan> {
    CURRENT.try_with(|request| request.span.child(name)).ok().flatten()
}
