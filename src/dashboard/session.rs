//! Sessions of the dashboard: logging in with a key, and logging out.
//!
//! A session is a signed cookie with a random id, the key it was opened with and its expiry. It is
//! valid at every replica, as long as the key is valid and nobody has logged out. It opens only the
//! dashboard, never the API. Scripts cannot read the cookie. Browsers send it only to this site,
//! and only over TLS unless the site is the local machine. Only pages of this site may send
//! requests that change anything (`CsrfLayer`), and each such form has a token of the session.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRef, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use rand::rngs::SysError;
use serde::Deserialize;

use super::layout::{self, Visitor};
use super::page::{POLICY, problem_page};
use crate::http::problem::Problem;
use crate::http::server::guard::PageSessions;
use crate::http::server::path_prefix::PathPrefix;
use crate::http::{AppState, Caller};
use crate::service::Service;
use rankduel_engine::access::{ApiKeySet, Digest, KnownKey, Scope, digest_of};
use rankduel_engine::error::EngineError;
use rankduel_store::SessionId;
use rankduel_store::entropy;

/// Duration of a session.
const LASTS_MS: i64 = 12 * 3600 * 1000;

/// Opens and reads sessions.
#[derive(Clone)]
pub(crate) struct Sessions {
    given: Arc<ApiKeySet>,
    service: Arc<Service>,
    path_prefix: PathPrefix,
}

impl Sessions {
    pub fn new(given: Arc<ApiKeySet>, service: Arc<Service>, path_prefix: PathPrefix) -> Self {
        Self { given, service, path_prefix }
    }

    /// Whether the server has no keys, so that every request is admitted.
    fn is_open(&self) -> bool {
        self.given.is_empty() && self.service.access().current().is_empty()
    }

    fn find(&self, digest: &Digest) -> Option<Arc<KnownKey>> {
        self.given.find(digest).or_else(|| self.service.access().current().find(digest))
    }

    /// The key with this text, if it is valid and has the scope `read`.
    async fn reader(&self, text: &str) -> Option<Arc<KnownKey>> {
        let digest = digest_of(text.trim().as_bytes());
        let key = match self.find(&digest) {
            Some(key) => key,
            None => {
                if let Err(error) = self.service.access().refresh_for_unknown().await {
                    tracing::warn!(%error, "cannot read the API keys");
                }
                self.find(&digest)?
            }
        };
        (key.use_at(self.service.now_ms()) && key.allows(Scope::Read)).then_some(key)
    }

    /// The cookie of a new session.
    fn open(&self, key: &KnownKey, headers: &HeaderMap) -> Result<String, SysError> {
        let id: SessionId = entropy::bytes()?;
        let ends_at = self.service.now_ms() + LASTS_MS;
        let content = [&id[..], &key.digest()[..], &ends_at.to_be_bytes()].concat();
        Ok(self.cookie(
            headers,
            &self.service.engine.signing_keys.seal_session(&content, self.service.now_ms()),
            LASTS_MS / 1000,
        ))
    }

    /// The session of the cookie in a request, if it has not ended.
    fn session(&self, headers: &HeaderMap) -> Option<Session> {
        let name = self.cookie_name(headers);
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let value = cookies
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .find_map(|(own, value)| (own == name).then_some(value))?;
        let content = self.service.engine.signing_keys.open_session(value)?;
        let (id, content) = content.split_first_chunk()?;
        let (digest, ends_at) = content.split_first_chunk::<32>()?;
        let ends_at = i64::from_be_bytes(ends_at.try_into().ok()?);
        let now_ms = self.service.now_ms();
        let key = self.find(digest)?;
        (now_ms < ends_at && !self.service.ended_sessions.contains(id) && key.use_at(now_ms))
            .then_some(Session { id: *id, key, ends_at })
    }
}

/// The state that every page can extract.
#[derive(Clone)]
pub(crate) struct Dashboard {
    pub state: AppState,
    pub sessions: Sessions,
}

impl FromRef<Dashboard> for AppState {
    fn from_ref(dashboard: &Dashboard) -> Self {
        dashboard.state.clone()
    }
}

