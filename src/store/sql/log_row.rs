//! Rows of `log`, and the only place that maps events to columns.

use std::collections::HashMap;

use dueling_bandits::Answer;
use serde::{Deserialize, Serialize};
use sqlx::types::Uuid;
use sqlx::{ColumnIndex, Decode, FromRow, Row, Type};

use super::numbers::from_column;
use super::table_row::table_row;
use crate::audience::Segment;
use crate::events::{ControlEvent, Event, OutcomeEvent, unit_text};
use crate::store::{ExperimentId, LogEntry, Nonce, StoreError};

const OUTCOME: i16 = 0;
const CONTROL: i16 = 1;

table_row! {
    /// The columns of `log` that hold the event.
    #[derive(Debug, Default)]
    pub(in crate::store) struct EventColumns {
        pub kind: i16,
        pub first_ranker: Option<i32>,
        pub second_ranker: Option<i32>,
        pub first_left: Option<bool>,
        pub answer: Option<i16>,
        pub batch: Option<i64>,
        pub ticket: Option<i64>,
        pub chosen_at: Option<i64>,
        pub issued_at_ms: Option<i64>,
        pub detail: Option<String>,
    }
}

impl From<&Event> for EventColumns {
    fn from(event: &Event) -> Self {
        match event {
            Event::Outcome(outcome) => Self {
                kind: OUTCOME,
                first_ranker: Some(outcome.first.into()),
                second_ranker: Some(outcome.second.into()),
                first_left: Some(outcome.first_left),
                answer: Some(match outcome.answer {
                    Answer::First => 0,
                    Answer::Second => 1,
                    Answer::Tie => 2,
                    Answer::None => 3,
                }),
                batch: outcome.batch.map(i64::from),
                ticket: Some(outcome.ticket.cast_signed()),
                chosen_at: Some(outcome.chosen_at.cast_signed()),
                issued_at_ms: Some(outcome.issued_at),
                detail: OutcomeDetail::of(outcome).map(|detail| detail.to_json()),
            },
            Event::Control(control) => {
                Self { kind: CONTROL, detail: Some(control.to_json()), ..Self::default() }
            }
        }
    }
}

impl EventColumns {
    /// The event, or the reason why the columns are invalid.
    fn event(self) -> Result<Event, String> {
        match self.kind {
            OUTCOME => self.outcome().map(Event::Outcome),
            CONTROL => {
                let detail = self.detail.ok_or("it has no detail")?;
                ControlEvent::from_json(&detail)
                    .map(Event::Control)
                    .map_err(|error| error.to_string())
            }
            kind => Err(format!("its kind is {kind}: was it written by a newer program?")),
        }
    }

    fn outcome(&self) -> Result<OutcomeEvent, String> {
        fn required<T>(name: &str, value: Option<T>) -> Result<T, String> {
            value.ok_or_else(|| format!("it has no {name}"))
        }
        fn fits<T: TryFrom<i64>>(name: &str, value: i64) -> Result<T, String> {
            T::try_from(value).map_err(|_| format!("its {name} is {value}"))
        }
        let ranker = |name, value: Option<i32>| fits(name, required(name, value)?.into());
        let OutcomeDetail { unit, segment } = match &self.detail {
            Some(detail) => OutcomeDetail::from_json(detail)?,
            None => OutcomeDetail::default(),
        };
        Ok(OutcomeEvent {
            first: ranker("first_ranker", self.first_ranker)?,
            second: ranker("second_ranker", self.second_ranker)?,
            first_left: required("first_left", self.first_left)?,
            answer: match required("answer", self.answer)? {
                0 => Answer::First,
                1 => Answer::Second,
                2 => Answer::Tie,
                3 => Answer::None,
                other => return Err(format!("its answer is {other}")),
            },
            batch: self.batch.map(|batch| fits("batch", batch)).transpose()?,
            ticket: required("ticket", self.ticket)?.cast_unsigned(),
            chosen_at: required("chosen_at", self.chosen_at)?.cast_unsigned(),
            issued_at: required("issued_at_ms", self.issued_at_ms)?,
            unit,
            segment,
        })
    }
}

/// The `detail` of an outcome: what few callers send.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutcomeDetail {
    #[serde(default, skip_serializing_if = "Option::is_none", with = "unit_text")]
    unit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    segment: Option<Segment>,
}

impl OutcomeDetail {
    /// `None` if the outcome has none.
    fn of(&OutcomeEvent { unit, segment, .. }: &OutcomeEvent) -> Option<Self> {
        (unit.is_some() || segment.is_some()).then_some(Self { unit, segment })
    }

    fn to_json(&self) -> String {
        serde_json::to_string(self).expect("text always serialises")
    }

    fn from_json(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|error| format!("its detail: {error}"))
    }
}

/// A row of `log`.
#[derive(Debug)]
pub(in crate::store) struct LogRow {
    pub experiment_id: i64,
    pub position: i64,
    pub nonce: Uuid,
    pub recorded_at_ms: i64,
    pub event: EventColumns,
}

impl<'r, R: Row> FromRow<'r, R> for LogRow
where
    &'static str: ColumnIndex<R>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    Uuid: Decode<'r, R::Database> + Type<R::Database>,
    EventColumns: FromRow<'r, R>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        Ok(Self {
            experiment_id: row.try_get("experiment_id")?,
            position: row.try_get("position")?,
            nonce: row.try_get("nonce")?,
            recorded_at_ms: row.try_get("recorded_at_ms")?,
            event: EventColumns::from_row(row)?,
        })
    }
}

impl TryFrom<LogRow> for LogEntry {
    type Error = StoreError;

    fn try_from(row: LogRow) -> Result<Self, StoreError> {
        let position = from_column("position of a log entry", row.position)?;
        let event = row.event.event().map_err(|reason| {
            StoreError::Corrupt(format!(
                "log entry {position} of experiment {}: {reason}",
                row.experiment_id
            ))
        })?;
        Ok(Self { position, nonce: row.nonce.as_u128(), recorded_at: row.recorded_at_ms, event })
    }
}

/// For each nonce the entry that carries it.
pub(in crate::store) fn in_order_of(
    nonces: &[Nonce],
    entries: Vec<(ExperimentId, LogEntry)>,
) -> Vec<Option<LogEntry>> {
    let by_nonce: HashMap<Nonce, LogEntry> =
        entries.into_iter().map(|(_, entry)| (entry.nonce, entry)).collect();
    nonces.iter().map(|nonce| by_nonce.get(nonce).cloned()).collect()
}
