//! `/experiments/{name}/manage`: the state of an experiment, and every change that it takes.

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::super::layout::{
    Tab, badge, fact, head, margin_points, name, number, seconds, timestamp, with_code,
};
use super::action::{Action, Subject};
use super::page::{Page, Refusal};
use super::{audit, methods, policies};
use crate::service::reports::traffic::traffic;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_store::AuditRecord;

/// Entries of the audit log on this page.
const ENTRIES: u32 = 5;

#[derive(Deserialize)]
pub(crate) struct OverviewQuery {
    /// The name of the change that was made.
    done: Option<String>,
}

/// The page.
pub(crate) async fn show(
    page: Page,
    Path(experiment): Path<String>,
    Query(query): Query<OverviewQuery>,
) -> Result<Response, Refusal> {
    let subject = Subject::read(&page, &experiment).await?;
    let audit = page.state.service.engine.store.audit_page(Some(&experiment), None, ENTRIES).await;
    let entries = audit.map_err(|error| page.refuse(error))?.records;
    let (_, alarms) =
        traffic(&page.state.service, &subject.loaded).await.map_err(|error| page.refuse(error))?;
    let badge = badge(&subject.record, !subject.lead.winners.is_empty());
    let meta = html! { "Changes, each of which asks once more." };
    let main = html! {
        (head(&subject.record, &badge, &meta, Tab::Manage, page.visitor(), &alarms))
        @if let Some(sentence) = query.done.as_deref().and_then(done) {
            p.notice role="status" { (sentence) }
        }
        (state(&subject))
        (rankers(&subject))
        (policy(&subject))
        (interleaving(&subject))
        (history(&subject, &entries))
    };
    Ok(page.respond(StatusCode::OK, &format!("Manage {}", subject.record.name), &main))
}

fn done(slug: &str) -> Option<&'static str> {
    match slug {
        "created" => Some("The experiment is created and issues duels."),
        slug => Action::of_slug(slug).map(Action::done),
    }
}

fn state(subject: &Subject) -> Markup {
    let (record, spec) = (&subject.record, &subject.loaded.spec);
    let possible: Vec<_> =
        Action::ON_STATE.into_iter().filter(|action| action.refusal(subject).is_none()).collect();
    html! {
        section aria-labelledby="state-title" {
            h2 #state-title { "State" }
            dl.facts {
                (fact("Status", &html! { (format!("{:?}", record.status).to_lowercase()) @if record.archived_at.is_some() { ", archived" } }))
                @if let Some(winner) = subject.winner() { (fact("Winner", &html! { code { (winner) } })) }
                @if !spec.description.is_empty() { (fact("Description", &html! { bdi { (spec.description) } })) }
                @if !spec.owner.is_empty() { (fact("Owner", &html! { bdi { (spec.owner) } })) }
                (fact("Concludes", &concludes(spec)))
                (fact("Answer window", &html! { (seconds(spec.answer_window_seconds.into())) }))
                (fact("Created", &timestamp(record.created_at)))
                (fact("Last change", &timestamp(record.updated_at)))
                (fact("Version", &html! { (number(record.version)) }))
            }
            @if possible.is_empty() {
                p { "The experiment is archived: it can be read, but not changed." }
            } @else {
                div.buttons { @for action in possible { (link(subject, action)) } }
            }
        }
    }
}

/// When an experiment concludes, in words.
pub(super) fn concludes(spec: &ExperimentSpec) -> Markup {
    let Some(at) = spec.conclude_at else { return html! { "never by itself" } };
    html! {
        "at confidence " (at.confidence) " with a margin of " (margin_points(at.margin))
        @if let Some(days) = at.min_days { ", after " (days) " days at the earliest" }
        @if let Some(days) = at.max_days { ", after " (days) " days in any case" }
        @if let Some(duels) = at.max_duels { ", after " (number(duels)) " duels in any case" }
    }
}

fn link(subject: &Subject, action: Action) -> Markup {
    let class = if action.is_final() { "danger" } else { "other" };
    html! {
        a.button.(class) href={ (subject.path()) "/" (action.slug()) } { (action.title()) "…" }
    }
}

fn rankers(subject: &Subject) -> Markup {
    let spec = &subject.loaded.spec;
    let refusal = Action::Enlist.refusal(subject);
    let can_retire = refusal.is_none() && subject.active().len() > dueling_bandits::MIN_RANKERS;
    html! {
        section aria-labelledby="rankers-title" {
            h2 #rankers-title { "Rankers" }
            div.scroll role="group" aria-labelledby="rankers-title" tabindex="0" {
                table {
                    thead { tr {
                        th scope="col" { "Ranker" }
                        th scope="col" { "Description" }
                        th scope="col" { "Change" }
                    } }
                    tbody { @for (index, ranker) in spec.rankers.iter().enumerate() { tr {
                        th scope="row" { (name(&ranker.id)) }
                        td { (ranker.description.as_deref().unwrap_or("–")) }
                        td {
                            @if spec.is_retired(index) { span.badge.archived { "retired" } }
                            @else if can_retire { (retire(subject, &ranker.id)) }
                            @else { "–" }
                        }
                    } } }
                }
            }
            @match refusal {
                Some(refusal) => { p.quiet { (with_code(&refusal)) } }
                None => {
                    div.buttons { (link(subject, Action::Enlist)) }
                    p.quiet { "After a change of the rankers, the verdict starts anew." }
                }
            }
        }
    }
}

fn retire(subject: &Subject, id: &str) -> Markup {
    let ranker: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    html! {
        a href={ (subject.path()) "/retire?ranker=" (ranker) } { "Retire" span.sr { " " (id) } "…" }
    }
}

fn policy(subject: &Subject) -> Markup {
    let spec = &subject.loaded.spec;
    html! {
        section aria-labelledby="policy-title" {
            h2 #policy-title { "Policy" }
            p { (policies::described(&spec.policy)) }
            p.quiet { (with_code(spec.policy.description().summary)) }
            @if Action::Policy.refusal(subject).is_none() {
                div.buttons { (link(subject, Action::Policy)) }
            }
        }
    }
}

fn interleaving(subject: &Subject) -> Markup {
    html! {
        section aria-labelledby="interleaving-title" {
            h2 #interleaving-title { "Interleaving" }
            @match subject.method() {
                Some(method) => { p { (methods::described(&method)) } }
                None => { p { "This version of the program cannot read the method." } }
            }
            @if Action::Interleaving.refusal(subject).is_none() {
                div.buttons { (link(subject, Action::Interleaving)) }
            }
        }
    }
}

fn history(subject: &Subject, entries: &[AuditRecord]) -> Markup {
    html! {
        section aria-labelledby="history-title" {
            h2 #history-title { "Latest changes" }
            (audit::table(entries, "history-title"))
            p { a href={ "/audit?experiment=" (subject.record.name) } { "All changes of this experiment" } }
        }
    }
}
