//! Authentication and authorization of requests.
//!
//! The access that an operation needs comes from the table of operations
//! ([`crate::http::operations`]), which its description is made from, too.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Redirect, Response};

use super::hosts::{Hosts, other_host};
use super::routes::{Route, Rule};
use super::sessions::Sessions;
use crate::http::caller::{forbidden, require_experiment};
use crate::http::problem::{Problem, ProblemKind};
use rankduel_engine::access::{Digest, KnownKey, Scope, digest_of};

/// Check that the key may call this route.
fn check(key: &KnownKey, request: &Parts, route: &Route) -> Result<(), Problem> {
    let method = match request.method {
        Method::HEAD => &Method::GET,
        ref method => method,
    };
    let scope = match &route.rule {
        Rule::Open | Rule::OpenPage | Rule::Nothing => None,
        Rule::Page => (method == Method::GET).then_some(Scope::Read),
        Rule::ManagingPage | Rule::Admin => Some(Scope::Admin),
        Rule::Operations(scopes) => {
            scopes.iter().find(|(own, _)| own == method).map(|(_, scope)| *scope)
        }
    };
    let Some(scope) = scope else { return Ok(()) };
    require_scope(key, scope)?;
    if key.experiments().is_none() {
        return Ok(());
    }
    match route.template.split('/').position(|segment| segment == "{name}") {
        Some(at) => {
            require_experiment(key, request.uri.path().split('/').nth(at).unwrap_or_default())
        }
        None => Ok(()),
    }
}

fn require_scope(key: &KnownKey, scope: Scope) -> Result<(), Problem> {
    if key.allows(scope) {
        return Ok(());
    }
    Err(forbidden(format!(
        "The key {} lacks the scope `{scope}`, which this request needs.",
        key.id().as_str()
    )))
}

/// Authenticates and authorizes requests.
pub(crate) struct Guard {
    sessions: Sessions,
    /// Those that a server without keys answers for.
    hosts: Hosts,
    /// The page of a problem, for somebody who has a session or has none.
    page_of: fn(&Problem, bool) -> Response,
}

/// The decision on a request.
pub(crate) enum Authorization {
    /// Admitted, because the route needs no key.
    Open,
    /// Admitted, with its key if it needs one.
    Admitted(Option<Arc<KnownKey>>),
    /// Undecided: this process does not know the key. It may be in the database.
    UnknownKey,
}

impl Guard {
    pub fn new(sessions: Sessions, hosts: Hosts, page_of: fn(&Problem, bool) -> Response) -> Self {
        Self { sessions, hosts, page_of }
    }

    /// How the problems of this route are shown, if people read it: whatever goes wrong there is a
    /// page.
    pub fn pages_of(
        &self,
        headers: &HeaderMap,
        route: &Route,
    ) -> Option<impl Fn(&Problem) -> Response + use<>> {
        let is_page = matches!(route.rule, Rule::OpenPage | Rule::Page | Rule::ManagingPage);
        let page_of = is_page.then_some(self.page_of)?;
        let has_session = self.sessions.key_of(headers).is_some();
        Some(move |problem: &Problem| page_of(problem, has_session))
    }

    /// Authorize a request by the keys that this process knows, without waiting. The error is the
    /// response.
    pub fn authorize(
        &self,
        request: &Parts,
        route: &Route,
    ) -> Result<Authorization, Box<Response>> {
        let (rule, keys) = (&route.rule, &self.sessions.keys);
        if !self.hosts.admit(request) && keys.are_none() {
            return Err(refusal(other_host()));
        }
        if matches!(rule, Rule::Open | Rule::OpenPage) {
            return Ok(Authorization::Open);
        }
        if keys.are_none() {
            return Ok(Authorization::Admitted(None));
        }
        if matches!(rule, Rule::Page | Rule::ManagingPage)
            && !request.headers.contains_key(header::AUTHORIZATION)
        {
            let path = request.uri.path_and_query().map_or("/", |path| path.as_str());
            let key = self.sessions.key_of(&request.headers);
            let is_form = request.method == Method::POST;
            let key = key.ok_or_else(|| Box::new(redirect_to_login(path, is_form)))?;
            check(&key, request, route).map_err(refusal)?;
            return Ok(Authorization::Admitted(Some(key)));
        }
        let digest = presented_key(&request.headers).map_err(refusal)?;
        let Some(key) = keys.find(&digest) else {
            return Ok(Authorization::UnknownKey);
        };
        if !key.use_at(keys.service.now_ms()) {
            let detail = format!("The key {} has expired or was revoked.", key.id().as_str());
            return Err(refusal(invalid_key(detail)));
        }
        check(&key, request, route).map_err(refusal)?;
        Ok(Authorization::Admitted(Some(key)))
    }

    /// Whether this process still knows the key, and it has neither expired nor been revoked.
    pub fn is_valid(&self, key: &KnownKey) -> bool {
        let keys = &self.sessions.keys;
        keys.find(key.digest()).is_some_and(|key| key.is_valid_at(keys.service.now_ms()))
    }

    /// Read the keys of the database again.
    pub async fn refresh(&self) -> Result<(), Problem> {
        self.sessions
            .keys
            .service
            .access
            .refresh_for_unknown()
            .await
            .map_err(|error| Problem::from(&*error))
    }
}

/// The response to a request for this page without a session, or to a form that was sent to it.
fn redirect_to_login(path: &str, is_form: bool) -> Response {
    if path == "/" {
        return Redirect::to("/login").into_response();
    }
    let next: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
    let form = if is_form { "&form=1" } else { "" };
    Redirect::to(&format!("/login?next={next}{form}")).into_response()
}

fn refusal(problem: Problem) -> Box<Response> {
    Box::new(problem.into_response())
}

/// The problem of a request whose key is unknown here and in the database.
pub(crate) fn unknown_key() -> Problem {
    invalid_key("This server does not know the key in the request.".into())
}

fn invalid_key(detail: String) -> Problem {
    challenge("Bearer realm=\"rankduel\", error=\"invalid_token\"", detail)
}

fn challenge(challenge: &'static str, detail: String) -> Problem {
    Problem::new(ProblemKind::Unauthorized, detail)
        .header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
}

/// The digest of the key in the request.
fn presented_key(headers: &HeaderMap) -> Result<Digest, Problem> {
    let refuse = |detail: &str| challenge("Bearer realm=\"rankduel\"", detail.to_owned());
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Err(refuse("The request has no key; send `Authorization: Bearer KEY`."));
    };
    match value.as_bytes().split_at_checked(7) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
            Ok(digest_of(key.trim_ascii()))
        }
        _ => Err(refuse("The Authorization header is not of the form `Bearer KEY`.")),
    }
}
