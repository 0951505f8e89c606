//! `/new-experiment`: creates an experiment.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::super::layout::fact;
use super::super::page::Page;
use super::fields::{Field, Form, Kind, fields};
use super::flow::{About, Change, Parameters, Question, step_button};
use super::form::{Errors, Step, Values};
use super::{methods, plan, policies, settings};
use crate::http::experiments::create::{create_experiment, spec_of};
use crate::http::extract;
use crate::http::problem::ApiResult;
use crate::service::error::ServiceError;
use crate::service::reports::plan::PlanReport;
use rankduel_engine::experiment_spec::{
    ConcludeAt, DEFAULT_DUEL_TTL_SECONDS, FieldError, name_error,
};

const WHAT: [Field; 3] = fields! {
    name: Text, "/name", "Name",
        "Backends name the experiment by it in every request: up to 64 of a-z, 0-9, dot, dash and underscore. It can be \
         used only once.";
    rankers: Rankers, "/rankers", "Rankers",
        "One ranker on a line, by the id under which your backend knows it. You can add a description after a vertical \
         bar: neural | two towers, trained in May.";
    control: Optional, "/control", "Control",
        "The id of the ranker that people see today: the page then says which others are better than it. You can leave it \
         empty.";
};

/// The target of the verdict.
pub(super) const TARGET: [Field; 2] = fields! {
    confidence: Number, "/conclude_at/confidence", "Confidence",
        "With 0.95, a wrong verdict comes up in at most 5 % of experiments, however often you look.";
    margin: Number, "/conclude_at/margin", "Margin",
        "Differences up to this size do not matter: with 0.01, a ranker that is less than 1 point behind may win.";
};

const POLICY: [Field; 2] = fields! {
    policy: Policy, "/policy/kind", "Policy",
        "The algorithm that selects the two rankers of each page. The default, d-ts-verdict, finds the best ranker and \
         proves it, and shows few bad pages on the way.";
    parameters: Parameters, "/policy/", "Parameters of the policy",
        "Leave this empty for the defaults, or write name=value, name=value.";
};

const FEEDBACK: [Field; 3] = fields! {
    ties: Choice(&[("skip", "nothing"), ("half", "half a win for both"), ("coin", "a win for one of them, by a coin")]),
        "/ties", "Ties", "What a page counts on which both rankers do equally well.";
    duel_ttl_seconds: Number, "/duel_ttl_seconds", "Seconds until a duel expires",
        "Feedback that comes later than this after the duel is refused.";
    answer_window_seconds: Number, "/answer_window_seconds", "Answer window in seconds",
        "The verdict counts a duel once its answer can no longer come; empty means until the duel expires, and 0 at once.";
};

const CLAIMS: [Field; 3] = fields! {
    segments: Lines, "/segments", "Segments",
        "The labels that you send as `segment` with pages and want to know about, one on a line, such as `mobile`. The page \
         then says in which of them the winner loses.";
    metrics: Json, "/metrics", "Metrics",
        "What must not get worse, as for the API: \
         `[{\"name\": \"latency_ms\", \"cap\": 2000, \"limit\": 400}]`. A ranker with a mean above the limit is retired.";
    errors: Json, "/errors", "Errors",
        "How the result and the other claims divide the error, as for the API: `{\"best\": 0.03, \"segments\": 0.02}`. \
         Empty means that each has the whole.";
};

/// The fields of the body, in their order.
pub(super) fn fields() -> Vec<Field> {
    let end = [&settings::CONCLUSION[..], &TARGET, &settings::LIMITS].concat();
    [&WHAT[..], &settings::TEXTS, &end, &pages(), &CLAIMS].concat()
}

fn pages() -> Vec<Field> {
    [&POLICY[..], &methods::FIELDS, &FEEDBACK].concat()
}

#[derive(Default)]
pub(super) struct NewExperiment {
    plan: Option<PlanReport>,
}

