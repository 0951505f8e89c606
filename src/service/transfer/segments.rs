//! The results of one ranker, split by segment.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::Write;

use dueling_bandits::Answer;
use dueling_bandits::evidence::Sequences;
use serde::Serialize;

use super::log::FoldedLog;
use super::table::{Table, TableFormat};
use crate::audience::{Audience, Segment};
use crate::engine::experiment_spec::ExperimentSpec;
use crate::engine::fold::Answered;
use crate::events::UnitHash;
use crate::store::Store;

/// Probability that any interval of the table ever fails.
const ERROR: f64 = 0.05;

/// The fields of [`Row`], in order.
const COLUMNS: [&str; 10] =
    ["segment", "ranker", "opponent", "duels", "wins", "losses", "ties", "win_rate", "low", "high"];

/// The duels of the ranker with one opponent in one segment.
#[derive(Debug, Serialize)]
struct Row<'a> {
    /// Empty for the pages whose caller named none.
    segment: Option<Segment>,
    ranker: &'a str,
    opponent: &'a str,
    /// Wins, losses and ties.
    duels: u64,
    wins: u64,
    losses: u64,
    ties: u64,
    /// Share of the wins among wins and losses; empty if there are none.
    win_rate: Option<f64>,
    /// Interval of the probability to win, 0 to 1, if a duel is won or lost: see
    /// [`intervals_of`].
    low: f64,
    high: f64,
}

/// What the first ranker of a pair, which has the lower index, won.
#[derive(Debug, Clone, Copy, Default)]
struct PairCounts {
    wins: u64,
    losses: u64,
    ties: u64,
}

impl PairCounts {
    fn reversed(self) -> Self {
        Self { wins: self.losses, losses: self.wins, ..self }
    }
}

/// The answers of an experiment by segment.
#[derive(Debug, Default)]
struct Segments {
    /// The segments of the answers so far, with a number each, from 1, in the order of the log. Of
    /// answers that wait, too: the number of a segment never changes while the log grows.
    numbers: HashMap<Option<Segment>, usize>,
    /// The segments with counted answers.
    names: BTreeSet<Option<Segment>>,
    counts: BTreeMap<(Option<Segment>, u16, u16), PairCounts>,
    /// The units that have answered.
    units: HashSet<u64>,
}

impl Segments {
    /// Count an answer. Like the verdict, this counts the first answer of each unit.
    fn count(&mut self, answered: &Answered) {
        let Answered { first, second, answer, audience: Audience { unit, segment }, .. } =
            *answered;
        let (wins, losses, ties) = match answer {
            Answer::First => (1, 0, 0),
            Answer::Second => (0, 1, 0),
            Answer::Tie => (0, 0, 1),
            Answer::None => return,
        };
        if unit.is_some_and(|unit| !self.units.insert(unit)) {
            return;
        }
        self.names.insert(segment);
        let outcome = PairCounts { wins, losses, ties };
        let outcome = if first < second { outcome } else { outcome.reversed() };
        let counts =
            self.counts.entry((segment, first.min(second), first.max(second))).or_default();
        counts.wins += outcome.wins;
        counts.losses += outcome.losses;
        counts.ties += outcome.ties;
    }

