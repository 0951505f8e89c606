//! `next-duel` without the router.
//!
//! A duel of an experiment in memory needs no I/O. For such a request the layers of the shell cost
//! more than the response, because each of them boxes and clones. The fast path sends the same
//! response without them. Every other request, and every refusal, takes the router's path.
//! `tests/api/both_paths.rs` compares the two.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;

use super::connections::Peer;
use super::guard::Authorization;
use super::running_request::{Route, RouteMetrics, with_key};
use super::shell::{Shell, headers_fit, panic_response};
use crate::http::duels::{self, NEXT_DUEL};
use crate::service::Service;
use crate::service::units::NamedAudience;
use rankduel_engine::loaded::LoadedExperiment;

/// Responds to `next-duel` from memory, exactly as the [`Shell`] around the router does.
pub(crate) struct FastPath {
    pub shell: Arc<Shell>,
    service: Arc<Service>,
    metrics: Arc<RouteMetrics>,
}

impl FastPath {
    pub fn new(shell: Arc<Shell>, service: Arc<Service>) -> Self {
        let metrics = Arc::new(RouteMetrics::new(&shell.metrics, "POST", NEXT_DUEL));
        Self { shell, service, metrics }
    }

    /// The response, or the request if the router must process it.
    pub fn respond(&self, request: Request, peer: Option<&Peer>) -> ControlFlow<Response, Request> {
        let started = Instant::now();
        let shell = &*self.shell;
        let Some(name) = experiment_of(&request).filter(|_| headers_fit(request.headers())) else {
            return ControlFlow::Continue(request);
        };
        let Ok(Authorization::Admitted(key)) = shell.guard.authorize(&request, Some(NEXT_DUEL))
        else {
            return ControlFlow::Continue(request);
        };
        if let Some(peer) = peer {
            peer.note_authorized(key.as_ref(), started);
        }
        // Only after authorization: looking an experiment up keeps it in memory.
        let Some(loaded) = self.service.engine.registry.in_memory(name) else {
            return ControlFlow::Continue(request);
        };
        let Some(_permit) = shell.permit(key.as_ref()) else {
            return ControlFlow::Continue(request);
        };
        let route = Route::Known(NEXT_DUEL, Arc::clone(&self.metrics));
        let running = shell.begin(&request, route, started);
        let choose = || {
            catch_unwind(AssertUnwindSafe(|| self.choose(&loaded)))
                .unwrap_or_else(|_| panic_response(&shell.metrics.panics))
        };
        let response = running
            .exported()
            .in_scope(|| running.span().in_scope(|| running.duels().within_now(choose)));
        let response = with_key(key.map(|key| key.id().clone()), response);
        ControlFlow::Break(running.end(response, request.uri().path()))
    }

    fn choose(&self, loaded: &LoadedExperiment) -> Response {
        duels::one(&self.service, loaded, NamedAudience::default())
            .unwrap_or_else(IntoResponse::into_response)
    }
}

/// The experiment in the path of a `next-duel` request without a body.
fn experiment_of(request: &Request) -> Option<&str> {
    // A page of another site is refused by a layer of the router.
    if request.method() != Method::POST
        || request.body().size_hint().upper() != Some(0)
        || request.headers().contains_key(header::ORIGIN)
        || request.headers().contains_key("sec-fetch-site")
    {
        return None;
    }
    request.uri().path().strip_prefix("/v1/experiments/")?.strip_suffix("/next-duel")
}
