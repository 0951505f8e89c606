//! `/new-experiment`: creates an experiment.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::super::layout::{fact, number};
use super::form::{Confirmation, Errors, Fields, Step, Values, step_button, token_field};
use super::page::{Page, Submission, see};
use super::{methods, policies};
use crate::http::experiments::create::{NewExperimentBody, create_experiment, spec_of};
use crate::http::extract;
use crate::http::problem::ApiResult;
use crate::service::error::ServiceError;
use rankduel_engine::experiment_spec::{
    ConcludeAt, DEFAULT_DUEL_TTL_SECONDS, ExperimentSpec, name_error,
};

const TITLE: &str = "New experiment";
/// The path of the form.
const PATH: &str = "/new-experiment";

/// The field for each start of a JSON pointer.
const POINTERS: [(&str, &str); 14] = [
    ("/name", "name"),
    ("/rankers", "rankers"),
    policies::POINTERS[0],
    policies::POINTERS[1],
    policies::POINTERS[2],
    ("/conclude_at/confidence", "confidence"),
    ("/conclude_at/margin", "margin"),
    ("/conclude_at/min_days", "min_days"),
    ("/conclude_at/max_days", "max_days"),
    ("/conclude_at/max_duels", "max_duels"),
    ("/ties", "ties"),
    ("/duel_ttl_seconds", "duel_ttl_seconds"),
    ("/answer_window_seconds", "answer_window_seconds"),
    ("/interleaving", "interleaving"),
];

/// The fields of `conclude_at`.
const CONCLUDE_AT: [&str; 5] = ["confidence", "margin", "min_days", "max_days", "max_duels"];

/// The values that the form starts with: the defaults of the API.
fn initial() -> Values {
    let ConcludeAt { confidence, margin, .. } = ConcludeAt::default();
    Values::of(&[("policy", "d-ts-verdict"), ("concludes", "verdict"), ("ties", "skip")])
        .with("confidence", confidence.to_string())
        .with("margin", margin.to_string())
        .with("duel_ttl_seconds", DEFAULT_DUEL_TTL_SECONDS.to_string())
        .with("interleaving", interleaving::Spec::default().method.kind())
}

/// The body of the request that creates the experiment.
fn body(values: &Values, errors: &mut Errors) -> Map<String, Value> {
    let rankers: Vec<Value> = values
        .get("rankers")
        .lines()
        .map(|line| match line.split_once('|') {
            Some((id, description)) => json!({"id": id.trim(), "description": description.trim()}),
            None => line.trim().into(),
        })
        .filter(|ranker| ranker.as_str() != Some(""))
        .collect();
    let mut body = Map::from_iter([
        ("name".to_owned(), values.get("name").into()),
        ("rankers".to_owned(), rankers.into()),
        ("policy".to_owned(), policies::policy(values, errors)),
        ("ties".to_owned(), values.get("ties").into()),
        ("interleaving".to_owned(), json!({"kind": values.get("interleaving")})),
    ]);
    for name in ["duel_ttl_seconds", "answer_window_seconds"] {
        if let Some(seconds) = values.number(name, errors) {
            body.insert(name.into(), seconds);
        }
    }
    let conclude_at = match values.get("concludes") {
        "never" => "never".into(),
        _ => {
            let mut at = Map::new();
            for name in CONCLUDE_AT {
                if let Some(value) = values.number(name, errors) {
                    at.insert(name.into(), value);
                }
            }
            Value::Object(at)
        }
    };
    body.insert("conclude_at".into(), conclude_at);
    body
}

/// The fields.
fn form(values: &Values, errors: &Errors, token: &str) -> Markup {
    let fields = Fields { values, errors };
    html! {
        form.fields method="post" action=(PATH) {
            (token_field(token))
            section aria-labelledby="what" {
                h2 #what { "What to compare" }
                (fields.text("name", "Name",
                    "Backends name the experiment by it in every request: up to 64 of a-z, 0-9, dot, dash and underscore. It \
                     can be used only once."))
                (fields.lines("rankers", "Rankers",
                    "One ranker on a line, by the id under which your backend knows it. You can add a description after a \
                     vertical bar: neural | two towers, trained in May."))
                (policies::fields(&fields))
            }
            section aria-labelledby="end" {
                h2 #end { "When it ends" }
                (fields.select("concludes", "Conclude by itself",
                    "Once a winner is certain, the experiment can answer every request with it by itself.",
                    &[("verdict", "yes, at the verdict or at a limit below"), ("never", "no, I conclude it")]))
                div.pair {
                    (fields.number("confidence", "Confidence",
                        "With 0.95, a wrong verdict comes up in at most 5 % of experiments, however often you look."))
                    (fields.number("margin", "Margin",
                        "Differences up to this size do not matter: with 0.01, a ranker that is less than 1 percentage point \
                         behind may win."))
                    (fields.number("min_days", "Days at least",
                        "The experiment does not conclude earlier than this; 7 covers a whole week, and empty means no limit."))
                    (fields.number("max_days", "Days at most",
                        "After this many days it concludes on the leader, even without a verdict; empty means no limit."))
                    (fields.number("max_duels", "Answered duels at most",
                        "After this many duels it concludes on the leader, even without a verdict; empty means no limit."))
                }
            }
            details.more open[more_differs(values, errors)] {
                summary { "Pages and feedback" }
                (methods::field(&fields))
                (fields.select("ties", "Ties", "What a page counts on which both rankers do equally well.",
                    &[("skip", "nothing"), ("half", "half a win for both"), ("coin", "a win for one of them, by a coin")]))
                div.pair {
                    (fields.number("duel_ttl_seconds", "Seconds until a duel expires",
                        "Feedback that comes later than this after the duel is refused."))
                    (fields.number("answer_window_seconds", "Answer window in seconds",
                        "The verdict counts a duel once its answer can no longer come; empty means until the duel expires, \
                         and 0 at once."))
                }
            }
            div.buttons {
                (step_button(Step::Review, "Continue", "main"))
                a.button.other href="/" { "Cancel" }
            }
        }
    }
}

