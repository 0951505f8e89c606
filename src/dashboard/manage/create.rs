//! `/new-experiment`: creates an experiment.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::super::layout::{fact, number};
use super::flow::{self, About, Change, step_button};
use super::form::{Errors, Fields, Step, Values};
use super::page::{Page, Refusal, Submission, see};
use super::{methods, plan, policies, settings};
use crate::http::experiments::create::{NewExperimentBody, create_experiment, spec_of};
use crate::http::extract;
use crate::http::problem::ApiResult;
use crate::service::error::ServiceError;
use crate::service::reports::plan::PlanReport;
use rankduel_engine::experiment_spec::{
    ConcludeAt, DEFAULT_DUEL_TTL_SECONDS, ExperimentSpec, name_error,
};

/// The field for each start of a JSON pointer.
pub(super) const POINTERS: [(&str, &str); 20] = [
    ("/name", "name"),
    ("/rankers", "rankers"),
    ("/control", "control"),
    policies::POINTERS[0],
    policies::POINTERS[1],
    policies::POINTERS[2],
    ("/conclude_at/confidence", "confidence"),
    ("/conclude_at/margin", "margin"),
    ("/ties", "ties"),
    ("/duel_ttl_seconds", "duel_ttl_seconds"),
    ("/interleaving", "interleaving"),
    settings::POINTERS[0],
    settings::POINTERS[1],
    settings::POINTERS[2],
    settings::POINTERS[3],
    settings::POINTERS[4],
    settings::POINTERS[5],
    plan::POINTERS[0],
    plan::POINTERS[1],
    plan::POINTERS[2],
];

/// The fields of `conclude_at`.
const CONCLUDE_AT: [&str; 5] = ["confidence", "margin", "min_days", "max_days", "max_duels"];
/// The fields that are folded away.
const FOLDED: [&str; 4] = ["interleaving", "ties", "duel_ttl_seconds", "answer_window_seconds"];

/// The values that the form starts with: the defaults of the API.
fn initial() -> Values {
    let ConcludeAt { confidence, margin, .. } = ConcludeAt::default();
    Values::of(&[("policy", "d-ts-verdict"), ("concludes", "verdict"), ("ties", "skip")])
        .with("confidence", confidence.to_string())
        .with("margin", margin.to_string())
        .with("duel_ttl_seconds", DEFAULT_DUEL_TTL_SECONDS.to_string())
        .with("interleaving", interleaving::Spec::default().method.kind())
        .with("difference", "0.04")
        .with("answered", "0.3")
}

/// The rankers of the form.
pub(super) fn rankers(values: &Values) -> Vec<Value> {
    let ranker = |line: &str| match line.split_once('|') {
        Some((id, description)) => json!({"id": id.trim(), "description": description.trim()}),
        None => line.trim().into(),
    };
    values.get("rankers").lines().map(ranker).filter(|ranker| *ranker != "").collect()
}

/// The body of the request that creates the experiment.
fn body(values: &Values, errors: &mut Errors) -> Map<String, Value> {
    let mut body = Map::from_iter([
        ("name".to_owned(), values.get("name").into()),
        ("rankers".to_owned(), rankers(values).into()),
        ("policy".to_owned(), policies::policy(values, errors)),
        ("ties".to_owned(), values.get("ties").into()),
        ("interleaving".to_owned(), json!({"kind": values.get("interleaving")})),
    ]);
    for name in ["control", "description", "owner"] {
        if !values.get(name).is_empty() {
            body.insert(name.into(), values.get(name).into());
        }
    }
    let mut numbers = |names: &[&'static str]| -> Map<String, Value> {
        let number = |name: &&'static str| Some(((*name).into(), values.number(name, errors)?));
        names.iter().filter_map(number).collect()
    };
    body.extend(numbers(&["duel_ttl_seconds", "answer_window_seconds"]));
    let conclude_at = match values.get("concludes") {
        "never" => "never".into(),
        _ => numbers(&CONCLUDE_AT).into(),
    };
    body.insert("conclude_at".into(), conclude_at);
    body
}

/// A new experiment.
#[derive(Default)]
struct NewExperiment {
    plan: Option<PlanReport>,
}

impl NewExperiment {
    /// The experiment of a form.
    fn spec(values: &Values, errors: &mut Errors) -> ApiResult<(String, ExperimentSpec)> {
        spec_of(extract::object::<NewExperimentBody>(body(values, errors))?)
    }
}

/// The form.
pub(crate) async fn show(page: Page) -> Response {
    flow::show(&page, &NewExperiment::default(), &initial())
}

/// Check a new experiment, or create it.
pub(crate) async fn submit(Submission { page, values }: Submission) -> Result<Response, Refusal> {
    flow::submit(&page, &values, NewExperiment::default()).await
}

