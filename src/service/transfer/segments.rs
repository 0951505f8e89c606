//! The results of one ranker by segment, as a table.

use std::borrow::Cow;
use std::io::Write;

use serde::Serialize;

use super::log::FoldedLog;
use super::table::{Table, TableFormat};
use crate::service::reports::fold_copy::FoldCopy;
use crate::service::reports::segments::{OpponentRow, SegmentAnswers};
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_store::Store;

/// The fields of [`Row`], in order.
const COLUMNS: [&str; 10] =
    ["segment", "ranker", "opponent", "duels", "wins", "losses", "ties", "win_rate", "low", "high"];

/// The duels of the ranker with one opponent in one segment; see [`OpponentRow`].
#[derive(Debug, Serialize)]
struct Row<'a> {
    /// Empty for the pages whose caller named none.
    segment: Option<String>,
    ranker: &'a str,
    opponent: Cow<'a, str>,
    duels: u64,
    wins: u64,
    losses: u64,
    ties: u64,
    /// Empty without wins and losses.
    win_rate: Option<f64>,
    low: f64,
    high: f64,
}

/// Summary of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenSegments {
    pub ranker: String,
    pub rows: u64,
    /// Answers that do not count yet, because their cohorts are not complete.
    pub waiting: u64,
}

/// Write the results of `ranker` against each other ranker that takes part in the tournament, for
/// each segment, sorted by segment. Without a ranker, they are those of the winner of a concluded
/// experiment, or else of the leader. See [`SegmentAnswers`] for what counts; entries that were
/// pruned do not.
pub async fn write_segments(
    store: &dyn Store,
    name: &str,
    ranker: Option<&str>,
    format: TableFormat,
    out: &mut (dyn Write + Send),
) -> Result<WrittenSegments, anyhow::Error> {
    let log = FoldedLog::open(store, name).await?;
    let (spec, winner, seed) = (log.spec.clone(), log.record.winner, log.record.seed);
    let named = ranker.map(|id| index_of(&spec, name, id)).transpose()?;
    let mut answers = SegmentAnswers::new(spec);
    let fold = log
        .fold(store, |_, answered, entry| {
            answered.iter().for_each(|answered| answers.add(answered, entry.recorded_at));
            Ok(())
        })
        .await?;
    let ranker =
        named.or(winner.map(usize::from)).unwrap_or_else(|| FoldCopy::of(&fold).leader(seed));
    let results = answers.results(&fold, ranker);
    let ranker = results.ranker();
    let shown = format.text(ranker);
    let mut table = Table::start(format, &COLUMNS, out)?;
    let mut rows = 0;
    for segment in results.segments() {
        for row in results.of(segment) {
            let OpponentRow { opponent, duels, wins, losses, ties, win_rate, low, high } = row;
            table.write(&Row {
                segment: segment.map(|segment| format.text(segment.as_str()).into_owned()),
                ranker: &shown,
                opponent: format.text(&opponent),
                duels,
                wins,
                losses,
                ties,
                win_rate,
                low,
                high,
            })?;
            rows += 1;
        }
    }
    table.end()?;
    Ok(WrittenSegments { ranker: ranker.into(), rows, waiting: results.waiting })
}

fn index_of(spec: &ExperimentSpec, name: &str, id: &str) -> Result<usize, anyhow::Error> {
    spec.ranker_index(id).ok_or_else(|| {
        let ids: Vec<_> = spec.rankers.iter().map(|ranker| ranker.id.as_str()).collect();
        anyhow::anyhow!("experiment `{name}` has no ranker `{id}`; its rankers: {}", ids.join(", "))
    })
}
