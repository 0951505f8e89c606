//! `/keys`: the API keys of the database.

use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::layout::{self, counted, fact, timestamp, with_code};
use super::super::page::{Page, missing};
use super::fields::{Field, Kind, fields};
use super::flow::{About, Change, Parameters, Question};
use super::form::{Errors, Values};
use crate::http::extract;
use crate::http::problem::{ApiResult, Problem, ProblemKind};
use crate::service::error::ServiceError;
use crate::service::keys::{self, key_errors};
use rankduel_engine::access::{KeyRequest, KeyState, NewKey, Scope};
use rankduel_store::ApiKeyRecord;

const PATH: &str = "/keys";
const NEW: &str = "/keys/new";

const FIELDS: [Field; 4] = fields! {
    name: Text, "/name", "Name", "Who or what uses the key, for people: search backend, for instance.";
    scopes: Checks(&SCOPES), "/scopes", "Scopes", "What the key allows. Give each caller no more than it needs.";
    experiments: Names, "/experiments", "Experiments",
        "Names of the experiments that the key is limited to, separated by spaces; empty means all, also future ones.";
    expires_in_days: Number, "/expires_in_days", "Days until it expires", "Empty means that it never expires.";
};

/// The scopes, each with what it allows.
const SCOPES: [(&str, &str); 4] = [
    ("decide", "requests duels and pages, for a search backend"),
    ("feedback", "sends feedback, for a search backend"),
    ("read", "reads experiments, results, metrics and the dashboard"),
    ("admin", "does everything: changes experiments, makes and revokes keys, reads the audit log"),
];

#[derive(Deserialize)]
struct NewKeyBody {
    name: String,
    scopes: Vec<Scope>,
    experiments: Option<Vec<String>>,
    expires_in_days: Option<u32>,
}

fn request(body: Map<String, Value>) -> ApiResult<KeyRequest> {
    let NewKeyBody { name, scopes, experiments, expires_in_days } = extract::object(body)?;
    Ok(KeyRequest { name, scopes: scopes.into_iter().collect(), experiments, expires_in_days })
}

pub(crate) async fn list(page: Page, Query(query): Query<Parameters>) -> ApiResult<Response> {
    page.caller.require_all_experiments()?;
    let keys = keys::api_keys(&page.state.service).await?;
    let now = page.state.service.now_ms();
    let main = html! {
        div.title {
            h1 { "Keys" }
            @if !page.sessions.keys.are_none() { a.button href=(NEW) { "New key" } }
        }
        @if query.get("done").is_some_and(|done| done == "revoked") {
            p.notice role="status" { "The key is revoked. Every server refuses it within ten seconds." }
        }
        @if page.sessions.keys.are_none() { p { (FIRST_KEY) " " (with_code(FIRST_KEY_COMMAND)) } }
        @if keys.is_empty() {
            p { "There is no key in the database. Keys from the server's environment are not listed." }
        } @else {
            (table(&page, &keys, now))
            p.quiet { "Keys from the server's environment (" code { "RANKDUEL_API_KEYS" } ") are not listed." }
        }
    };
    Ok(page.respond(StatusCode::OK, "Keys", &main))
}

/// A server without keys trusts everybody, so a page of it must not lock its operator out.
const FIRST_KEY: &str = "This server has no keys, so everybody who reaches it may do everything. As soon as there is one \
    key, every caller needs a key. Make the first one on the command line, where you cannot lock yourself out:";
const FIRST_KEY_COMMAND: &str = "`rankduel keys create \"my name\" --scope admin`";

fn table(page: &Page, keys: &[ApiKeyRecord], now: i64) -> Markup {
    let own = page.caller.key().map(|key| key.id().as_str().to_owned());
    let heads = ["Id", "Name", "Scopes", "Experiments", "Created", "Expires", "Last used", "State"];
    let rows = html! { @for key in keys { tr {
        th scope="row" { code { (key.id) } @if own.as_ref() == Some(&key.id) { " (yours)" } }
        td { (key.name) }
        td { (key.scopes) }
        td { (experiments(key)) }
        td { (timestamp(key.created_at)) }
        td { (time(key.expires_at)) }
        td { (time(key.last_used_at)) }
        td {
            @match KeyState::of(key, now) {
                KeyState::Good => {
                    a href={ (PATH) "/" (key.id) "/revoke" } { "Revoke" span.sr { " " (key.name) } "…" }
                }
                ended => span.badge.archived { (ended.name()) },
            }
        }
    } } };
    layout::table("Keys", &heads, &rows)
}

fn experiments(key: &ApiKeyRecord) -> Markup {
    html! { @match &key.experiments { Some(names) => (names.join(", ")), None => "all" } }
}

