//! Who may call what.
//!
//! What an operation needs stands in its annotation (`security(("key" = ["read"]))`), goes into the
//! description of the API, and is enforced from there ([`Rules`]): what is described is what holds.
//! An operation that names no scope needs `admin`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::Operation;

use super::docs;
use super::problem::{Problem, ProblemKind};
use crate::access::{Actor, ApiKeySet, Digest, KnownKey, Scope};
pub use crate::access::{ApiKeys, KeyError, KeyId};
use crate::dashboard::{self, Sessions};
use crate::service::Service;

/// Whether this path needs no key: what probes and readers of the documentation need, and nothing
/// that tells about an experiment.
pub(crate) fn is_open(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz")
        || path.starts_with("/problems/")
        || docs::OPEN.contains(&path)
        || dashboard::OPEN.contains(&path)
}

/// The scope that an operation names.
pub(crate) fn scope_of(operation: &Operation) -> Option<Scope> {
    let security = serde_json::to_value(operation.security.as_ref()?).ok()?;
    let named = security.as_array()?.iter().find_map(|way| way.get("key")?.as_array()?.first())?;
    named.as_str()?.parse().ok()
}

/// What the operations at one path need.
#[derive(Debug, Default)]
struct Rule {
    scopes: Vec<(Method, Scope)>,
    /// Which segment of the path names an experiment.
    name_at: Option<usize>,
}

/// What every described operation needs.
#[derive(Debug, Default)]
pub(crate) struct Rules(HashMap<String, Rule>);

impl Rules {
    /// As the description says.
    pub fn of(openapi: &OpenApi) -> Self {
        let rule = |(path, item): (&String, &utoipa::openapi::PathItem)| {
            let operations = [
                (Method::GET, &item.get),
                (Method::PUT, &item.put),
                (Method::POST, &item.post),
                (Method::DELETE, &item.delete),
                (Method::PATCH, &item.patch),
            ];
            let scopes = operations
                .into_iter()
                .filter_map(|(method, operation)| {
                    Some((method, scope_of(operation.as_ref()?).unwrap_or(Scope::Admin)))
                })
                .collect();
            let name_at = path.split('/').position(|segment| segment == "{name}");
            (path.clone(), Rule { scopes, name_at })
        };
        let described = openapi.paths.paths.iter().map(rule);
        let pages = dashboard::PAGES.iter().map(|path| {
            let name_at = path.split('/').position(|segment| segment == "{name}");
            ((*path).to_owned(), Rule { scopes: vec![(Method::GET, Scope::Read)], name_at })
        });
        Self(described.chain(pages).collect())
    }

    /// Whether the key may do this; a path or method that does not exist is for the router to tell.
    fn check(&self, key: &KnownKey, request: &Request, route: Option<&str>) -> Result<(), Problem> {
        let Some(route) = route else { return Ok(()) };
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let Some(rule) = self.0.get(route) else { return require(key, Scope::Admin) };
        let Some((_, scope)) = rule.scopes.iter().find(|(own, _)| own == method) else {
            return Ok(());
        };
        require(key, *scope)?;
        match (key.experiments(), rule.name_at) {
            (Some(_), Some(at)) => {
                require_experiment(key, request.uri().path().split('/').nth(at).unwrap_or_default())
            }
            _ => Ok(()),
        }
    }
}

fn require(key: &KnownKey, scope: Scope) -> Result<(), Problem> {
    if key.allows(scope) {
        return Ok(());
    }
    Err(forbidden(format!(
        "The key {} lacks the scope `{scope}`, which this needs.",
        key.id().as_str()
    )))
}

fn require_experiment(key: &KnownKey, name: &str) -> Result<(), Problem> {
    if key.experiments().is_none_or(|names| names.iter().any(|own| own == name)) {
        return Ok(());
    }
    Err(forbidden(format!("The key {} is not for the experiment `{name}`.", key.id().as_str())))
}

fn forbidden(detail: String) -> Problem {
    Problem::new(ProblemKind::Forbidden, detail)
}

/// Whether a page of the dashboard is asked for.
fn is_page(route: Option<&str>) -> bool {
    route.is_some_and(|route| dashboard::PAGES.contains(&route))
}

/// Lets requests in.
pub(crate) struct Guard {
    given: Arc<ApiKeySet>,
    service: Option<(Arc<Service>, Sessions)>,
    rules: Rules,
}

/// What can be said of a request without waiting.
pub(crate) enum Authorization {
    /// It may come in; the key it has, if it needs one.
    Admitted(Option<Arc<KnownKey>>),
    /// It has a key that is not known here.
    Unknown,
}

