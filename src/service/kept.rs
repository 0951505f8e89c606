//! The answer of an experiment as it is stored beside its record, with what a list and the next
//! look need besides.

use serde::{Deserialize, Serialize};

use crate::service::answer::{Answer, State};
use crate::service::reports::claims::ControlView;
use rankduel_store::events::Status;
use rankduel_store::{ExperimentRecord, NewAnswer};

/// A lead that has changed is stored after this time; an answer that has changed, at once.
const LEAD_EVERY_MS: i64 = 5 * 60_000;

/// An answer as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub answer: Answer,
    pub lead: Option<LeadOver>,
    /// Unix milliseconds at which it was stored.
    at: i64,
    /// The version of the record that it is about.
    version: u64,
    /// Unix milliseconds at which a server has to look again, whatever is requested.
    due_at: Option<i64>,
}

/// The lead over the control, in thousandths: how many more than half of their duels a ranker wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeadOver {
    pub won: i64,
    /// It is proven to win more than this, and less than that.
    pub at_least: Option<i64>,
    pub at_most: Option<i64>,
}

impl LeadOver {
    /// `None` if the two are the same, or nothing is proven that still holds.
    pub fn of(view: &ControlView) -> Option<Self> {
        let thousandths = |share: f64, round: fn(f64) -> f64| round(1000.0 * (share - 0.5)) as i64;
        view.at_least.or(view.at_most)?;
        let rate = view.win_rate.filter(|_| view.ranker != view.control)?;
        // after a change of preferences both sides can be proven
        view.at_least.is_none_or(|least| least <= rate).then_some(())?;
        Some(Self {
            won: thousandths(rate, f64::round),
            at_least: view.at_least.map(|share| thousandths(share, f64::floor)),
            at_most: view.at_most.map(|share| thousandths(share.max(rate), f64::ceil)),
        })
    }
}

/// The groups of the list, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Alarm,
    Decision,
    Running,
    Finished,
}

impl Group {
    pub const ALL: [Self; rankduel_store::LIST_GROUPS] =
        [Self::Alarm, Self::Decision, Self::Running, Self::Finished];

    /// The group of an experiment with this answer. One that has ended needs a decision until it
    /// is archived: somebody makes its ranker the default, or does not.
    fn of(answer: &Answer, status: Status) -> Self {
        match (answer.state, status) {
            (State::Refused | State::Harm | State::Alarm, _) => Self::Alarm,
            _ if answer.needs_you => Self::Decision,
            (
                State::Result | State::Segment | State::OpenLimit | State::Stopped,
                Status::Concluded,
            ) => Self::Decision,
            (_, Status::Concluded) => Self::Finished,
            (_, Status::Running | Status::Paused) => Self::Running,
        }
    }
}

impl Kept {
    /// The answer of now to a record.
    pub fn now(
        answer: Answer,
        lead: Option<LeadOver>,
        version: u64,
        due_at: Option<i64>,
        at: i64,
    ) -> Self {
        Self { answer, lead, at, version, due_at }
    }

    /// The stored answer; `None` before the first answer, and if another version of the program has
    /// written it.
    pub fn read(text: Option<&str>) -> Option<Self> {
        serde_json::from_str(text?).ok()
    }

    /// Whether this, which is stored, is good enough if `new` holds now. To look earlier than it
    /// has to be does no harm.
    pub fn covers(&self, new: &Self) -> bool {
        let is_lead_known =
            self.lead == new.lead || (0..LEAD_EVERY_MS).contains(&(new.at - self.at));
        let is_in_time = match (self.due_at, new.due_at) {
            (Some(own), Some(due)) => own == due || (new.at < own && own <= due),
            (Some(own), None) => new.at < own,
            (None, due) => due.is_none(),
        };
        self.version == new.version
            && is_lead_known
            && is_in_time
            && self.answer.says_the_same_as(&new.answer)
    }

    /// This, for the store.
    pub fn to_new(&self, status: Status) -> serde_json::Result<NewAnswer> {
        Ok(NewAnswer {
            text: serde_json::to_string(self)?,
            state: self.answer.state.name(),
            group: Group::of(&self.answer, status) as u8,
            due_at: self.due_at,
        })
    }
}

/// The answer that is stored with a record; `None` as for [`Kept::read`].
pub(crate) fn stored(record: &ExperimentRecord) -> Option<Answer> {
    Kept::read(record.answer.as_deref()).map(|kept| kept.answer)
}