fn time(at: Option<i64>) -> Markup {
    html! { @match at { Some(at) => (timestamp(at)), None => "never" } }
}

pub(super) struct NewApiKey {
    /// Whether the server has keys; without them, it makes none here.
    has_keys: bool,
}

impl Change for NewApiKey {
    async fn of(page: &Page, _: &Parameters) -> ApiResult<Self> {
        page.caller.require_all_experiments()?;
        Ok(Self { has_keys: !page.sessions.keys.are_none() })
    }

    fn about(&self) -> About {
        About {
            title: "New key",
            button: "Make the key",
            path: NEW.into(),
            back: (PATH.into(), "Keys".into()),
            refusal: (!self.has_keys).then(|| format!("{FIRST_KEY} {FIRST_KEY_COMMAND}")),
            ..About::default()
        }
    }

    fn fields(&self) -> Vec<Field> {
        FIELDS.into()
    }

    async fn check(&self, _: &Page, body: Map<String, Value>) -> ApiResult<()> {
        Ok(ServiceError::unless_valid(key_errors(&request(body)?))?)
    }

    fn question(&self, _: &Page, values: &Values) -> Question {
        let Ok(request) = request(self.body(values, &mut Errors::default())) else {
            return Question::default();
        };
        let sentence = html! {
            "A new key for " b { (request.name) } " will be valid at once, with the scopes " b { (request.scopes) } " for "
            @match &request.experiments { Some(names) => (names.join(", ")), None => "all experiments" }
            @match request.expires_in_days { Some(days) => { ", for " (counted(days.into(), "day", "days")) "." } None => ", without expiry." }
            " The next page shows it once."
        };
        Question { sentence, details: Markup::default() }
    }

    async fn make(&self, page: &Page, _: &Values, body: Map<String, Value>) -> ApiResult<Response> {
        if let Some(refusal) = self.about().refusal {
            return Err(Problem::new(ProblemKind::Forbidden, refusal));
        }
        let (request, by) = (request(body)?, page.caller.actor());
        let (key, record) = keys::create_api_key(&page.state.service, &request, &by).await?;
        Ok(made(page, &key, &record))
    }
}

/// The new key, which is shown in this one response and stored nowhere.
fn made(page: &Page, key: &NewKey, record: &ApiKeyRecord) -> Response {
    let main = html! {
        h1 { "The new key" }
        p.notice role="status" { "Copy the key now: it is stored nowhere and never shown again." }
        pre tabindex="0" { code #key { (key.text) } }
        dl.facts {
            (fact("Id", &html! { code { (record.id) } }))
            (fact("Name", &html! { (record.name) }))
            (fact("Scopes", &html! { (record.scopes) }))
            (fact("Experiments", &experiments(record)))
            (fact("Expires", &time(record.expires_at)))
        }
        p { a.button href=(PATH) { "All keys" } }
    };
    page.respond(StatusCode::OK, "The new key", &main)
}

pub(super) struct Revocation {
    key: ApiKeyRecord,
}

impl Change for Revocation {
    async fn of(page: &Page, path: &Parameters) -> ApiResult<Self> {
        page.caller.require_all_experiments()?;
        let id = path.get("id").ok_or_else(missing)?;
        let key = keys::api_key(&page.state.service, id).await?;
        Ok(Self { key: key.ok_or_else(missing)? })
    }

    fn about(&self) -> About {
        About {
            title: "Revoke a key",
            button: "Revoke the key",
            path: format!("{PATH}/{}/revoke", self.key.id),
            back: (PATH.into(), "Keys".into()),
            is_final: true,
            ..About::default()
        }
    }

    fn question(&self, page: &Page, _: &Values) -> Question {
        let is_own = page.caller.key().is_some_and(|own| own.id().as_str() == self.key.id);
        let sentence = html! {
            "Key " code { (self.key.id) } " of " b { (self.key.name) } " will be refused by every server within ten seconds, and so will every session that was opened with it."
            @if is_own { " It is the key of this session: you will be logged out." }
        };
        let details = html! {
            dl.facts {
                (fact("Scopes", &html! { (self.key.scopes) }))
                (fact("Experiments", &experiments(&self.key)))
                (fact("Last used", &time(self.key.last_used_at)))
            }
        };
        Question { sentence, details }
    }

    async fn make(&self, page: &Page, _: &Values, _: Map<String, Value>) -> ApiResult<Response> {
        let by = page.caller.actor();
        keys::revoke_api_key(&page.state.service, &self.key.id, &by).await?;
        Ok(Redirect::to("/keys?done=revoked").into_response())
    }
}
