//! `/audit`: the audit log.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::super::layout::{self, timestamp};
use super::super::page::Page;
use crate::http::problem::ApiResult;
use rankduel_store::{AuditPage, AuditRecord};

const ENTRIES: u32 = 50;
/// Longest value that is shown at once, in characters; a longer one is folded away.
const SHORT: usize = 120;

#[derive(Default, Deserialize)]
pub(crate) struct AuditQuery {
    experiment: Option<String>,
    after: Option<String>,
}

pub(crate) async fn show(
    page: Page,
    query: Result<Query<AuditQuery>, QueryRejection>,
) -> ApiResult<Response> {
    let AuditQuery { experiment, after } = query.map(|Query(query)| query).unwrap_or_default();
    let experiment =
        experiment.map(|name| name.trim().replace('\0', "")).filter(|name| !name.is_empty());
    match &experiment {
        Some(name) => page.caller.require_experiment(name)?,
        None => page.caller.require_all_experiments()?,
    }
    let service = &page.state.service;
    let after = after
        .and_then(|after| URL_SAFE_NO_PAD.decode(after).ok())
        .and_then(|bytes| bytes.try_into().ok())
        .map(i64::from_be_bytes);
    let AuditPage { records: entries, next } =
        service.engine.store.audit_page(experiment.as_deref(), after, ENTRIES).await?;
    let of_experiment = experiment.as_deref().map_or_else(String::new, |name| {
        let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        format!("experiment={name}&")
    });
    let main = html! {
        h1 { "Audit log" }
        p.quiet { "Every change of an experiment or a key, and what the service did by itself. Nobody can change or remove an entry." }
        form.filter method="get" action="/audit" {
            label for="experiment" { "Only the experiment" }
            input #experiment type="text" name="experiment" value=(experiment.as_deref().unwrap_or_default())
                autocomplete="off" spellcheck="false" autocapitalize="none";
            button.other type="submit" { "Show" }
        }
        @if entries.is_empty() { p { "There is no entry." } } @else { (table(&entries)) }
        p {
            @if after.is_some() { a href={ "/audit?" (of_experiment) } { "Newest entries" } " " }
            @if let Some(next) = next {
                @let next = URL_SAFE_NO_PAD.encode(next.to_be_bytes());
                a href={ "/audit?" (of_experiment) "after=" (next) } { "Older entries" }
            }
        }
    };
    Ok(page.respond(StatusCode::OK, "Audit log", &main))
}

fn table(entries: &[AuditRecord]) -> Markup {
    let rows = html! { @for entry in entries { tr.audit {
        td { (timestamp(entry.at)) }
        td { (who(entry)) }
        td { b { (entry.what) } br; (subject(entry)) }
        td { (value(entry.before.as_ref())) }
        td { (value(entry.after.as_ref())) }
    } } };
    layout::table("Entries", &["Time", "Who", "What", "Before", "After"], &rows)
}

fn who(entry: &AuditRecord) -> Markup {
    html! {
        code { (entry.who) }
        @if let Some(request) = &entry.request_id { br; span.small.quiet { "request " (request) } }
    }
}

fn subject(entry: &AuditRecord) -> Markup {
    html! {
        @match &entry.experiment {
            Some(name) => a href={ "/experiments/" (name) } { (name) },
            None => code { (entry.subject) },
        }
    }
}

fn value(value: Option<&Value>) -> Markup {
    let Some(value) = value else { return html! { "–" } };
    let members: Vec<(String, String)> = match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (format!("{name}: "), plain(value))).collect()
        }
        value => vec![(String::new(), plain(value))],
    };
    let length: usize =
        members.iter().map(|(name, value)| name.len() + value.chars().count()).sum();
    // the texts of people may change the direction of what follows
    let text = html! { @for (index, (name, value)) in members.iter().enumerate() {
        @if index > 0 { "; " } (name) bdi { (value) }
    } };
    html! {
        @if length <= SHORT { (text) }
        @else { details { summary { "Show" } code { (text) } } }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".into(),
        value => value.to_string(),
    }
}
