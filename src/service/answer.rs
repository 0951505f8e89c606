//! The answer of an experiment: the one place that says what holds. Badge, list, page, webhook,
//! `/verdict`, metrics and log read it.
//!
//! It is made of the findings in `reports/findings.rs`, in the order of `answer_order.rs`. These
//! have words of claims, doubts and alarms, and the leader by posterior draws, so the answer stands
//! above the engine.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::service::reports::alarms::{self, AlarmKind};
use rankduel_store::events::Status;

/// The state of an experiment, in words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Answer {
    pub state: State,
    /// One or two sentences. Names of rankers and the like are in backticks.
    #[schema(
        example = "Ship `neural`: it beats `bm25`, which you run now, by at least 3.2 points."
    )]
    pub headline: String,
    /// The rankers, metrics, segments or kinds of alarms that the state is about.
    #[schema(example = json!(["neural"]))]
    pub about: Vec<String>,
    /// The rankers that are proven to be the best now; empty without a result.
    #[schema(example = json!(["neural"]))]
    pub winners: Vec<String>,
    /// The status of the experiment that the answer is about.
    pub status: Status,
    /// Whether a person has to decide something, or look at something.
    pub needs_you: bool,
    /// Why the result can be wrong more often than it says.
    pub doubts: Vec<String>,
    /// The alarms that are on, at any server.
    pub alarms: Vec<SeenAlarm>,
    /// Unix milliseconds at which the state began.
    #[schema(example = 1_790_000_000_000_i64)]
    pub since: i64,
    pub what_next: WhatNext,
}

/// The states of an answer, the most important ones first. An archived experiment keeps the
/// headline that it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The service cannot take answers.
    Refused,
    /// A ranker breaks a limit.
    Harm,
    Alarm,
    /// There is a winner, and it is not proven to keep a limit.
    OpenLimit,
    /// There is a winner, and a doubt.
    Doubt,
    /// There was a winner, and no rankers have met since.
    NotWatched,
    /// There is a winner, and it loses in a segment.
    Segment,
    Result,
    /// It has ended without a result.
    Stopped,
    Paused,
    /// The answers that wait would settle it.
    Waiting,
    Leader,
    /// Nothing was compared.
    Empty,
    Archived,
}

impl State {
    /// Its name in metrics and in JSON.
    pub fn name(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|it| Some(it.as_str()?.to_owned()))
            .unwrap_or_default()
    }
}

/// An alarm, and when a server last saw it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct SeenAlarm {
    #[schema(example = "late-feedback")]
    pub kind: String,
    /// The numbers that raised it.
    pub detail: String,
    /// Unix milliseconds, to some minutes.
    pub seen_at: i64,
}

/// The thing to do, in a sentence, and the changes that lead on, the likely one first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct WhatNext {
    pub sentence: String,
    pub actions: Vec<Action>,
}

/// A change that leads on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Action {
    pub action: ActionKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ranker: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionKind {
    /// Conclude on the winner, and make it the default.
    Ship,
    /// Conclude on the control.
    Keep,
    /// Conclude on a ranker that is not proven.
    Stop,
    Pause,
    Resume,
    Retire,
    Archive,
    /// Connect a search backend.
    Connect,
}

impl Answer {
    /// The answer of an experiment that no server has looked at, or that this one cannot read.
    pub fn unknown(status: Status, since: i64, is_unreadable: bool) -> Self {
        let (state, headline) = match status {
            _ if is_unreadable => (State::Refused, "This server cannot read it."),
            Status::Running => (State::Empty, "No answer has come yet."),
            Status::Paused => (State::Paused, "The experiment is paused."),
            Status::Concluded => (State::Stopped, "It has ended. Open it to see its result."),
        };
        Self {
            state,
            headline: headline.into(),
            about: Vec::new(),
            winners: Vec::new(),
            status,
            needs_you: is_unreadable,
            doubts: Vec::new(),
            alarms: Vec::new(),
            since,
            what_next: WhatNext { sentence: String::new(), actions: Vec::new() },
        }
    }

    /// Whether it says the same as another one; the numbers of an alarm may differ.
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        let plain = |answer: &Self| {
            let mut answer = answer.clone();
            answer.alarms.iter_mut().for_each(|alarm| alarm.detail.clear());
            answer
        };
        plain(self) == plain(other)
    }

    /// A number that changes with the answer.
    pub fn revision(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Whether a person should be told of it, after the answer before: it says something else of
    /// which a person should know, or that a result does not hold any more, or an alarm is over.
    pub fn is_news_after(&self, before: Option<&Self>) -> bool {
        use State::{Alarm, Archived, Empty, Leader, Paused, Refused, Waiting};
        let is_same =
            |it: &Self| (it.state, &it.about, it.status) == (self.state, &self.about, self.status);
        match self.state {
            Archived => false,
            Refused | Paused | Waiting | Leader | Empty => {
                !self.withdrawn_since(before).is_empty()
                    || before.is_some_and(|before| before.state == Alarm)
            }
            _ => !before.is_some_and(is_same) || !self.withdrawn_since(before).is_empty(),
        }
    }

    /// The rankers that were proven to be the best, and are not any more.
    pub fn withdrawn_since(&self, before: Option<&Self>) -> Vec<String> {
        let was: &[String] = before.map_or(&[], |before| &before.winners);
        was.iter().filter(|winner| !self.winners.contains(winner)).cloned().collect()
    }
}

impl SeenAlarm {
    /// Its kind; `None` for one of another version.
    pub fn known(&self) -> Option<&'static AlarmKind> {
        alarms::kind(&self.kind)
    }
}
