//! Rows of `log`: the columns, defined once, and the only place that maps events to columns.

use std::collections::HashMap;

use dueling_bandits::Answer;
use serde::{Deserialize, Deserializer};
use sqlx::Arguments as _;
use sqlx::error::BoxDynError;
use sqlx::postgres::PgArguments;
use sqlx::types::Uuid;

use super::numbers::from_column;
use super::table_row::{Record, TableRow};
use super::value::Value;
use crate::audience::Segment;
use crate::events::{ControlEvent, Event, OutcomeEvent};
use crate::postgres::copy::{self, CopyReader, LogColumn};
use crate::{ExperimentId, LogEntry, Nonce, StoreError};

const OUTCOME: i16 = 0;
const CONTROL: i16 = 1;

/// Defines the columns of `log` in order, and everything that depends on their order and number.
macro_rules! log_columns {
    ($first:ident: $First:ty, $( $(#[$meta:meta])* $column:ident: $Type:ty, )*) => {
        /// A row of `log`.
        #[derive(Debug, Clone, Deserialize)]
        pub(crate) struct LogRow {
            pub $first: $First,
            $( $(#[$meta])* pub $column: $Type, )*
        }

        impl Record for LogRow {
            fn experiment(&self) -> Option<ExperimentId> {
                Some(self.experiment_id)
            }

            fn read(row: &impl TableRow) -> Result<Self, StoreError> {
                Ok(Self {
                    $first: row.get(stringify!($first))?,
                    $($column: row.get(stringify!($column))?,)*
                })
            }
        }

        impl LogRow {
            /// The names of the columns, in order.
            pub const COLUMNS: &[&str] = &[stringify!($first), $(stringify!($column)),*];

            /// The values of the columns, for a statement that writes this row.
            pub fn values(&self) -> [Value<'_>; Self::COLUMNS.len()] {
                [Value::from(&self.$first), $(Value::from(&self.$column)),*]
            }

            /// Add the columns of all rows but the first to the parameters of a statement, each as
            /// an array.
            pub fn bind_arrays(rows: &[Self], to: &mut PgArguments) -> Result<(), BoxDynError> {
                $(to.add(rows.iter().map(|row| row.$column.clone()).collect::<Vec<_>>())?;)*
                Ok(())
            }

            /// Append the columns to a binary copy of PostgreSQL.
            pub fn write_copy(&self, to: &mut Vec<u8>) -> Result<(), StoreError> {
                copy::put(to, &self.$first)?;
                $(copy::put(to, &self.$column)?;)*
                Ok(())
            }

            /// The columns from a binary copy; `None` if it is malformed.
            pub fn read_copy(from: &mut CopyReader<'_>) -> Option<Self> {
                Some(Self { $first: from.column()?, $($column: from.column()?,)* })
            }

            /// The columns as SQLite writes them into a JSON array, from which a row is read.
            pub fn json_columns() -> Vec<String> {
                vec![stringify!($first).into(), $(<$Type as LogColumn>::json(stringify!($column))),*]
            }

            /// The types of the columns but the first in PostgreSQL.
            pub const POSTGRES_TYPES: &[&str] = &[$(<$Type as LogColumn>::POSTGRES),*];
        }
    };
}

log_columns! {
    experiment_id: i64,
    position: i64,
    nonce: Uuid,
    recorded_at_ms: i64,
    kind: i16,
    first_ranker: Option<i32>,
    second_ranker: Option<i32>,
    #[serde(deserialize_with = "flag_from_number")]
    first_left: Option<bool>,
    answer: Option<i16>,
    batch: Option<i64>,
    ticket: Option<i64>,
    chosen_at: Option<i64>,
    issued_at_ms: Option<i64>,
    unit: Option<i64>,
    segment: Option<String>,
    detail: Option<String>,
}

/// Read a flag, which SQLite has as a number.
fn flag_from_number<'de, D: Deserializer<'de>>(column: D) -> Result<Option<bool>, D::Error> {
    Ok(Option::<i64>::deserialize(column)?.map(|flag| flag != 0))
}

impl LogRow {
    /// A parameter for each column, from `$n` on.
    pub fn values_from(n: usize) -> String {
        let parameters = (n..).take(Self::COLUMNS.len()).map(|n| format!("${n}"));
        parameters.collect::<Vec<_>>().join(", ")
    }

    /// A parameter for each column but the first, from `$n` on: an array.
    pub fn arrays_from(n: usize) -> String {
        let parameters = (n..).zip(Self::POSTGRES_TYPES).map(|(n, sql)| format!("${n}::{sql}[]"));
        parameters.collect::<Vec<_>>().join(", ")
    }

    /// The parameter after those of [`LogRow::arrays_from`].
    pub fn after_arrays_from(n: usize) -> String {
        format!("${}", n + Self::POSTGRES_TYPES.len())
    }

    /// The columns of `entry`. Its positions are relative: `open.head` is added to them.
    pub fn above_heads() -> String {
        let columns = Self::COLUMNS.iter().map(|column| match *column {
            "position" => "open.head + entry.position".to_owned(),
            column => format!("entry.{column}"),
        });
        columns.collect::<Vec<_>>().join(", ")
    }

    /// The row of an event at this position.
    pub fn at(
        experiment: ExperimentId,
        position: i64,
        nonce: Nonce,
        recorded_at: i64,
        event: &Event,
    ) -> Self {
        let row = Self {
            experiment_id: experiment,
            position,
            nonce: Uuid::from_u128(nonce),
            recorded_at_ms: recorded_at,
            kind: CONTROL,
            first_ranker: None,
            second_ranker: None,
            first_left: None,
            answer: None,
            batch: None,
            ticket: None,
            chosen_at: None,
            issued_at_ms: None,
            unit: None,
            segment: None,
            detail: None,
        };
        match event {
            Event::Control(control) => Self { detail: Some(control.to_json()), ..row },
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
                unit: outcome.unit.map(u64::cast_signed),
                segment: outcome.segment.map(|segment| segment.as_str().to_owned()),
                ..row
            },
        }
    }

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
        let segment = self.segment.as_deref().map(Segment::try_from).transpose();
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
            unit: self.unit.map(i64::cast_unsigned),
            segment: segment.map_err(|error| format!("its segment: {error}"))?,
        })
    }
}

impl TryFrom<LogRow> for LogEntry {
    type Error = StoreError;

    fn try_from(row: LogRow) -> Result<Self, StoreError> {
        let position = from_column("position of a log entry", row.position)?;
        let (experiment, nonce) = (row.experiment_id, row.nonce.as_u128());
        let recorded_at = row.recorded_at_ms;
        let event = row.event().map_err(|reason| {
            StoreError::Corrupt(format!(
                "log entry {position} of experiment {experiment}: {reason}"
            ))
        })?;
        Ok(Self { position, nonce, recorded_at, event })
    }
}

impl LogRow {
    /// The entries of rows.
    pub fn entries(rows: Vec<Self>) -> Result<Vec<LogEntry>, StoreError> {
        rows.into_iter().map(LogEntry::try_from).collect()
    }
}

/// For each nonce the entry that carries it.
pub(crate) fn in_order_of(
    nonces: &[Nonce],
    entries: Vec<(ExperimentId, LogEntry)>,
) -> Vec<Option<LogEntry>> {
    let by_nonce: HashMap<Nonce, LogEntry> =
        entries.into_iter().map(|(_, entry)| (entry.nonce, entry)).collect();
    nonces.iter().map(|nonce| by_nonce.get(nonce).cloned()).collect()
}
