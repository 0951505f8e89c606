//! `/experiments/{name}/manage/{action}`: one change of an experiment.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::super::page::{Page, missing};
use super::action::{Action, Subject};
use super::fields::{self, Field};
use super::flow::{About, Change, Parameters};
use super::form::{Errors, Values};
use super::submission::see;
use crate::http::experiments::change::{change_experiment, check_change};
use crate::http::extract;
use crate::http::problem::ApiResult;
use crate::service::lifecycle;

/// An action on an experiment.
pub(super) struct OfExperiment {
    action: Action,
    subject: Subject,
}

impl Change for OfExperiment {
    async fn of(page: &Page, path: &Parameters) -> ApiResult<Self> {
        let (name, slug) = path.get("name").zip(path.get("action")).ok_or_else(missing)?;
        let action = Action::of_slug(slug).ok_or_else(missing)?;
        Ok(Self { action, subject: Subject::read(page, name).await? })
    }

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

    fn initial(&self) -> Values {
        self.action.initial(&self.subject)
    }

    fn is_complete(&self, values: &Values) -> bool {
        let is_active = self.subject.active().contains(&values.get("ranker"));
        self.action == Action::Retire && is_active
    }

    fn rankers(&self) -> Vec<&str> {
        self.subject.active()
    }

    fn body(&self, values: &Values, errors: &mut Errors) -> Map<String, Value> {
        let body = fields::body(&self.fields(), values, errors);
        self.action.body(&self.subject, body, errors)
    }

    async fn check(&self, page: &Page, body: Map<String, Value>) -> ApiResult<()> {
        let (service, loaded) = (&page.state.service, &self.subject.loaded);
        match self.action {
            Action::Archive => Ok(()),
            _ => check_change(service, loaded, extract::object(body)?, &page.caller.actor()),
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
}