impl FromRef<Dashboard> for Sessions {
    fn from_ref(dashboard: &Dashboard) -> Self {
        dashboard.sessions.clone()
    }
}

/// The name of a form's token among its fields.
pub(super) const FORM_TOKEN: &str = "form_token";

impl Sessions {
    /// The caller's scope.
    pub fn visitor(&self, headers: &HeaderMap, caller: &Caller) -> Visitor {
        let manages = caller.allows(Scope::Admin);
        Visitor {
            session: self.session(headers).is_some(),
            manages,
            manages_all: manages && caller.require_all_experiments().is_ok(),
        }
    }

    /// The token for the forms of this caller.
    pub fn form_token(&self, headers: &HeaderMap, caller: &Caller) -> String {
        let owner = self.form_owner(headers, caller);
        self.service.engine.signing_keys.form_token(&owner, self.service.now_ms())
    }

    /// Whether the token of a form was made for this caller.
    pub fn is_form_token(&self, headers: &HeaderMap, caller: &Caller, token: &str) -> bool {
        let owner = self.form_owner(headers, caller);
        self.service.engine.signing_keys.is_form_token(token, &owner)
    }

    /// A form's token is bound to this: the session, or the key of a caller without one. A server
    /// without keys trusts everybody who can read its pages, and other sites cannot.
    fn form_owner(&self, headers: &HeaderMap, caller: &Caller) -> Vec<u8> {
        match (self.session(headers), caller.key()) {
            (Some(session), _) => [&b"session"[..], &session.id].concat(),
            (None, Some(key)) => [&b"key"[..], key.digest()].concat(),
            (None, None) => b"anyone".to_vec(),
        }
    }

    /// Whether the server has API keys.
    pub fn has_keys(&self) -> bool {
        !self.is_open()
    }
}

/// An open session.
struct Session {
    id: SessionId,
    key: Arc<KnownKey>,
    /// Unix milliseconds.
    ends_at: i64,
}

impl PageSessions for Sessions {
    fn key_of(&self, headers: &HeaderMap) -> Option<Arc<KnownKey>> {
        self.session(headers).map(|session| session.key)
    }

    fn redirect_to_login(&self, path: &str) -> Response {
        let mut to = "/login".to_owned();
        if path != "/" {
            let next: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
            // Writing to a string cannot fail.
            let _ = write!(to, "?next={next}");
        }
        Redirect::to(&to).into_response()
    }

    fn forbidden(&self, problem: &Problem) -> Response {
        let mut response = problem_page(problem, Visitor { session: true, ..Visitor::default() });
        response
            .headers_mut()
            .insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        response
    }
}

/// Whether the request is for the local machine, without a proxy. There the browser needs no TLS.
fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let proxied = headers.contains_key("x-forwarded-proto") || headers.contains_key("forwarded");
    !proxied && matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

impl Sessions {
    /// The start of the name makes browsers reject such a cookie if it is not secure or, without a
    /// path of its own, comes from another site.
    fn cookie_name(&self, headers: &HeaderMap) -> &'static str {
        match (is_local(headers), self.path_prefix.as_str()) {
            (true, _) => "rankduel-session",
            (false, "") => "__Host-rankduel-session",
            (false, _) => "__Secure-rankduel-session",
        }
    }

    fn cookie(&self, headers: &HeaderMap, value: &str, seconds: i64) -> String {
        let secure = if is_local(headers) { "" } else { "; Secure" };
        let path = Some(self.path_prefix.as_str()).filter(|path| !path.is_empty()).unwrap_or("/");
        format!(
            "{}={value}; Path={path}; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}",
            self.cookie_name(headers)
        )
    }
}

/// How the paths of pages start that a login can lead to.
const STARTS: [&str; 4] = ["/experiments/", "/new-experiment", "/keys", "/audit"];