    /// The counts of `ranker` against `opponent`.
    fn of(&self, segment: Option<Segment>, ranker: u16, opponent: u16) -> PairCounts {
        let key = (segment, ranker.min(opponent), ranker.max(opponent));
        let counts = self.counts.get(&key).copied().unwrap_or_default();
        if ranker < opponent { counts } else { counts.reversed() }
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenSegments {
    /// Id of the ranker.
    pub ranker: String,
    /// Number of rows.
    pub rows: u64,
    /// Answers that do not count yet, because their cohorts are not complete.
    pub waiting: u64,
}

/// Write the results of `ranker` against each other ranker that takes part in the tournament, for
/// each segment, sorted by segment. Without a ranker, they are those of the winner of a concluded
/// experiment, or else of the leader. As for the verdict, only answers within the answer window of
/// complete cohorts count. Answers without a preference, answers of excluded units and of canaries,
/// and all but the first answer of a unit are left out, as are entries that were pruned.
pub async fn write_segments(
    store: &dyn Store,
    name: &str,
    ranker: Option<&str>,
    format: TableFormat,
    out: &mut (dyn Write + Send),
) -> Result<WrittenSegments, anyhow::Error> {
    let log = FoldedLog::open(store, name).await?;
    let (spec, winner) = (log.spec().clone(), log.winner());
    let named = ranker.map(|id| index_of(&spec, name, id)).transpose()?;
    let excluded: BTreeSet<u64> = spec.excluded_units().map(|UnitHash(unit)| unit).collect();
    let (held_out, window_ms) = (spec.held_out(), spec.answer_window_ms());
    let mut answers = Vec::new();
    let fold = log
        .fold(store, |answered, entry| {
            let is_held_out = |ranker: u16| held_out == Some(ranker.into());
            let in_time = window_ms == 0 || entry.recorded_at - answered.issued_at <= window_ms;
            let counts = in_time
                && answered.first != answered.second
                && answered.answer != Answer::None
                && !answered.audience.unit.is_some_and(|unit| excluded.contains(&unit))
                && !is_held_out(answered.first)
                && !is_held_out(answered.second);
            if counts {
                answers.push(*answered);
            }
            Ok(())
        })
        .await?;
    let complete_until = fold.cohorts().complete_until();
    let (mut segments, mut waiting) = (Segments::default(), 0);
    for answered in &answers {
        let next = segments.numbers.len() + 1;
        segments.numbers.entry(answered.audience.segment).or_insert(next);
        if window_ms == 0 || answered.issued_at < complete_until {
            segments.count(answered);
        } else {
            // others may still come, and those that favour one ranker may take longer
            waiting += 1;
        }
    }
    let active = fold.roster().active();
    let leader = || fold.policy().tally().copeland_leader_among(active);
    let ranker = named.or(winner.map(usize::from)).unwrap_or_else(leader);
    let opponents: Vec<usize> = active.iter().copied().filter(|&other| other != ranker).collect();

    let id = |ranker: usize| spec.rankers.get(ranker).map_or("", |ranker| ranker.id.as_str());
    let mut table = Table::start(format, &COLUMNS, out)?;
    let mut rows = 0;
    for &segment in &segments.names {
        let intervals = intervals_of(&spec, segments.numbers[&segment]);
        for &opponent in &opponents {
            let PairCounts { wins, losses, ties } =
                segments.of(segment, ranker as u16, opponent as u16);
            let (low, high) = intervals.of(ranker, opponent).interval(wins as f64, losses as f64);
            let decided = wins + losses;
            table.write(&Row {
                segment,
                ranker: id(ranker),
                opponent: id(opponent),
                duels: decided + ties,
                wins,
                losses,
                ties,
                win_rate: (decided > 0).then(|| (1e4 * wins as f64 / decided as f64).round() / 1e4),
                low: (1e4 * low).floor() / 1e4,
                high: (1e4 * high).ceil() / 1e4,
            })?;
            rows += 1;
        }
    }
    table.end()?;
    Ok(WrittenSegments { ranker: id(ranker).into(), rows, waiting })
}

/// The intervals of all pairs in the segment with this number. Those of all segments hold together,
/// at all times, with the probability `1 - ERROR`, however many segments and rankers come: the
/// segments share the error as `Σ 1 / (n (n + 1)) = 1`, and the intervals of [`Sequences`] use up
/// twice its error at most.
fn intervals_of(spec: &ExperimentSpec, number: usize) -> Sequences {
    let share = ERROR / 2.0 / (number * (number + 1)) as f64;
    Sequences::new(spec.initial_rankers(), spec.rankers.len(), 1.0 - share)
}

fn index_of(spec: &ExperimentSpec, name: &str, id: &str) -> Result<usize, anyhow::Error> {
    spec.ranker_index(id).ok_or_else(|| {
        let ids: Vec<_> = spec.rankers.iter().map(|ranker| ranker.id.as_str()).collect();
        anyhow::anyhow!("experiment `{name}` has no ranker `{id}`; its rankers: {}", ids.join(", "))
    })
}
