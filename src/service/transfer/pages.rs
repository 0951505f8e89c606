//! A table of the answered pages of an experiment, for the tools of an analyst.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Write;

use dueling_bandits::Answer;
use dueling_bandits::claims::alone::Arm;
use serde::Serialize;

use super::log::FoldedLog;
use super::table::{Table, TableFormat};
use rankduel_engine::clock::rfc3339;
use rankduel_engine::experiment_spec::{ExperimentSpec, arm_of};
use rankduel_store::events::{OutcomeEvent, UnitHash};
use rankduel_store::{LogEntry, Store};

/// The fields of [`Page`], in order.
const COLUMNS: [&str; 13] = [
    "position",
    "duel",
    "issued_at",
    "answered_at",
    "left",
    "right",
    "outcome",
    "winner",
    "batch",
    "unit",
    "segment",
    "excluded",
    "alone",
];

/// A row: a page that was answered.
#[derive(Debug, Serialize)]
struct Page<'a> {
    /// Position of the log entry that answered it.
    position: u64,
    /// The number of the duel in the log of the server: 32 hexadecimal digits.
    duel: String,
    /// When it was issued, in RFC 3339.
    issued_at: String,
    /// When its answer was recorded, in RFC 3339.
    answered_at: String,
    /// The ranker on the left; on the right it is the same for a self-duel.
    left: Cow<'a, str>,
    right: Cow<'a, str>,
    /// `left`, `right`, `tie` or `none`.
    outcome: &'static str,
    /// The ranker that won; empty for `tie` and `none`.
    winner: Option<Cow<'a, str>>,
    /// Number of the batch; empty for policies without batches.
    batch: Option<u32>,
    /// Hash of the unit that answered: 16 hexadecimal digits, empty without a unit.
    unit: Option<String>,
    /// The segment of the page; empty if the caller named none.
    segment: Option<String>,
    /// Whether the unit is excluded, so that the answer counts nowhere.
    excluded: bool,
    /// The ranker that its unit sees alone: `leader` or `control`; empty for duels.
    alone: Option<&'static str>,
}

impl<'a> Page<'a> {
    fn of(
        answered: &OutcomeEvent,
        entry: &LogEntry,
        spec: &'a ExperimentSpec,
        excluded: &BTreeSet<u64>,
        format: TableFormat,
    ) -> Self {
        let id = |ranker: u16| {
            let ranker = spec.rankers.get(usize::from(ranker));
            format.text(ranker.map_or("", |ranker| ranker.id.as_str()))
        };
        let OutcomeEvent { unit, segment, .. } = *answered;
        let (first, second) = (id(answered.first), id(answered.second));
        let (left, right) = if answered.first_left { (first, second) } else { (second, first) };
        let (outcome, winner) = match (answered.answer, answered.first_left) {
            (Answer::First, true) | (Answer::Second, false) => ("left", Some(left.clone())),
            (Answer::First, false) | (Answer::Second, true) => ("right", Some(right.clone())),
            (Answer::Tie, _) => ("tie", None),
            (Answer::None, _) => ("none", None),
        };
        Self {
            position: entry.position,
            duel: format!("{:032x}", entry.nonce),
            issued_at: rfc3339(answered.issued_at),
            answered_at: rfc3339(entry.recorded_at),
            left,
            right,
            outcome,
            winner,
            batch: answered.batch,
            unit: unit.map(|unit| format!("{unit:016x}")),
            segment: segment.map(|segment| format.text(segment.as_str()).into_owned()),
            excluded: unit.is_some_and(|unit| excluded.contains(&unit)),
            alone: arm_of(spec.alone, unit)
                .filter(|_| answered.first == answered.second)
                .map(Arm::name),
        }
    }
}

/// Write a row for each answered page of the log up to now, in the order of the answers. The clicks
/// on an interleaved page become its outcome as they do in the server. Pages whose log entries were
/// pruned, and batches that were run elsewhere, have no row. Neither have pages that entries up to
/// `after` answered. Returns the number of rows.
pub async fn write_pages(
    store: &dyn Store,
    name: &str,
    format: TableFormat,
    after: u64,
    out: &mut (dyn Write + Send),
) -> Result<u64, anyhow::Error> {
    let log = FoldedLog::open(store, name).await?;
    let mut rows = 0;
    let mut table = Table::start(format, &COLUMNS, out)?;
    let spec = log.spec.clone();
    let excluded = spec.excluded_units().map(|UnitHash(unit)| unit).collect();
    log.fold(store, |answered, entry| {
        let Some(answered) = answered.filter(|_| entry.position > after) else { return Ok(()) };
        rows += 1;
        table.write(&Page::of(answered, entry, &spec, &excluded, format))
    })
    .await?;
    table.end()?;
    Ok(rows)
}
