//! The events of an experiment's log, as plain data.
//!
//! The engine and the service make events, the store keeps them, and the engine folds them. This
//! module is beneath all of them: it names types of the policy crate, and nothing of a database or
//! of a loaded experiment.
//!
//! Logs outlive programs. A change here must keep the JSON of every event that exists: new kinds
//! and new optional fields are fine, and nothing else is.

use dueling_bandits::Answer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::audience::Segment;
use crate::hashes::unit_text;
pub use crate::hashes::{NoUnitHash, UnitHash};
use crate::order_events::{HomeRow, LinksEvent, OrderEvent, OrderHash};

/// Whether an experiment issues duels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Duels are issued and feedback counts.
    Running,
    /// No duels are issued; feedback of duels issued before still counts.
    Paused,
    /// Decided: the winner is shown, alone.
    Concluded,
}

/// An event of an experiment. Two events with one nonce are the same when one
/// [repeats](Event::repeats) the other.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A duel was answered.
    Outcome(OutcomeEvent),
    /// A rarer event, kept as JSON.
    Control(ControlEvent),
}

impl Event {
    /// Whether this event is a repeat of `logged`, an event with the same nonce: it says the same.
    /// The unit and the segment are no part of the answer. Of two events with clicks, one may leave
    /// the credit sheet of the page out.
    pub fn repeats(&self, logged: &Self) -> bool {
        match (self, logged) {
            (Self::Outcome(outcome), Self::Outcome(logged)) => {
                let OutcomeEvent { unit, segment, .. } = *outcome;
                *outcome == OutcomeEvent { unit, segment, ..*logged }
            }
            (
                Self::Control(ControlEvent::Clicks(clicks)),
                Self::Control(ControlEvent::Clicks(logged)),
            ) => {
                let no_sheet = clicks.sheet.is_none() || logged.sheet.is_none();
                let compared = |event: &ClicksEvent| {
                    let sheet = event.sheet.clone().filter(|_| !no_sheet);
                    ClicksEvent { sheet, unit: None, segment: None, ..event.clone() }
                };
                compared(clicks) == compared(logged)
            }
            (
                Self::Control(ControlEvent::Values { pages }),
                Self::Control(ControlEvent::Values { pages: logged }),
            ) => {
                let compared = |page: &PageValues| PageValues { unit: None, ..page.clone() };
                pages.iter().map(compared).eq(logged.iter().map(compared))
            }
            (
                Self::Control(ControlEvent::Links(links)),
                Self::Control(ControlEvent::Links(logged)),
            ) => links.repeats(logged),
            _ => self == logged,
        }
    }
}

/// A duel and its answer. Every field but the answer comes from the duel's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeEvent {
    /// First ranker of the ordered pair that the policy chose.
    pub first: u16,
    /// Second ranker; equal to `first` for a self-duel, which teaches nothing.
    pub second: u16,
    /// Whether the first ranker was shown left.
    pub first_left: bool,
    /// The searcher's answer.
    pub answer: Answer,
    /// The batch it was selected in.
    pub batch: Option<u32>,
    /// The policy's note on its selection.
    pub ticket: u64,
    /// Log position at which it was selected.
    pub chosen_at: u64,
    /// Unix milliseconds at which it was issued.
    pub issued_at: i64,
    /// Hash of the unit that answered: a user, a session or a device. In JSON, 16 hexadecimal
    /// digits.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "unit_text")]
    pub unit: Option<u64>,
    /// The segment of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
}

