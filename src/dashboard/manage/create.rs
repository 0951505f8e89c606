//! `/new-experiment`: creates an experiment.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::super::page::Page;
use super::fields::{self, Field, Form, Kind, fields};
use super::flow::{About, Change, Parameters, Question};
use super::form::{Errors, Step, Values, step_button};
use super::{methods, plan, settings, summary};
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

const WHOM: [Field; 5] = fields! {
    goal: Choice(&[("best", "the best ranker"), ("improve", "one that is better than the control")]),
        "/goal", "Goal", "What is proven first.";
    coverage: Share, "/coverage", "Coverage",
        "The share of units that take part, such as 10 %; all others get the control. Empty is everybody.";
    alone: Share, "/alone", "One ranker alone",
        "The share of units that see the leader or the control alone, for metrics of a page; empty is nobody.";
    canary: Pair, "/canary", "Canary",
        "Two ids of one ranker, with a comma between them, both in the list above: an alarm tells if they seem to differ.";
    canary_share: Share, "/canary_share", "Pages of the canary",
        "The share of pages that compare these two; empty is 5 %.";
};

const DECIDES: [Field; 5] = fields! {
    decides: Choice(&[("", "clicks"), ("orders", "orders, each as much as any other"), ("money", "the money of orders")]),
        "/decide_by/by", "Decided by",
        "Clicks decide within hours. Orders take weeks, and name the ranker that sells more; then the other four fields \
         count, and pages need a unit.";
    orders_event: Optional, "/decide_by/event", "Name of an order",
        "It is shown in sentences, and is the `action_name` of User Behavior Insights events.";
    window_seconds: Number, "/decide_by/window_seconds", "Window of orders in seconds",
        "Orders count that come within this time after the first page that a unit clicked. 604800 is a week.";
    arrival_seconds: Number, "/decide_by/arrival_seconds", "Seconds until orders arrive",
        "The time after an order within which you send it. A nightly file needs 129600.";
    cap: Number, "/decide_by/cap", "Cap of the money of one person",
        "Only for money: larger sums count as this. Below the mean order it costs little; four times the mean doubles the \
         pages.";
};