impl Change for NewExperiment {
    fn about(&self) -> About {
        About {
            title: "New experiment",
            button: "Create the experiment",
            path: "/new-experiment".into(),
            back: ("/".into(), "Experiments".into()),
            pointers: &POINTERS,
            ..About::default()
        }
    }

    fn fields(&self, fields: &Fields<'_>) -> Option<Markup> {
        let start = initial();
        let differs = |name: &&str| fields.values.get(name) != start.get(name);
        let is_open = FOLDED.iter().any(|name| differs(name) || fields.errors.has(name));
        Some(html! {
            p.quiet { "The experiment starts after you confirm it on the next page. The API takes some more settings." }
            section aria-labelledby="what" {
                h2 #what { "What to compare" }
                (fields.text("name", "Name",
                    "Backends name the experiment by it in every request: up to 64 of a-z, 0-9, dot, dash and underscore. It \
                     can be used only once."))
                (fields.lines("rankers", "Rankers",
                    "One ranker on a line, by the id under which your backend knows it. You can add a description after a \
                     vertical bar: neural | two towers, trained in May."))
                (fields.text("control", "Control",
                    "The id of the ranker that people see today: the page then says which others are better than it. You can leave \
                     it empty."))
                (policies::fields(fields))
                (settings::texts(fields))
            }
            section aria-labelledby="end" {
                h2 #end { "When it ends" }
                (settings::concludes(fields))
                div.pair {
                    (fields.number("confidence", "Confidence",
                        "With 0.95, a wrong verdict comes up in at most 5 % of experiments, however often you look."))
                    (fields.number("margin", "Margin",
                        "Differences up to this size do not matter: with 0.01, a ranker that is less than 1 percentage point \
                         behind may win."))
                    (settings::limits(fields))
                }
            }
            section #plan aria-labelledby="plan-h" {
                h2 #plan-h { "How long it takes" }
                (plan::fields(fields))
                @if let Some(report) = &self.plan { (plan::section(report, plan::days(fields.values))) }
                div.buttons { (step_button(Step::Edit, "Show the forecast", "other")) }
            }
            details.more open[is_open] {
                summary { "Pages and feedback" }
                (methods::field(fields))
                (fields.select("ties", "Ties", "What a page counts on which both rankers do equally well.",
                    &[("skip", "nothing"), ("half", "half a win for both"), ("coin", "a win for one of them, by a coin")]))
                div.pair {
                    (fields.number("duel_ttl_seconds", "Seconds until a duel expires",
                        "Feedback that comes later than this after the duel is refused."))
                    (settings::answer_window(fields, "; empty means until the duel expires, and 0 at once"))
                }
            }
        })
    }

    async fn prepare(&mut self, page: &Page, values: &Values, errors: &mut Errors) {
        self.plan = plan::of(page, values, errors).await;
    }

    async fn check(&self, page: &Page, values: &Values, errors: &mut Errors) -> ApiResult<()> {
        let (name, spec) = Self::spec(values, errors)?;
        page.caller.require_experiment(&name)?;
        let invalid: Vec<_> = name_error(&name).into_iter().chain(spec.errors()).collect();
        if !invalid.is_empty() {
            return Err(ServiceError::Invalid(invalid).into());
        }
        if page.state.service.experiment(&name).await.is_ok() {
            let detail = format!("there is an experiment `{name}` already; choose another name");
            errors.add("name", detail);
        }
        Ok(())
    }

    fn question(&self, _: &Page, values: &Values) -> (Markup, Markup) {
        let Ok((name, spec)) = Self::spec(values, &mut Errors::default()) else {
            return Default::default();
        };
        let sentence = html! {
            "Experiment " code { (name) } " will start at once: it issues duels of its "
            (spec.rankers.len()) " rankers to every backend that requests them."
        };
        let details = html! {
            dl.facts {
                (fact("Rankers", &html! { (number(spec.rankers.len() as u64)) }))
                (fact("Policy", &policies::described(&spec.policy)))
                (fact("Concludes", &super::overview::concludes(&spec)))
            }
            @if let Some(report) = &self.plan { (plan::section(report, plan::days(values))) }
        };
        (sentence, details)
    }

    async fn make(
        &self,
        page: &Page,
        values: &Values,
        errors: &mut Errors,
    ) -> ApiResult<Option<Response>> {
        let body = body(values, errors);
        if !errors.is_empty() {
            return Ok(None);
        }
        let body = extract::object::<NewExperimentBody>(body)?;
        let (loaded, _) = create_experiment(&page.state, &page.caller, body).await?;
        Ok(Some(see(&format!("/experiments/{}/manage?done=created", loaded.name))))
    }
}
