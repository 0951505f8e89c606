//! The changes of an experiment: their names, and when each is possible.

use std::sync::Arc;

use super::super::page::Page;
use crate::http::problem::ApiResult;
use crate::service::reports::leader::{Lead, lead};
use crate::service::reports::single_flight::Computed;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::ExperimentRecord;
use rankduel_store::events::Status;

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
    Interleaving,
    Settings,
}

pub(crate) struct Subject {
    pub loaded: Arc<LoadedExperiment>,
    pub record: ExperimentRecord,
    pub lead: Arc<Computed<Lead>>,
}

impl Subject {
    pub async fn read(page: &Page, name: &str) -> ApiResult<Self> {
        let loaded = page.state.service.experiment(name).await?;
        let lead = lead(&page.state.service.reports, &loaded).await?;
        let record = loaded.record();
        Ok(Self { loaded, record, lead })
    }

    /// Whether it has concluded by itself and was resumed: it does not a second time.
    pub fn has_resumed(&self) -> bool {
        let has_concluded =
            self.loaded.fold().is_ok_and(|fold| fold.state().concluded_by_itself.is_some());
        has_concluded && self.record.status != Status::Concluded
    }

    pub fn active(&self) -> Vec<&str> {
        let spec = &self.loaded.spec;
        let rankers = spec.rankers.iter().enumerate().filter(|(index, _)| !spec.is_retired(*index));
        rankers.map(|(_, ranker)| ranker.id.as_str()).collect()
    }

    /// Id of the leader, or of the first winner of the verdict.
    pub fn leader(&self) -> &str {
        self.loaded.spec.rankers.get(self.lead.leader).map_or("", |ranker| &ranker.id)
    }

    /// The ranker that a conclusion is proposed on: the winner, or else the control.
    pub fn default_winner(&self) -> &str {
        let control = self.loaded.spec.control.as_deref();
        let is_open = self.lead.winners.is_empty();
        control.filter(|_| is_open).unwrap_or_else(|| self.leader())
    }

    /// Whether the verdict names this ranker.
    pub fn has_won(&self, id: &str) -> bool {
        let index = self.loaded.spec.ranker_index(id);
        index.is_some_and(|index| self.lead.winners.contains(&index))
    }

    pub fn winner(&self) -> Option<&str> {
        let winner = self.loaded.spec.rankers.get(usize::from(self.record.winner?))?;
        Some(&winner.id)
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

    const OTHERS: [Self; 4] = [Self::Control, Self::Enlist, Self::Retire, Self::Interleaving];

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
            Self::Interleaving => {
                ["interleaving", "Change the interleaving", "The interleaving is changed."]
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

    pub fn is_final(self) -> bool {
        matches!(self, Self::Archive | Self::Retire | Self::Exclude)
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
}
