//! The changes of an experiment: what each one says, when it is possible, and its body for the API.

use std::sync::Arc;

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::super::page::Page;
use super::fields::{Field, Kind, fields};
use super::form::{Errors, Values};
use super::{methods, policies, settings};
use crate::http::problem::ApiResult;
use crate::service::reports::leader::{Lead, lead};
use crate::service::reports::single_flight::Computed;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::experiment_spec::page_rules::CurrentMethod;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::ExperimentRecord;
use rankduel_store::audience::Segment;
use rankduel_store::events::Status;

/// A change of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Pause,
    Resume,
    Conclude,
    Archive,
    Control,
    Enlist,
    Retire,
    Exclude,
    Policy,
    Interleaving,
    Split,
    Settings,
}

/// The declared segments that are no experiments of their own.
pub(super) fn own_segments(spec: &ExperimentSpec) -> Vec<&str> {
    let own = spec.segments.iter().filter(|segment| spec.split_of(**segment).is_none());
    own.map(Segment::as_str).collect()
}

/// The experiment to change.
pub(crate) struct Subject {
    pub loaded: Arc<LoadedExperiment>,
    pub record: ExperimentRecord,
    pub lead: Arc<Computed<Lead>>,
}

impl Subject {
    /// The experiment with this name.
    pub async fn read(page: &Page, name: &str) -> ApiResult<Self> {
        let loaded = page.state.service.experiment(name).await?;
        let lead = lead(&page.state.service.reports, &loaded).await?;
        let record = loaded.record();
        Ok(Self { loaded, record, lead })
    }

    /// Ids of the rankers that take part.
    pub fn active(&self) -> Vec<&str> {
        let spec = &self.loaded.spec;
        let rankers = spec.rankers.iter().enumerate().filter(|(index, _)| !spec.is_retired(*index));
        rankers.map(|(_, ranker)| ranker.id.as_str()).collect()
    }

    /// Id of the leader, or of the first winner of the verdict.
    pub fn leader(&self) -> &str {
        self.loaded.spec.rankers.get(self.lead.leader).map_or("", |ranker| &ranker.id)
    }

    /// Whether the verdict names this ranker.
    pub fn has_won(&self, id: &str) -> bool {
        let index = self.loaded.spec.ranker_index(id);
        index.is_some_and(|index| self.lead.winners.contains(&index))
    }

    /// Id of the winner, if the experiment is concluded.
    pub fn winner(&self) -> Option<&str> {
        let winner = self.loaded.spec.rankers.get(usize::from(self.record.winner?))?;
        Some(&winner.id)
    }

    /// The present method of interleaving; `None` if this version cannot read it.
    pub fn method(&self) -> Option<interleaving::Spec> {
        let current = CurrentMethod::of(&self.record, &self.loaded.spec.pages).ok()?;
        Some(current.method)
    }

    /// Path of the page of all changes.
    pub fn path(&self) -> String {
        format!("/experiments/{}/manage", self.record.name)
    }
}

impl Action {
    /// Those that are about the whole experiment.
    pub const ON_STATE: [Self; 6] =
        [Self::Pause, Self::Resume, Self::Conclude, Self::Archive, Self::Settings, Self::Exclude];

    const OTHERS: [Self; 6] =
        [Self::Control, Self::Enlist, Self::Retire, Self::Policy, Self::Interleaving, Self::Split];