/// The page to open after logging in: only pages of the dashboard.
fn safe_next(next: Option<&str>) -> &str {
    match next {
        // whatever else a header could not contain is percent-encoded in a link
        Some(next)
            if STARTS.iter().any(|start| next.starts_with(start))
                && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') =>
        {
            next
        }
        _ => "/",
    }
}

#[derive(Deserialize)]
pub(crate) struct LoginQuery {
    next: Option<String>,
}

/// `GET /login`
pub(crate) async fn login_page(
    State(sessions): State<Sessions>,
    headers: HeaderMap,
    query: Result<Query<LoginQuery>, QueryRejection>,
) -> Response {
    let next = query.ok().and_then(|Query(query)| query.next);
    let next = safe_next(next.as_deref());
    if sessions.is_open() || sessions.key_of(&headers).is_some() {
        return Redirect::to(next).into_response();
    }
    form(StatusCode::OK, next, None, &headers)
}

fn form(status: StatusCode, next: &str, wrong: Option<&str>, headers: &HeaderMap) -> Response {
    let over_tls = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let main = html! {
        div.login {
            h1 { "Log in" }
            p {
                "Use an API key with the scope " code { "read" } ", or " code { "admin" } " to change experiments. The "
                "server's operator can create one:"
            }
            pre tabindex="0" { code { "rankduel keys create \"my name\" --scope read" } }
            @if let Some(wrong) = wrong { p.wrong #wrong role="alert" { (wrong) } }
            form method="post" action="/login" {
                input type="hidden" name="next" value=(next);
                // The name under which a password manager stores the key.
                input type="text" name="username" value="rankduel" autocomplete="username" hidden;
                label for="key" { "Key" }
                input #key type="password" name="key" required autocomplete="current-password" spellcheck="false"
                    aria-describedby=[wrong.map(|_| "wrong")];
                button type="submit" { "Log in" }
            }
            p.quiet {
                "The session ends after 12 hours, or when the key expires or is revoked. "
                a href=(next) { "If you are already logged in and followed a link from another site, continue here." }
            }
            @if !is_local(headers) && !over_tls {
                p.quiet {
                    "Browsers keep the session only over https, or on the local machine. If this page appears again after \
                     you enter a valid key, open the dashboard at its https address."
                }
            }
        }
    };
    (status, layout::page("Log in", Visitor::default(), false, &main)).into_response()
}

/// `POST /login`
pub(crate) async fn login(
    State(sessions): State<Sessions>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let field = |wanted: &str| {
        form_urlencoded::parse(&body)
            .find_map(|(name, value)| (name == wanted).then(|| value.into_owned()))
    };
    let next = field("next");
    let next = safe_next(next.as_deref());
    match sessions.reader(&field("key").unwrap_or_default()).await {
        Some(key) => {
            let cookie = match sessions.open(&key, &headers) {
                Ok(cookie) => cookie,
                Err(error) => {
                    return problem_page(&EngineError::from(error).into(), Visitor::default());
                }
            };
            tracing::info!(key = key.id().as_str(), "login to the dashboard");
            with_cookie(Redirect::to(next).into_response(), &cookie)
        }
        None => {
            let wrong = "This key is unknown, has expired or was revoked, or lacks the scope read.";
            form(StatusCode::UNAUTHORIZED, next, Some(wrong), &headers)
        }
    }
}

/// `POST /logout`. The browser forgets the session in any case. If the database does not answer,
/// the response says so: then other servers may accept the cookie until it expires.
pub(crate) async fn logout(State(sessions): State<Sessions>, headers: HeaderMap) -> Response {
    let response = match sessions.session(&headers) {
        None => Redirect::to("/login").into_response(),
        Some(Session { id, ends_at, key }) => {
            tracing::info!(key = key.id().as_str(), "logout from the dashboard");
            match sessions.service.ended_sessions.end(id, ends_at, sessions.service.now_ms()).await
            {
                Ok(()) => Redirect::to("/login").into_response(),
                Err(error) => problem_page(&error.into(), Visitor::default()),
            }
        }
    };
    with_cookie(response, &sessions.cookie(&headers, "", 0))
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    // Base64url and plain words are a valid header value.
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}
