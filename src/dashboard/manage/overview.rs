//! `/experiments/{name}/manage`: the state of an experiment, and every change that it takes.

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use super::super::forecast::DAY_MS;
use super::super::layout::{
    self, Tab, counted, day, enumerated, fact, head, margin_points, name, number, part, seconds,
    table, timestamp, with_code,
};
use super::super::page::Page;
use super::action::{Action, Subject};
use super::flow::Parameters;
use super::{methods, plan, policies};
use crate::http::problem::ApiResult;
use crate::service::answers;
use rankduel_engine::experiment_spec::ExperimentSpec;

/// The page. A query can name the change that was made.
pub(crate) async fn show(
    page: Page,
    Path(experiment): Path<String>,
    Query(query): Query<Parameters>,
) -> ApiResult<Response> {
    let subject = Subject::read(&page, &experiment).await?;
    let answer = answers::current(&page.state.service, &subject.loaded).await?;
    let meta = html! { "Changes, each of which asks once more." };
    let created = &subject.loaded.spec;
    let plan = plan::of_created(&page, created, &query).await;
    let main = html! {
        (head(&subject.record.name, &answer, &meta, Tab::Manage, page.visitor()))
        @if let Some(sentence) = query.get("done").and_then(|slug| done(slug)) {
            p.notice role="status" { (sentence) }
        }
        @if let Some(plan) = &plan { (part("plan", "How long it takes", &plan::section(plan, subject.record.created_at))) }
        (state(&subject))
        (rankers(&subject))
        (segments(&subject))
        (pages(&subject))
        p { a href={ "/audit?experiment=" (subject.record.name) } { "All changes of this experiment" } }
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
    let content = html! {
            dl.facts {
                (fact("Status", &html! { (format!("{:?}", record.status).to_lowercase()) @if record.archived_at.is_some() { ", archived" } }))
                @if let Some(winner) = subject.winner() { (fact("Winner", &html! { code { (winner) } })) }
                @if !spec.description.is_empty() { (fact("Description", &html! { bdi { (spec.description) } })) }
                @if let Some(control) = &spec.control { (fact("Control", &html! { code { (control) } })) }
                @if !spec.owner.is_empty() { (fact("Owner", &html! { bdi { (spec.owner) } })) }
                (fact("Concludes", &match subject.has_resumed() {
                    true => html! { "not by itself any more: it had ended, and was resumed" },
                    false => concludes(spec, record.created_at),
                }))
                (fact("Answer window", &answer_window(spec)))
                (fact("Created", &timestamp(record.created_at)))
                (fact("Last change", &timestamp(record.updated_at)))
                (fact("Version", &html! { (number(record.version)) }))
            }
            @if record.archived_at.is_some() { p { "The experiment is archived: it can be read, but not changed." } }
            (links(subject, Action::ON_STATE))
    };
    part("state", "State", &content)
}

/// When an experiment that starts at `from`, in Unix milliseconds, concludes, in words.
pub(super) fn concludes(spec: &ExperimentSpec, from: i64) -> Markup {
    let Some(at) = spec.conclude_at else { return html! { "never by itself" } };
    let on = |days: f64| day((from as f64 + days * DAY_MS as f64) as i64, from);
    html! {
        "at confidence " (at.confidence) " with a margin of " (margin_points(at.margin))
        @if let Some(days) = at.min_days { ", on " (on(days)) " at the earliest (" (layout::days(days)) ")" }
        @if let Some(days) = at.max_days { ", on " (on(days)) " in any case (" (layout::days(days)) ")" }
        @if let Some(duels) = at.max_duels { ", after " (counted(duels, "duel", "duels")) " in any case" }
    }
}

/// The time within which answers come, in words.
pub(super) fn answer_window(spec: &ExperimentSpec) -> Markup {
    match spec.answer_window_seconds {
        0 => html! { "none: each answer counts as it arrives" },
        window => html! { (seconds(window.into())) },
    }
}

/// Links to those of these changes that are possible.
fn links<const N: usize>(subject: &Subject, actions: [Action; N]) -> Markup {
    let possible: Vec<_> =
        actions.into_iter().filter(|action| action.refusal(subject).is_none()).collect();
    html! {
        @if !possible.is_empty() { div.buttons { @for action in possible {
            a.button.(if action.is_final() { "danger" } else { "other" }) href={ (subject.path()) "/" (action.slug()) } {
                (action.title()) "…"
            }
        } } }
    }
}

fn rankers(subject: &Subject) -> Markup {
    let spec = &subject.loaded.spec;
    let refusal = Action::Enlist.refusal(subject);
    let can_retire = refusal.is_none() && subject.active().len() > dueling_bandits::MIN_RANKERS;
    let rows = html! { @for (index, ranker) in spec.rankers.iter().enumerate() { tr {
        th scope="row" { (name(&ranker.id)) }
        td { bdi { (ranker.description.as_deref().unwrap_or("–")) } }
        td {
            @if spec.is_retired(index) { span.badge.archived { "retired" } }
            @else if can_retire { (retire(subject, &ranker.id)) }
            @else { "–" }
        }
    } } };
    let content = html! {
        (table("Rankers", &["Ranker", "Description", "Change"], &rows))
        (links(subject, [Action::Enlist, Action::Control]))
        p.quiet { @match refusal {
            Some(refusal) => (with_code(&refusal)),
            None => "After a change of the rankers, the verdict starts anew.",
        } }
    };
    part("rankers", "Rankers", &content)
}

fn retire(subject: &Subject, id: &str) -> Markup {
    let ranker: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    html! {
        a href={ (subject.path()) "/retire?ranker=" (ranker) } { "Retire" span.sr { " " bdi { (id) } } "…" }
    }
}

/// The declared segments.
fn segments(subject: &Subject) -> Markup {
    let segments: Vec<_> =
        subject.loaded.spec.segments.iter().map(|it| html! { bdi { (it) } }).collect();
    if segments.is_empty() {
        return Markup::default();
    }
    part("segments", "Segments", &html! { p { (enumerated(&segments)) "." } })
}

/// How the rankers of a page are selected and merged.
fn pages(subject: &Subject) -> Markup {
    let policy = &subject.loaded.spec.policy;
    let content = html! {
        p { "Policy " (policies::described(policy)) ": " (with_code(policy.description().summary)) }
        p { "Interleaving " (methods::described(&subject.loaded.spec.pages.interleaving)) "." }
        (links(subject, [Action::Interleaving]))
    };
    part("pages", "Policy and interleaving", &content)
}
