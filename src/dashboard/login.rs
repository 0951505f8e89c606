//! Logging in with a key, and logging out.

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use serde::Deserialize;

use super::layout::{self, Updates, Visitor};
use super::page::problem_page;
use crate::http::server::sessions::{Sessions, is_local};
use rankduel_engine::error::EngineError;

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

/// The explanation of a form that was sent without a session.
const NOT_KEPT: &str = "Your session had ended, so the form was not sent. Log in, go back to it in your browser, and \
    send it again: what you wrote is still there.";

#[derive(Deserialize)]
pub(crate) struct LoginQuery {
    next: Option<String>,
    /// Given if a form was sent without a session.
    form: Option<String>,
}

pub(crate) async fn login_page(
    State(sessions): State<Sessions>,
    headers: HeaderMap,
    query: Result<Query<LoginQuery>, QueryRejection>,
) -> Response {
    let query = query.ok().map(|Query(query)| (query.next, query.form.is_some()));
    let (next, has_sent) = query.unwrap_or_default();
    let next = safe_next(next.as_deref());
    if sessions.keys.are_none() || sessions.key_of(&headers).is_some() {
        return Redirect::to(next).into_response();
    }
    form(StatusCode::OK, next, has_sent.then_some(NOT_KEPT), &headers)
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
    (status, layout::page("Log in", Visitor::default(), Updates::Never, &main)).into_response()
}

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
    let response = match sessions.end(&headers).await {
        Ok(()) => Redirect::to("/login").into_response(),
        Err(error) => problem_page(&error.into(), Visitor::default()),
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
