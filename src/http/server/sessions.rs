//! Sessions of people who logged in with a key.
//!
//! A session is a signed cookie with a random id, the key it was opened with and its expiry. It is
//! valid at every replica, as long as the key is valid and nobody has logged out. It opens only the
//! dashboard, never the API. Scripts cannot read the cookie. Browsers send it only to this site,
//! and only over TLS unless the site is the local machine. Only pages of this site may send
//! requests that change anything (`CsrfLayer`), and each such form has a token of the session.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use rand::rngs::SysError;

use super::hosts::names_local_host;
use super::keys::Keys;
use super::path_prefix::PathPrefix;
use crate::http::Caller;
use rankduel_engine::access::{KnownKey, Scope, digest_of};
use rankduel_store::entropy;
use rankduel_store::{SessionId, StoreError};

/// Duration of a session.
const LASTS_MS: i64 = 12 * 3600 * 1000;

/// Opens and reads sessions.
#[derive(Clone)]
pub(crate) struct Sessions {
    pub keys: Keys,
    path_prefix: PathPrefix,
}

/// An open session.
struct Session {
    id: SessionId,
    key: Arc<KnownKey>,
    /// Unix milliseconds.
    ends_at: i64,
}

impl Sessions {
    pub fn new(keys: Keys, path_prefix: PathPrefix) -> Self {
        Self { keys, path_prefix }
    }

    fn now_ms(&self) -> i64 {
        self.keys.service.now_ms()
    }

    /// The key with this text, if it is valid and has the scope `read`.
    pub async fn reader(&self, text: &str) -> Option<Arc<KnownKey>> {
        let digest = digest_of(text.trim().as_bytes());
        let key = match self.keys.find(&digest) {
            Some(key) => key,
            None => {
                if let Err(error) = self.keys.service.access.refresh_for_unknown().await {
                    tracing::warn!(%error, "cannot read the API keys");
                }
                self.keys.find(&digest)?
            }
        };
        (key.use_at(self.now_ms()) && key.allows(Scope::Read)).then_some(key)
    }

    /// The cookie of a new session.
    pub fn open(&self, key: &KnownKey, headers: &HeaderMap) -> Result<String, SysError> {
        let (id, now): (SessionId, _) = (entropy::bytes()?, self.now_ms());
        let content = [&id[..], &key.digest()[..], &(now + LASTS_MS).to_be_bytes()].concat();
        let sealed = self.keys.service.engine.signing_keys.current().seal_session(&content, now);
        Ok(self.cookie(headers, &sealed, LASTS_MS / 1000))
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
        let content = self.keys.service.engine.signing_keys.current().open_session(value)?;
        let (id, content) = content.split_first_chunk()?;
        let (digest, ends_at) = content.split_first_chunk::<32>()?;
        let ends_at = i64::from_be_bytes(ends_at.try_into().ok()?);
        let (key, now) = (self.keys.find(digest)?, self.now_ms());
        let has_ended = now >= ends_at || self.keys.service.ended_sessions.contains(id);
        (!has_ended && key.use_at(now)).then_some(Session { id: *id, key, ends_at })
    }

    /// The key with which the session of a request was opened; `None` without a session.
    pub fn key_of(&self, headers: &HeaderMap) -> Option<Arc<KnownKey>> {
        self.session(headers).map(|session| session.key)
    }

    /// End the session of a request, if it has one. If the database does not answer, other servers
    /// may accept the cookie until it expires.
    pub async fn end(&self, headers: &HeaderMap) -> Result<(), StoreError> {
        let Some(Session { id, key, ends_at }) = self.session(headers) else { return Ok(()) };
        tracing::info!(key = key.id().as_str(), "logout from the dashboard");
        self.keys.service.ended_sessions.end(id, ends_at, self.now_ms()).await
    }

    /// The token for the forms of this caller.
    pub fn form_token(&self, headers: &HeaderMap, caller: &Caller) -> String {
        let owner = self.form_owner(headers, caller);
        self.keys.service.engine.signing_keys.current().form_token(&owner, self.now_ms())
    }

    /// Whether the token of a form was made for this caller.
    pub fn is_form_token(&self, headers: &HeaderMap, caller: &Caller, token: &str) -> bool {
        let owner = self.form_owner(headers, caller);
        self.keys.service.engine.signing_keys.current().is_form_token(token, &owner)
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

    /// Browsers reject a cookie named `__Secure-` that was not set over TLS, and one named
    /// `__Host-` also if it is for other hosts. A cookie for a path of its own cannot have the
    /// latter name.
    fn cookie_name(&self, headers: &HeaderMap) -> &'static str {
        match (is_local(headers), self.path_prefix.as_str()) {
            (true, _) => "rankduel-session",
            (false, "") => "__Host-rankduel-session",
            (false, _) => "__Secure-rankduel-session",
        }
    }

    /// The cookie with this value, valid for so many seconds. With 0 seconds, it makes the browser
    /// forget the session.
    pub fn cookie(&self, headers: &HeaderMap, value: &str, seconds: i64) -> String {
        let secure = if is_local(headers) { "" } else { "; Secure" };
        let path = Some(self.path_prefix.as_str()).filter(|path| !path.is_empty()).unwrap_or("/");
        format!(
            "{}={value}; Path={path}; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}",
            self.cookie_name(headers)
        )
    }
}

/// Whether the request is for the local machine, without a proxy. There the browser needs no TLS.
pub(crate) fn is_local(headers: &HeaderMap) -> bool {
    let is_proxied = headers.contains_key("x-forwarded-proto") || headers.contains_key("forwarded");
    !is_proxied && headers.contains_key(header::HOST) && names_local_host(headers)
}