/// Whether the fields that are folded away have something to show.
fn more_differs(values: &Values, errors: &Errors) -> bool {
    let initial = initial();
    let folded = ["interleaving", "ties", "duel_ttl_seconds", "answer_window_seconds"];
    folded.iter().any(|name| values.get(name) != initial.get(name) || errors.has(name))
}

/// The form.
pub(crate) async fn show(page: Page) -> Response {
    edit(&page, &initial(), &Errors::default(), StatusCode::OK)
}

/// Check a new experiment, or create it.
pub(crate) async fn submit(Submission { page, values }: Submission) -> Response {
    let mut errors = Errors::default();
    let outcome = match values.step() {
        Step::Edit => return edit(&page, &values, &errors, StatusCode::OK),
        Step::Review => review(&page, &values, &mut errors).await,
        Step::Confirm => create(&page, &values, &mut errors).await,
    };
    let status = match outcome {
        Ok(Some(response)) => return response,
        Ok(None) => StatusCode::UNPROCESSABLE_ENTITY,
        Err(problem) => errors.add_problem(&problem, &POINTERS),
    };
    edit(&page, &values, &errors, status)
}

/// The question whether to create the experiment; `None` with errors.
async fn review(page: &Page, values: &Values, errors: &mut Errors) -> ApiResult<Option<Response>> {
    let (name, spec) = spec_of(extract::object::<NewExperimentBody>(body(values, errors))?)?;
    page.caller.require_experiment(&name)?;
    let invalid: Vec<_> = name_error(&name).into_iter().chain(spec.errors()).collect();
    if !invalid.is_empty() {
        return Err(ServiceError::Invalid(invalid).into());
    }
    if page.state.service.experiment(&name).await.is_ok() {
        errors.add("name", format!("there is an experiment `{name}` already; choose another name"));
    }
    Ok(errors.is_empty().then(|| ask(page, values, &name, &spec)))
}

/// Create the experiment; `None` with errors.
async fn create(page: &Page, values: &Values, errors: &mut Errors) -> ApiResult<Option<Response>> {
    let body = body(values, errors);
    if !errors.is_empty() {
        return Ok(None);
    }
    let body = extract::object::<NewExperimentBody>(body)?;
    let (loaded, _) = create_experiment(&page.state, &page.caller, body).await?;
    Ok(Some(see(&format!("/experiments/{}/manage?done=created", loaded.name))))
}

fn ask(page: &Page, values: &Values, name: &str, spec: &ExperimentSpec) -> Response {
    let confirmation = Confirmation {
        title: TITLE,
        sentence: html! {
            "Experiment " code { (name) } " will start at once: it issues duels of its "
            (spec.rankers.len()) " rankers to every backend that requests them."
        },
        details: html! {
            dl.facts {
                (fact("Rankers", &html! { (number(spec.rankers.len() as u64)) }))
                (fact("Policy", &policies::described(&spec.policy)))
                (fact("Concludes", &super::overview::concludes(spec)))
            }
        },
        path: PATH,
        token: &page.token(),
        values,
        errors: &Errors::default(),
        button: "Create the experiment",
        is_final: false,
        has_form: true,
        back: "/",
    };
    page.respond(StatusCode::OK, TITLE, &confirmation.page())
}

fn edit(page: &Page, values: &Values, errors: &Errors, status: StatusCode) -> Response {
    let main = html! {
        h1 { (TITLE) }
        p.quiet { "The experiment starts after you confirm it on the next page. The API takes some more settings." }
        (errors.summary())
        (form(values, errors, &page.token()))
    };
    page.respond(status, TITLE, &main)
}