    /// The name in paths, the title, and the sentence after the change.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::Pause => ["pause", "Pause", "The experiment is paused."],
            Self::Resume => ["resume", "Resume", "The experiment is running."],
            Self::Conclude => ["conclude", "Conclude", "The experiment is concluded."],
            Self::Archive => ["archive", "Archive", "The experiment is archived."],
            Self::Enlist => {
                ["enlist", "Add a ranker", "The ranker takes part from the next duel on."]
            }
            Self::Retire => ["retire", "Retire a ranker", "The ranker is retired."],
            Self::Control => ["control", "Name the control", "The control is named."],
            Self::Exclude => ["exclude", "Exclude units", "The units are excluded."],
            Self::Policy => ["policy", "Change the policy", "The policy is changed."],
            Self::Interleaving => {
                ["interleaving", "Change the interleaving", "The interleaving is changed."]
            }
            Self::Split => {
                ["split", "Split a segment off", "The segment is an experiment of its own."]
            }
            Self::Settings => ["settings", "Change the settings", "The settings are changed."],
        }
    }

    /// Its name in paths.
    pub fn slug(self) -> &'static str {
        self.words()[0]
    }

    pub fn of_slug(slug: &str) -> Option<Self> {
        Self::ON_STATE.into_iter().chain(Self::OTHERS).find(|action| action.slug() == slug)
    }

    /// The change in a few words, on buttons and as a title.
    pub fn title(self) -> &'static str {
        self.words()[1]
    }

    /// The change that was made, as a sentence.
    pub fn done(self) -> &'static str {
        self.words()[2]
    }

    /// Whether it cannot be undone.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Archive | Self::Retire | Self::Exclude | Self::Split)
    }

    /// Why the experiment does not take the change now, as a sentence.
    pub fn refusal(self, subject: &Subject) -> Option<String> {
        let (record, spec) = (&subject.record, &subject.loaded.spec);
        if record.archived_at.is_some() {
            return Some("The experiment is archived: it can be read, but not changed.".into());
        }
        let status = record.status;
        let why = match self {
            Self::Pause if status == Status::Paused => "The experiment is paused already.",
            Self::Pause if status == Status::Concluded => {
                "The experiment is concluded and issues no duels."
            }
            Self::Resume if status == Status::Running => "The experiment is running.",
            Self::Conclude if status == Status::Concluded => "The experiment is concluded already.",
            Self::Archive if status != Status::Concluded => {
                "Only a concluded experiment can be archived. Conclude it first."
            }
            Self::Control if status == Status::Concluded => {
                "Nothing meets the control of a concluded experiment. Resume it first."
            }
            Self::Enlist | Self::Retire if status == Status::Concluded => {
                "The rankers of a concluded experiment cannot be changed. Resume it first."
            }
            Self::Split if status == Status::Concluded => {
                "The segments of a concluded experiment cannot be split off. Resume it first."
            }
            Self::Split if own_segments(spec).is_empty() => {
                "The experiment has no declared segment that it could split off."
            }
            Self::Enlist | Self::Retire => {
                let why = spec.policy.description().fixed_rankers?;
                return Some(format!(
                    "The policy {} cannot add or retire rankers: {why}.",
                    spec.policy.kind()
                ));
            }
            _ => return None,
        };
        Some(why.into())
    }

    /// The fields of its form.
    pub fn fields(self) -> Vec<Field> {
        match self {
            Self::Pause | Self::Resume | Self::Archive => Vec::new(),
            Self::Conclude => fields! {
                winner: Ranker, "/winner", "Winner", "The ranker that every request is answered with from then on.";
            }.into(),
            Self::Control => fields! {
                control: Ranker, "/control", "Control", "The ranker that people see today.";
            }.into(),
            Self::Enlist => fields! {
                ranker: Text, "/enlist/id", "Id of the ranker",
                    "The name by which your backend knows it, 1 to 128 characters; one that no ranker here has had.";
                description: Optional, "/enlist/description", "Description",
                    "What makes it different, for people; you can leave it empty.";
            }.into(),
            Self::Retire => fields! {
                ranker: Ranker, "/retire", "Ranker", "The ranker that is never shown again.";
            }.into(),
            Self::Exclude => fields! {
                units: Lines, "/exclude/units", "Units", "One on a line, as your backend sends them.";
                hashes: Lines, "/exclude/hashes", "Hashes of units", "One on a line, as these pages and exports show them.";
                reason: Text, "/exclude/reason", "Reason", "It must not depend on who won the duels of the units.";
            }.into(),
            Self::Split => fields! {
                segment: Text, "/split/segment", "Segment", "A declared one; it gets an experiment of its own.";
            }.into(),
            Self::Policy => policies::FIELDS.into(),
            Self::Interleaving => methods::FIELDS.into(),
            Self::Settings => settings::fields(),
        }
    }

    /// The body of the change for the API, from that of the form. Archiving has none.
    pub fn body(
        self,
        subject: &Subject,
        mut body: Map<String, Value>,
        errors: &mut Errors,
    ) -> Map<String, Value> {
        let status = match self {
            Self::Pause => Status::Paused,
            Self::Resume => Status::Running,
            Self::Conclude => Status::Concluded,
            Self::Settings => return settings::changed(&subject.loaded.spec, body, errors),
            _ => return body,
        };
        body.insert("status".into(), json!(status));
        body
    }

    /// The values that the form starts with.
    pub fn initial(self, subject: &Subject) -> Values {
        match self {
            Self::Conclude => Values::default().with("winner", subject.leader()),
            Self::Control => {
                let control = subject.loaded.spec.control.as_deref();
                Values::default().with("control", control.unwrap_or_default())
            }
            Self::Split => {
                let segments = own_segments(&subject.loaded.spec);
                Values::default().with("segment", segments.first().copied().unwrap_or_default())
            }
            Self::Policy => Values::default().with("policy", subject.loaded.spec.policy.kind()),
            Self::Interleaving => methods::values(&subject.method().unwrap_or_default()),
            Self::Settings => settings::values(&subject.loaded.spec),
            _ => Values::default(),
        }
    }

    /// The effect, in a sentence or two.
    pub fn sentence(self, subject: &Subject, values: &Values, body: &Map<String, Value>) -> Markup {
        let name = &subject.record.name;
        let experiment = html! { "Experiment " code { (name) } };
        match self {
            Self::Pause => html! {
                (experiment) " will issue no duels, and search backends show their control ranking until you resume it. "
                "Feedback on duels that were issued before still counts."
            },
            Self::Resume => html! {
                (experiment) " will issue duels again, from the next request on."
                @if let Some(winner) = subject.winner() {
                    " It will no longer answer every request with " code { (winner) } "."
                    @if subject.loaded.spec.conclude_at.is_some() {
                        " If it has concluded by itself before, it will not do so again."
                    }
                }
            },
            Self::Conclude => {
                let winner = values.get("winner");
                html! {
                    (experiment) " will answer every request with " code { (winner) } " and learn nothing more. "
                    @if subject.has_won(winner) { "This ranker has won the verdict." }
                    @else if !subject.lead.winners.is_empty() { "The verdict is for another ranker, " code { (subject.leader()) } "." }
                    @else { "There is no verdict: nothing is proven about this ranker yet." }
                }
            }
            Self::Archive => html! {
                (experiment) " will leave the list, issue no duels and accept no feedback. Its log and its results stay "
                "readable, and its name cannot be used again."
            },
            Self::Enlist => html! {
                "Ranker " code { (values.get("ranker")) } " will take part in " code { (name) } " from the next duel on. "
                "The verdict starts anew with " (subject.active().len() + 1) " rankers, because earlier duels say nothing "
                "about the added one; the policy keeps all its counts."
            },
            Self::Retire => html! {
                "Ranker " code { (values.get("ranker")) } " of " code { (name) } " will never be shown again, and its id "
                "cannot come back. The verdict starts anew among the other "
                (subject.active().len().saturating_sub(1)) " rankers; feedback on its open duels still counts."
            },
            Self::Control => html! {
                "Claims of " code { (name) } " are made against " code { (values.get("control")) } ", with the answers to "
                "duels that are issued from now on."
            },
            Self::Exclude => html! {
                "No answer of these units counts in " code { (name) } ", before and after this change: the counts, the policy "
                "and the verdict become those without them. A conclusion stays."
            },
            Self::Split => html! {
                "The segment " code { (values.get("segment")) } " of " code { (name) } " becomes an experiment of its own, "
                code { (name) "." (values.get("segment")) } ". Callers go on calling " code { (name) } ". Its verdict starts "
                "anew, and nobody who has answered before counts in the new experiment."
            },
            Self::Policy => html! {
                "Policy " code { (values.get("policy")) } " will select the duels of " code { (name) } " from the next "
                "request on, instead of " code { (subject.loaded.spec.policy.kind()) } ". It learns from the whole log "
                "first; the verdict and all counts stay."
            },
            Self::Interleaving => html! {
                "The method " code { (values.get("interleaving")) } " will merge the pages of " code { (name) } " from the "
                "next request on"
                @if let Some(method) = subject.method() { ", instead of " (methods::described(&method)) }
                ". Pages that were made before are credited by the method that made them."
            },
            Self::Settings => html! {
                (experiment) " gets other values of: "
                @for (index, (name, value)) in body.iter().enumerate() {
                    @if index > 0 { ", " }
                    code { (name) }
                    @if let Value::String(text) = value { " (" bdi { (text) } ")" } @else { " (" code { (value) } ")" }
                }
                ". What is known by now, and what counts by now, stays. Another answer window is that of duels from now on."
            },
        }
    }
}