impl Change for NewExperiment {
    async fn of(_: &Page, _: &Parameters) -> ApiResult<Self> {
        Ok(Self::default())
    }

    fn about(&self) -> About {
        About {
            title: "New experiment",
            button: "Create the experiment",
            path: "/new-experiment".into(),
            back: ("/".into(), "Experiments".into()),
            ..About::default()
        }
    }

    fn fields(&self) -> Vec<Field> {
        fields()
    }

    /// The defaults of the API.
    fn initial(&self) -> Values {
        let ConcludeAt { confidence, margin, .. } = ConcludeAt::default();
        Values::of(&[("policy", "d-ts-verdict"), ("concludes", "verdict"), ("ties", "skip")])
            .with("confidence", confidence.to_string())
            .with("margin", margin.to_string())
            .with("duel_ttl_seconds", DEFAULT_DUEL_TTL_SECONDS.to_string())
            .with("interleaving", interleaving::Spec::default().method.kind())
            .with("difference", "0.04")
            .with("answered", "0.3")
    }

    fn form(&self, form: &Form<'_>) -> Markup {
        html! {
            p.quiet { "The experiment starts after you confirm it on the next page. The API takes some more settings." }
            section aria-labelledby="what" {
                h2 #what { "What to compare" }
                (form.fields(&WHAT)) (form.fields(&settings::TEXTS))
            }
            section aria-labelledby="end" {
                h2 #end { "When it ends" }
                (form.fields(&settings::CONCLUSION))
                (form.fields(&[&TARGET[..], &settings::LIMITS].concat()))
            }
            section #plan aria-labelledby="plan-h" {
                h2 #plan-h { "How long it takes" }
                p.help { "With the pages a day, this page and the next one say how long the experiment takes. Nothing of it is a setting." }
                (form.fields(&plan::FIELDS))
                @if let Some(report) = &self.plan { (plan::section(report)) }
                div.buttons { (step_button(Step::Edit, "Show the forecast", "other")) }
            }
            (form.folded("Policy, pages and feedback", &pages(), &self.initial()))
            (form.folded("Segments, metrics and errors", &CLAIMS, &self.initial()))
        }
    }

    async fn prepare(&mut self, page: &Page, values: &Values, errors: &mut Errors) {
        self.plan = plan::of(page, values, &fields(), errors).await;
    }

    async fn check(&self, page: &Page, body: Map<String, Value>) -> ApiResult<()> {
        let (name, spec) = spec_of(extract::object(body)?)?;
        page.caller.require_experiment(&name)?;
        let mut invalid: Vec<_> = name_error(&name).into_iter().chain(spec.errors()).collect();
        if invalid.is_empty() && page.state.service.experiment(&name).await.is_ok() {
            let detail = format!("there is an experiment `{name}` already; choose another name");
            invalid.push(FieldError::new("/name", detail));
        }
        Ok(ServiceError::unless_valid(invalid)?)
    }

    fn question(&self, _: &Page, values: &Values) -> Question {
        let body = self.body(values, &mut Errors::default());
        let Ok((name, spec)) = extract::object(body).and_then(spec_of) else {
            return Question::default();
        };
        let sentence = html! {
            "Experiment " code { (name) } " will start at once: it issues duels of its "
            (spec.rankers.len()) " rankers to every backend that requests them."
        };
        let details = html! {
            dl.facts {
                (fact("Policy", &policies::described(&spec.policy)))
                (fact("Concludes", &super::overview::concludes(&spec)))
            }
            @if let Some(report) = &self.plan { (plan::section(report)) }
        };
        Question { sentence, details }
    }

    async fn make(&self, page: &Page, body: Map<String, Value>) -> ApiResult<Response> {
        let created = create_experiment(&page.state, &page.caller, extract::object(body)?).await?;
        Ok(Redirect::to(&format!("/experiments/{}/manage?done=created", created.loaded.name))
            .into_response())
    }
}
