//! `/experiments/{name}/manage/{action}`: one change of an experiment.

use std::collections::HashMap;

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::super::page::{Page, Refusal};
use super::action::{Action, Subject};
use super::fields::{self, Field};
use super::flow::{self, About, Change};
use super::form::{Errors, Values};
use super::submission::{Submission, see};
use crate::http::experiments::change::{change_experiment, check_change};
use crate::http::extract;
use crate::http::problem::ApiResult;
use crate::service::lifecycle;

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

/// The form of a change, or the question whether to make it. A link can name values of the form,
/// and one to retire a ranker leads to the question.
pub(crate) async fn show(
    page: Page,
    Path((name, slug)): Path<(String, String)>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Response, Refusal> {
    let change = OfExperiment::read(&page, &name, &slug).await?;
    let mut values = change.action.initial(&change.subject);
    for Field { name, .. } in change.fields() {
        if let Some(value) = query.get(name) {
            values = values.with(name, value);
        }
    }
    if change.action == Action::Retire && change.subject.active().contains(&values.get("ranker")) {
        return Ok(flow::ask(&page, &change, &values, &Errors::default(), StatusCode::OK));
    }
    Ok(flow::show(&page, &change, &values))
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
        }
    }

    fn fields(&self) -> Vec<Field> {
        self.action.fields()
    }

    fn rankers(&self) -> Vec<&str> {
        self.subject.active()
    }

    fn body(&self, values: &Values, errors: &mut Errors) -> Map<String, Value> {
        let body = fields::body(&self.fields(), values, errors);
        self.action.body(&self.subject, body, errors)
    }

    async fn check(&self, _: &Page, body: Map<String, Value>) -> ApiResult<()> {
        match self.action {
            Action::Archive => Ok(()),
            _ => check_change(&self.subject.loaded.spec, extract::object(body)?),
        }
    }

    fn question(&self, _: &Page, values: &Values) -> (Markup, Markup) {
        let body = self.body(values, &mut Errors::default());
        (self.action.sentence(&self.subject, values, &body), html! {})
    }

    async fn make(&self, page: &Page, body: Map<String, Value>) -> ApiResult<Response> {
        let (service, by) = (&page.state.service, page.caller.actor());
        let (name, version) = (&self.subject.record.name, Some(self.subject.record.version));
        if self.action == Action::Archive {
            lifecycle::archive(service, name, version, &by).await?;
        } else {
            change_experiment(service, name, version, extract::object(body)?, &by).await?;
        }
        Ok(see(&format!("{}?done={}", self.subject.path(), self.action.slug())))
    }

    async fn again(self, page: &Page) -> Result<Self, Refusal> {
        Ok(Self { subject: Subject::read(page, &self.subject.record.name).await?, ..self })
    }
}
