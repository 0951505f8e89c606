//! The trace of a request while it is answered: the duels that it is about, and its span if spans
//! are exported.
//!
//! The trace is ambient, as in the crate tracing: code that handles a duel calls [`issued`] or
//! [`about`], and the middleware that writes the request's log line and span collects the duels.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use super::export::{ChildSpan, RequestSpan};
use super::request::{DuelNumber, Duels, Mention, Parent};

tokio::task_local! {
    static CURRENT: Arc<RequestTrace>;
}

/// Most requests are about one duel, which needs no allocation.
type Mentions = SmallVec<[Mention; 1]>;

/// A request that is being answered.
pub struct RequestTrace {
    span: RequestSpan,
    mentions: Mutex<Mentions>,
}

impl RequestTrace {
    /// Start the trace of a request with this method and route.
    pub fn start(method: &'static str, route: &str, parent: Option<Parent>) -> Arc<Self> {
        let span = RequestSpan::start(method, route, parent);
        Arc::new(Self { span, mentions: Mutex::default() })
    }

    /// Run `future` as a part of this request.
    pub async fn within<F: Future>(self: Arc<Self>, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// Run `work` as a part of this request.
    pub fn within_now<T>(self: Arc<Self>, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, work)
    }

    /// The trace id of its span, if it has one.
    pub fn trace_id(&self) -> Option<String> {
        self.span.trace_id()
    }

    /// End the trace: the request was answered with this status. Returns its duels.
    pub fn end(&self, status: u16, request_id: &str) -> Duels {
        let duels = Duels::of(&std::mem::take(&mut *self.mentions()));
        self.span.end(status, request_id, &duels);
        duels
    }

    fn mentions(&self) -> MutexGuard<'_, Mentions> {
        // every entry is complete, even after a panic
        self.mentions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mention(duel: u128, issued: bool) {
        // fails for work in the background, which belongs to no request
        let _ = CURRENT.try_with(|request| request.mentions().push((DuelNumber(duel), issued)));
    }
}

/// The current request has issued this duel.
pub fn issued(duel: u128) {
    RequestTrace::mention(duel, true);
}

/// The current request is about this duel, which was issued before.
pub fn about(duel: u128) {
    RequestTrace::mention(duel, false);
}

/// Start a child span of the current request; it ends when it is dropped.
pub fn part(name: &'static str) -> Option<ChildSpan> {
    CURRENT.try_with(|request| request.span.child(name)).ok().flatten()
}