/// The rarer events. New kinds and new optional fields may be added; a program refuses a log with a
/// kind it does not know rather than fold it wrongly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlEvent {
    /// Self-duels that were issued since the last event of this kind.
    SelfDuels {
        /// `[ranker, count]`, each ranker once, in ascending order.
        counts: Vec<(u16, u64)>,
        /// Units that got a page of the leader or the control alone, for the first time or again.
        /// These pages are not among the counts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        alone: Vec<UnitHash>,
    },
    /// The results of a batch that was run elsewhere, or of a part of it.
    BatchResults {
        /// Number of the batch.
        batch: u32,
        /// Number of the part; `None` if these are all results that the batch still needs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<u32>,
        /// One row for each pair.
        results: Vec<PairResult>,
    },
    /// The experiment was created: the first entry of its log.
    Created {
        /// Its spec, opaque to the store.
        spec: Value,
    },
    /// Its spec, its status or its archive changed.
    Changed {
        /// The change, opaque to the store.
        patch: Value,
        /// Its author, as in the audit log.
        by: String,
    },
    /// Clicks on an interleaved page. Under the duel's nonce they settle the duel, together with
    /// the clicks recorded before; under another nonce they wait until the duel is settled.
    Clicks(Box<ClicksEvent>),
    /// Clicks on an interleaved page, where orders decide: they link documents to the page.
    Links(Box<LinksEvent>),
    /// An order of a unit.
    Order(Box<OrderEvent>),
    /// An order was cancelled.
    OrderCancelled {
        /// The order.
        order: OrderHash,
    },
    /// Units got their first page, which decides their pair: three rankers or more, and orders
    /// decide.
    Homes {
        /// The units.
        units: Vec<HomeRow>,
    },
    /// Under a duel's nonce: the clicks recorded before settle the duel.
    Settled {},
    /// No answer of a duel issued before this time can come any more. The verdict counts the
    /// answers of these duels.
    CohortsComplete {
        /// Unix milliseconds.
        issued_before: i64,
        /// Duels of the cohorts that became complete, as the server that writes this issued them.
        #[serde(default)]
        issued: u64,
        /// Those of them that were answered.
        #[serde(default)]
        answered: u64,
    },
    /// Pages of experiments with metrics: that they were issued, or values of them.
    Values {
        /// The pages.
        pages: Vec<PageValues>,
    },
    /// No value of a page issued before this time can come any more.
    ValuesComplete {
        /// Unix milliseconds.
        issued_before: i64,
    },
}

impl ControlEvent {
    /// The event as the store keeps it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers, lists and names always serialise")
    }

    /// The way back of [`ControlEvent::to_json`].
    pub fn from_json(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }
}

/// Clicks on the page of a duel. Every field but the clicks comes from the duel's token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClicksEvent {
    /// The duel's nonce.
    pub duel: Uuid,
    /// First ranker of the ordered pair that the policy chose.
    pub first: u16,
    /// Second ranker.
    pub second: u16,
    /// Whether the first ranker was shown left.
    pub first_left: bool,
    /// The batch it was selected in.
    pub batch: Option<u32>,
    /// The policy's note on its selection.
    pub ticket: u64,
    /// Log position at which it was selected.
    pub chosen_at: u64,
    /// Unix milliseconds at which it was issued.
    pub issued_at: i64,
    /// Version of the method that interleaved the page.
    pub method: u32,
    /// The page's credit sheet, as text. If it is absent, an earlier entry on this duel has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sheet: Option<String>,
    /// Positions and weights, each position once, in ascending order.
    pub clicks: Vec<(u16, u8)>,
    /// Hash of the unit that clicked. In JSON, 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "unit_text")]
    pub unit: Option<u64>,
    /// The segment of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
}

/// A page, and the values of its rankers as far as they are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageValues {
    /// The duel's nonce.
    pub duel: Uuid,
    /// First ranker of the ordered pair that the policy chose; of a page that shows one ranker
    /// alone, the leader.
    pub first: u16,
    /// Second ranker, or the control.
    pub second: u16,
    /// The ranker that it shows alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<u16>,
    /// Unix milliseconds at which it was issued.
    pub issued_at: i64,
    /// Hash of the unit that saw it. In JSON, 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "unit_text")]
    pub unit: Option<u64>,
    /// Values by the number of their metric, of the first and of the second ranker.
    #[serde(default, skip_serializing_if = "has_no_values")]
    pub values: [Vec<Option<f64>>; 2],
}

impl PageValues {
    /// Values of the page of the duel with this nonce, which shows two rankers.
    pub fn of(
        nonce: u128,
        [first, second]: [u16; 2],
        issued_at: i64,
        unit: Option<u64>,
        values: [Vec<Option<f64>>; 2],
    ) -> Self {
        Self { duel: Uuid::from_u128(nonce), first, second, alone: None, issued_at, unit, values }
    }
}

fn has_no_values(values: &[Vec<Option<f64>>; 2]) -> bool {
    values.iter().all(Vec::is_empty)
}

/// Counts of one pair of a batch that was run elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairResult {
    /// First ranker of the batch's ordered pair.
    pub first: u16,
    /// Second ranker.
    pub second: u16,
    /// Comparisons that the first ranker won.
    pub first_wins: u32,
    /// Comparisons that the second ranker won.
    pub second_wins: u32,
    /// Comparisons without a winner.
    pub ties: u32,
}
