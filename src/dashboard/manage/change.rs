//! `/experiments/{name}/manage/{action}`: one change of an experiment.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::super::layout::percent;
use super::super::page::{Page, missing};
use super::action::{Action, Subject};
use super::fields::{self, Field, Kind, fields};
use super::flow::{About, Change, Parameters, Question};
use super::form::{Errors, Values};
use super::{methods, settings};
use crate::http::experiments::change::{change_experiment, check_change};
use crate::http::extract;
use crate::http::problem::ApiResult;
use crate::service::lifecycle;
use rankduel_engine::clock::days_since;
use rankduel_store::events::Status;

pub(super) struct OfExperiment {
    action: Action,
    subject: Subject,
}

impl OfExperiment {
    /// Whether a limit in this body is reached already.
    fn ends_at_once(&self, body: &Map<String, Value>, now: i64) -> bool {
        let Subject { loaded, record, lead } = &self.subject;
        let limit = |name| body.get("conclude_at")?.get(name)?.as_f64();
        let days = days_since(record.created_at, now);
        let reached = limit("max_duels").is_some_and(|most| lead.duels as f64 >= most)
            || limit("max_days").is_some_and(|most| days >= most);
        let has_ended_once =
            || loaded.fold().is_ok_and(|fold| fold.state().concluded_by_itself.is_some());
        reached && record.status == Status::Running && !has_ended_once()
    }
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
        match self.action {
            Action::Pause | Action::Resume | Action::Archive => Vec::new(),
            Action::Conclude => fields! {
                winner: Ranker, "/winner", "Winner", "The ranker that every request is answered with from then on.";
            }.into(),
            Action::Control => fields! {
                control: Ranker, "/control", "Control", "The ranker that people see today.";
            }.into(),
            Action::Enlist => fields! {
                ranker: Text, "/enlist/id", "Id of the ranker",
                    "The name by which your backend knows it, 1 to 128 characters; one that no ranker here has had.";
                description: Optional, "/enlist/description", "Description",
                    "What makes it different, for people; you can leave it empty.";
            }.into(),
            Action::Retire => fields! {
                ranker: Ranker, "/retire", "Ranker", "The ranker that is never shown again.";
            }.into(),
            Action::Exclude => fields! {
                units: Lines, "/exclude/units", "Units", "One on a line, as your backend sends them.";
                hashes: Lines, "/exclude/hashes", "Hashes of units", "One on a line, as these pages and exports show them.";
                reason: Text, "/exclude/reason", "Reason", "It must not depend on who won the duels of the units.";
            }.into(),
            Action::Interleaving => methods::FIELDS.into(),
            Action::Settings => settings::fields(),
        }
    }

    fn initial(&self) -> Values {
        let subject = &self.subject;
        let spec = &subject.loaded.spec;
        match self.action {
            Action::Conclude => Values::default().with("winner", subject.default_winner()),
            Action::Control => {
                let control = spec.control.as_deref();
                Values::default().with("control", control.unwrap_or_default())
            }
            Action::Interleaving => methods::values(&spec.pages.interleaving),
            Action::Settings => settings::values(spec),
            _ => Values::default(),
        }
    }

    fn is_complete(&self, values: &Values) -> bool {
        // the page links to this change with the ranker already chosen
        let is_active = self.subject.active().contains(&values.get("ranker"));
        self.action == Action::Retire && is_active
    }

    fn rankers(&self) -> Vec<&str> {
        self.subject.active()
    }

    fn body(&self, values: &Values, errors: &mut Errors) -> Map<String, Value> {
        let mut body = fields::body(&self.fields(), values, errors);
        let status = match self.action {
            Action::Pause => Status::Paused,
            Action::Resume => Status::Running,
            Action::Conclude => Status::Concluded,
            Action::Settings => return settings::changed(&self.subject.loaded.spec, body, errors),
            _ => return body,
        };
        body.insert("status".into(), json!(status));
        body
    }

    async fn check(&self, page: &Page, body: Map<String, Value>) -> ApiResult<()> {
        let (service, loaded) = (&page.state.service, &self.subject.loaded);
        match self.action {
            Action::Archive => Ok(()),
            _ => check_change(service, loaded, &extract::object(body)?),
        }
    }

    fn question(&self, page: &Page, values: &Values) -> Question {
        let subject = &self.subject;
        let name = &subject.record.name;
        let experiment = html! { "Experiment " code { (name) } };
        let sentence = match self.action {
            Action::Pause => html! {
                (experiment) " will issue no duels, and search backends show their control ranking until you resume it. "
                "Feedback on duels that were issued before still counts."
            },
            Action::Resume => html! {
                (experiment) " will issue duels again, from the next request on."
                @if let Some(winner) = subject.winner() {
                    " It will no longer answer every request with " code { (winner) } "."
                    @if subject.loaded.spec.conclude_at.is_some() {
                        " If it has concluded by itself before, it will not do so again."
                    }
                }
            },
            Action::Conclude => {
                let winner = values.get("winner");
                html! {
                    (experiment) " will answer "
                    @if subject.loaded.spec.watch > 0.0 && subject.has_won(winner) {
                        "requests with " code { (winner) } ", and on " (percent(subject.loaded.spec.watch))
                        " of the pages look for changes. "
                    } @else { "every request with " code { (winner) } " and learn nothing more. " }
                    @if subject.has_won(winner) { "This ranker has won the verdict." }
                    @else if !subject.lead.winners.is_empty() { "The verdict is for another ranker, " code { (subject.leader()) } "." }
                    @else { "There is no verdict: nothing is proven about this ranker yet." }
                }
            }
            Action::Archive => html! {
                (experiment) " will leave the list, issue no duels and accept no feedback. Its log and its results stay "
                "readable, and its name cannot be used again."
            },
            Action::Enlist => html! {
                "Ranker " code { (values.get("ranker")) } " will take part in " code { (name) } " from the next duel on. "
                "The verdict starts anew with " (subject.active().len() + 1) " rankers, because earlier duels say nothing "
                "about the added one; the policy keeps all its counts."
            },
            Action::Retire => html! {
                "Ranker " code { (values.get("ranker")) } " of " code { (name) } " will never be shown again, and its id "
                "cannot come back. "
                @if subject.loaded.spec.control.as_deref() == Some(values.get("ranker")) {
                    strong { "It is the control: people see it today, and nothing is compared with it any more. " }
                }
                "The verdict starts anew among the other "
                (subject.active().len().saturating_sub(1)) " rankers; feedback on its open duels still counts."
            },
            Action::Control => html! {
                "Claims of " code { (name) } " are made against " code { (values.get("control")) } ", with the answers to "
                "duels that are issued from now on."
            },
            Action::Exclude => html! {
                "No answer of these units counts in " code { (name) } ", before and after this change: the counts, the policy "
                "and the verdict become those without them. A conclusion stays."
            },
            Action::Interleaving => html! {
                "The method " code { (values.get("interleaving")) } " will merge the pages of " code { (name) } " from the "
                "next request on"
                ", instead of " (methods::described(&subject.loaded.spec.pages.interleaving))
                ". Pages that were made before are credited by the method that made them."
            },
            Action::Settings => html! {
                @let body = self.body(values, &mut Errors::default());
                (experiment) " gets other settings: "
                @for (index, (label, value)) in settings::described(&body).iter().enumerate() {
                    @if index > 0 { "; " }
                    (label) ": " bdi { (value) }
                }
                ". "
                @if self.ends_at_once(&body, page.state.service.now_ms()) {
                    strong { "This limit is reached: the experiment ends at once, on the ranker that leads. " }
                }
                "What is known by now, and what counts by now, stays. Another answer window is that of duels from now on."
            },
        };
        Question { sentence, details: Markup::default() }
    }

    async fn make(&self, page: &Page, _: &Values, body: Map<String, Value>) -> ApiResult<Response> {
        let (service, by) = (&page.state.service, page.caller.actor());
        let (name, version) = (&self.subject.record.name, Some(self.subject.record.version));
        if self.action == Action::Archive {
            lifecycle::archive(service, name, version, &by).await?;
        } else {
            change_experiment(service, name, version, &extract::object(body)?, &by).await?;
        }
        Ok(Redirect::to(&format!("{}?done={}", self.subject.path(), self.action.slug()))
            .into_response())
    }
}