impl Guard {
    /// A guard that knows the keys that the server was started with, and those of the service's
    /// database.
    pub fn new(
        given: Arc<ApiKeySet>,
        service: Option<(Arc<Service>, Sessions)>,
        rules: Rules,
    ) -> Self {
        Self { given, service, rules }
    }

    /// Judge by the keys that are known here, and for a page by the session; the error is what is
    /// answered. `route` is the template of the request's path, if there is one.
    pub fn judge(
        &self,
        request: &Request,
        route: Option<&str>,
    ) -> Result<Authorization, Box<Response>> {
        if is_open(request.uri().path()) {
            return Ok(Authorization::Admitted(None));
        }
        let stored = self.service.as_ref().map(|(service, _)| service.access().current());
        if self.given.is_empty() && stored.as_ref().is_none_or(|stored| stored.is_empty()) {
            return Ok(Authorization::Admitted(None));
        }
        if let Some((_, sessions)) = &self.service
            && is_page(route)
            && !request.headers().contains_key(header::AUTHORIZATION)
        {
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
            let key = sessions
                .key_of(request.headers())
                .ok_or_else(|| Box::new(dashboard::ask_to_log_in(path)))?;
            self.rules
                .check(&key, request, route)
                .map_err(|problem| Box::new(dashboard::forbidden(&problem)))?;
            return Ok(Authorization::Admitted(Some(key)));
        }
        let digest = presented(request.headers()).map_err(refusal)?;
        let found = self.given.find(&digest).or_else(|| stored.as_ref()?.find(&digest));
        let Some(key) = found else { return Ok(Authorization::Unknown) };
        let now_ms = self.service.as_ref().map_or(0, |(service, _)| service.now_ms());
        if !key.use_at(now_ms) {
            let ended = format!("The key {} has expired or was revoked.", key.id().as_str());
            return Err(refusal(refused(ended)));
        }
        self.rules.check(&key, request, route).map_err(refusal)?;
        Ok(Authorization::Admitted(Some(key)))
    }

    /// Learn of keys that were made since they were last read.
    pub async fn refresh(&self) -> Result<(), Problem> {
        match &self.service {
            Some((service, _)) => {
                service.access().refresh_for_unknown().await.map_err(|error| Problem::from(&error))
            }
            None => Ok(()),
        }
    }
}

fn refusal(problem: Problem) -> Box<Response> {
    Box::new(problem.into_response())
}

/// The answer to a key that nobody knows.
pub(crate) fn unknown() -> Problem {
    refused("This server does not know the key that was sent.".into())
}

fn refused(detail: String) -> Problem {
    challenge("Bearer realm=\"rankduel\", error=\"invalid_token\"", detail)
}

fn challenge(challenge: &'static str, detail: String) -> Problem {
    Problem::new(ProblemKind::Unauthorized, detail)
        .header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
}

/// The digest of the key that the request carries.
fn presented(headers: &HeaderMap) -> Result<Digest, Problem> {
    let refuse = |detail: &str| challenge("Bearer realm=\"rankduel\"", detail.to_owned());
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Err(refuse("The request has no key; send `Authorization: Bearer KEY`."));
    };
    match value.as_bytes().split_at_checked(7) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
            Ok(crate::access::digest_of(key.trim_ascii()))
        }
        _ => Err(refuse("The Authorization header is not of the form `Bearer KEY`.")),
    }
}

/// Who sent a request; an extractor.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    key: Option<Arc<KnownKey>>,
    request_id: Option<String>,
}

impl Caller {
    pub(crate) fn new(key: Option<Arc<KnownKey>>, request_id: &str) -> Self {
        Self { key, request_id: Some(request_id.into()) }
    }

    /// For the audit log.
    pub fn actor(&self) -> Actor {
        let actor = self.key.as_ref().map_or_else(Actor::anyone, |key| Actor::key(key.id()));
        match &self.request_id {
            Some(id) => actor.in_request(id),
            None => actor,
        }
    }

    /// Whether the caller may have to do with this experiment.
    pub fn is_for(&self, experiment: &str) -> bool {
        self.require_experiment(experiment).is_ok()
    }

    /// Refuse a caller whose key is not for this experiment.
    pub fn require_experiment(&self, experiment: &str) -> Result<(), Problem> {
        self.key.as_ref().map_or(Ok(()), |key| require_experiment(key, experiment))
    }

    /// Refuse a caller whose key is for some experiments only.
    pub fn require_all_experiments(&self) -> Result<(), Problem> {
        match &self.key {
            Some(key) if key.experiments().is_some() => Err(forbidden(format!(
                "The key {} is for some experiments only, and this tells of all.",
                key.id().as_str()
            ))),
            _ => Ok(()),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}