/// The target of the verdict.
pub(super) const TARGET: [Field; 2] = fields! {
    confidence: Share, "/conclude_at/confidence", "Confidence",
        "With 0.95, a wrong verdict comes up in at most 5 % of experiments, however often you look.";
    margin: Share, "/conclude_at/margin", "Margin",
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

const DRIFT: [Field; 1] = fields! {
    drift: Choice(&[("tell", "an alarm tells"), ("restart", "an alarm tells, and the verdict starts again"), ("off", "nothing")]),
        "/drift", "If preferences change",
        "What happens. After the conclusion, 2 % of the pages look for changes.";
};

const CLAIMS: [Field; 7] = fields! {
    segments: Labels, "/segments", "Segments",
        "The labels that you send as `segment` with pages and want to know about, with commas or line breaks between them, \
         such as `mobile, desktop`. The page then says in which of them the winner loses.";
    metrics: Metrics, "/metrics", "Metrics",
        "What must not get worse: `latency_ms`, for instance, with values up to 2000 and a mean of at most 400. Give a \
         metric a limit, a difference to the control, or both. Empty rows are left out.";
    value_window_seconds: Number, "/value_window_seconds", "Seconds for values of metrics",
        "The values of a page count that come within this time; empty is 60.";
    errors_best: Share, "/errors/best", "Error of the best ranker",
        "With these four, the claims divide the error that the confidence leaves. Empty is an equal share of the rest; if \
         all are empty, each has the whole.";
    errors_control: Share, "/errors/control", "Error of claims on the control", "Such as 2 %.";
    errors_segments: Share, "/errors/segments", "Error of claims on segments", "Such as 1 %.";
    errors_metrics: Share, "/errors/metrics", "Error of claims on metrics", "Such as 1 %.";
};

/// The fields of the body, in their order.
pub(super) fn fields() -> Vec<Field> {
    let end = [&settings::CONCLUSION[..], &TARGET, &settings::LIMITS].concat();
    [&WHAT[..], &settings::TEXTS, &DECIDES, &WHOM, &end, &DRIFT, &pages(), &CLAIMS].concat()
}

fn pages() -> Vec<Field> {
    [&POLICY[..], &methods::FIELDS, &FEEDBACK].concat()
}

#[derive(Default)]
pub(super) struct NewExperiment {
    plan: Option<PlanReport>,
    /// Unix milliseconds.
    now: i64,
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
            .with("goal", "best")
            .with("drift", "tell")
            .with("confidence", confidence.to_string())
            .with("margin", margin.to_string())
            .with("duel_ttl_seconds", DEFAULT_DUEL_TTL_SECONDS.to_string())
            .with("interleaving", interleaving::Spec::default().method.kind())
            .with("difference", "0.04")
            .with("answered", "0.3")
            .with("orders", "0.025")
            .with("orders_event", "order")
            .with("window_seconds", "604800")
            .with("arrival_seconds", "129600")
    }

    fn form(&self, form: &Form<'_>) -> Markup {
        html! {
            p.quiet { "The experiment starts after you confirm it on the next page. The API takes some more settings." }
            section aria-labelledby="what" {
                h2 #what { "What to compare" }
                (form.fields(&WHAT)) (form.fields(&settings::TEXTS))
            }
            section aria-labelledby="decides" {
                h2 #decides { "What decides" }
                (form.fields(&DECIDES))
            }
            section aria-labelledby="whom" {
                h2 #whom { "Goal and whom it is shown" }
                (form.fields(&WHOM))
            }
            section aria-labelledby="end" {
                h2 #end { "When it ends" }
                (form.fields(&settings::CONCLUSION))
                (form.fields(&[&TARGET[..], &settings::LIMITS].concat()))
                (form.fields(&DRIFT))
            }
            section #plan aria-labelledby="plan-h" {
                h2 #plan-h { "How long it takes" }
                p.help { "With the pages a day, this page and the next one say how long the experiment takes. Nothing of it is a setting." }
                (form.fields(&plan::FIELDS))
                @if let Some(report) = &self.plan { (plan::section(report, self.now)) }
                div.buttons { (step_button(Step::Edit, "Show the forecast", "other")) }
            }
            (form.folded("Policy, pages and feedback", &pages(), &self.initial()))
            (form.folded("Segments, metrics and errors", &CLAIMS, &self.initial()))
        }
    }

    fn body(&self, values: &Values, errors: &mut Errors) -> Map<String, Value> {
        let mut body = fields::body(&fields(), values, errors);
        if values.get("decides").is_empty() {
            body.remove("decide_by");
        } else if let Some(Value::Object(orders)) = body.get_mut("decide_by") {
            // an empty name is an error of its own field
            orders.entry("event").or_insert_with(|| "".into());
        }
        body
    }

    async fn prepare(&mut self, page: &Page, values: &Values, errors: &mut Errors) {
        let experiment = self.body(values, &mut Errors::default());
        self.plan = plan::of(page, values, experiment, &fields(), errors).await;
        self.now = page.state.service.now_ms();
    }

    /// All errors at once: a member that cannot be read is left out, and the others are checked.
    async fn check(&self, page: &Page, mut body: Map<String, Value>) -> ApiResult<()> {
        let mut errors = Vec::new();
        let (name, spec) = loop {
            let problem = match extract::object(body.clone()).and_then(spec_of) {
                Ok(read) => break read,
                Err(problem) => problem,
            };
            let mut is_shorter = false;
            for error in problem.errors() {
                let pointer = error.pointer.as_deref().unwrap_or_default();
                let member = pointer.split('/').nth(1).unwrap_or_default();
                is_shorter |= body.remove(member).is_some();
                errors.push(FieldError::new(pointer, &*error.detail));
            }
            if !is_shorter {
                return Err(problem);
            }
        };
        page.caller.require_experiment(&name)?;
        errors.extend(name_error(&name));
        errors.extend(spec.errors());
        if name_error(&name).is_none() && page.state.service.experiment(&name).await.is_ok() {
            let detail = format!("there is an experiment `{name}` already; choose another name");
            errors.push(FieldError::new("/name", detail));
        }
        Ok(ServiceError::unless_valid(errors)?)
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
            (summary::facts(&spec, self.now))
            @if let Some(report) = &self.plan { (plan::section(report, self.now)) }
        };
        Question { sentence, details }
    }

    async fn make(
        &self,
        page: &Page,
        values: &Values,
        body: Map<String, Value>,
    ) -> ApiResult<Response> {
        let created = create_experiment(&page.state, &page.caller, extract::object(body)?).await?;
        let (name, plan) = (&created.loaded.name, plan::query(values));
        Ok(Redirect::to(&format!("/experiments/{name}/manage?done=created{plan}")).into_response())
    }
}
