//! `/experiments/{name}/manage/{action}`: one change of an experiment.

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::action::{Action, Subject};
use super::flow::{self, About, Change};
use super::form::{Errors, Fields, STALE, Values};
use super::page::{Page, Refusal, Submission, see};
use crate::http::experiments::change::{ExperimentChange, change_experiment, check_change};
use crate::http::extract;
use crate::http::problem::{ApiResult, Problem};
use crate::service::lifecycle;

#[derive(Deserialize)]
pub(crate) struct ChangeQuery {
    ranker: Option<String>,
}

/// An action on an experiment.
struct OfExperiment {
    action: Action,
    subject: Subject,
}

impl OfExperiment {
    async fn read(page: &Page, name: &str, slug: &str) -> Result<Self, Refusal> {
        let action = Action::of_slug(slug).ok_or_else(|| page.missing())?;
        Ok(Self { action, subject: Subject::read(page, name).await? })
    }
}

/// The form of a change, or the question whether to make it.
pub(crate) async fn show(
    page: Page,
    Path((name, slug)): Path<(String, String)>,
    Query(query): Query<ChangeQuery>,
) -> Result<Response, Refusal> {
    let change = OfExperiment::read(&page, &name, &slug).await?;
    let values = change.action.initial(&change.subject);
    let chosen = query.ranker.filter(|id| change.subject.active().contains(&id.as_str()));
    Ok(match chosen {
        Some(id) => {
            let values = values.with("ranker", id);
            flow::ask(&page, &change, &values, &Errors::default(), StatusCode::OK)
        }
        None => flow::show(&page, &change, &values),
    })
}

/// Check a change, or make it.
pub(crate) async fn submit(
    Path((name, slug)): Path<(String, String)>,
    Submission { page, values }: Submission,
) -> Result<Response, Refusal> {
    let change = OfExperiment::read(&page, &name, &slug).await?;
    flow::submit(&page, &values, change).await
}

impl Change for OfExperiment {
    fn about(&self) -> About {
        let Self { action, subject } = self;
        About {
            title: action.title(),
            button: action.title(),
            path: format!("{}/{}", subject.path(), action.slug()),
            back: (subject.path(), format!("Manage {}", subject.record.name)),
            is_final: action.is_final(),
            refusal: action.refusal(subject),
            version: Some(subject.record.version),
            pointers: action.pointers(),
        }
    }

    fn fields(&self, fields: &Fields<'_>) -> Option<Markup> {
        self.action.has_fields().then(|| self.action.fields(&self.subject, fields))
    }

    async fn check(&self, _: &Page, values: &Values, errors: &mut Errors) -> ApiResult<()> {
        if version(values)? != self.subject.record.version {
            errors.add_whole(STALE);
        }
        let body = self.action.body(&self.subject, values, errors);
        if self.action == Action::Archive || !errors.is_empty() {
            return Ok(());
        }
        let body = extract::object::<ExperimentChange>(body)?;
        check_change(&self.subject.loaded.spec, body)
    }

    fn question(&self, _: &Page, values: &Values) -> (Markup, Markup) {
        (self.action.sentence(&self.subject, values), html! {})
    }

    async fn make(
        &self,
        page: &Page,
        values: &Values,
        errors: &mut Errors,
    ) -> ApiResult<Option<Response>> {
        let (service, by) = (&page.state.service, page.caller.actor());
        let (name, version) = (&self.subject.record.name, Some(version(values)?));
        if self.action == Action::Archive {
            lifecycle::archive(service, name, version, &by).await?;
        } else {
            let body = self.action.body(&self.subject, values, errors);
            if !errors.is_empty() {
                return Ok(None);
            }
            let body = extract::object::<ExperimentChange>(body)?;
            change_experiment(service, name, version, body, &by).await?;
        }
        Ok(Some(see(&format!("{}?done={}", self.subject.path(), self.action.slug()))))
    }

    async fn again(self, page: &Page) -> Result<Self, Refusal> {
        Ok(Self { subject: Subject::read(page, &self.subject.record.name).await?, ..self })
    }
}

/// The version that the form was made for.
fn version(values: &Values) -> ApiResult<u64> {
    let version = values.get("version").parse();
    version.map_err(|_| Problem::invalid("The form has no version of the experiment"))
}
