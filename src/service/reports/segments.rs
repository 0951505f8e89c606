//! The results of one ranker, split by segment.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use super::fold_log::{Folding, REQUEST_ENTRIES_MAX};
use super::leader::lead;
use super::single_flight::{Computed, SingleFlight};
use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::threads::IsAwaited;
use dueling_bandits::Answer;
use dueling_bandits::evidence::Sequences;
use dueling_bandits::evidence::ladder::Ladder;
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::audience::Segment;
use rankduel_store::events::{OutcomeEvent, UnitHash};
use rankduel_store::{ExperimentRecord, LogEntry};

/// Probability that any of the intervals ever fails.
const ERROR: f64 = 0.05;
/// A page shows results until the log has grown by this part of it.
const GROWTH: u64 = 10;
/// A page waits so long for results.
const AT_ONCE: Duration = Duration::from_millis(500);
/// Most rows of a report, each with one opponent in one segment.
const ROWS_MAX: usize = 10_000;

/// The results of one ranker in each segment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SegmentsReport {
    pub experiment: String,
    pub position: u64,
    pub ranker: String,
    /// `segments` has those in which the ranker has most duels, as many as fit into 10,000 rows.
    pub segments_total: usize,
    /// Answers that do not count yet, because others from the same time may still come.
    pub waiting: u64,
    /// The results of all segments together. The intervals are those of `effects` in the verdict.
    pub all: Vec<OpponentRow>,
    /// The segment with the most duels of the ranker first.
    pub segments: Vec<SegmentRow>,
}

/// The results of the ranker in one segment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SegmentRow {
    /// `null` for the pages whose caller named none.
    #[schema(value_type = Option<String>)]
    pub segment: Option<Segment>,
    /// With ties.
    pub duels: u64,
    /// Each other active ranker with at least one duel, in the order of the experiment.
    pub opponents: Vec<OpponentRow>,
}

/// The duels of the ranker with one opponent in one segment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct OpponentRow {
    pub opponent: String,
    /// Wins, losses and ties.
    pub duels: u64,
    pub wins: u64,
    pub losses: u64,
    pub ties: u64,
    /// Share of the wins among wins and losses; `null` if there are none.
    pub win_rate: Option<f64>,
    /// Of the interval of the probability that the ranker wins, if the duel is won or lost. All
    /// intervals of the experiment hold together with a probability of 95 %, however often you
    /// look.
    pub low: f64,
    pub high: f64,
}

/// The results of the ranker with this index, or of the winner of a concluded experiment, or
/// else of the leader, by segment, at the current log position. Folds the log anew, unless
/// somebody has asked for the same lately. On a busy machine it is the last result of that ranker.
pub async fn segments(
    service: &Arc<Service>,
    loaded: &Arc<LoadedExperiment>,
    ranker: Option<usize>,
) -> Result<Arc<Computed<SegmentsReport>>, ServiceError> {
    let record = loaded.record();
    let head = loaded.fold()?.position();
    let ranker = match ranker.or(record.winner.map(usize::from)) {
        Some(ranker) => ranker,
        None => lead(&service.reports, loaded).await?.leader,
    };
    refuse_long_log(&record, head)?;
    let reports = loaded.extensions().get::<SingleFlight<usize, SegmentsReport>>();
    if let Some(known) = reports.known(head, &ranker) {
        return Ok(known);
    }
    let (own, of) = (Arc::clone(service), Arc::clone(loaded));
    // folded to the end, even if the caller does not wait for it
    let fresh = tokio::spawn(async move { fold_segments(&own, &of, &record, head, ranker).await });
    let fresh = async { fresh.await.map_err(|error| ServiceError::internal(error.to_string()))? };
    reports.or_last(&service.reports, &ranker, fresh).await
}

async fn fold_segments(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    record: &ExperimentRecord,
    head: u64,
    ranker: usize,
) -> Result<Arc<Computed<SegmentsReport>>, ServiceError> {
    let reports = loaded.extensions().get::<SingleFlight<usize, SegmentsReport>>();
    let _turn = match (service.replays.try_acquire(), reports.known(0, &ranker)) {
        (Ok(turn), _) => turn,
        (Err(_), Some(_)) => return Err(EngineError::Overloaded.into()),
        // The semaphore is never closed.
        (Err(_), None) => service.replays.acquire().await.map_err(|_| EngineError::Overloaded)?,
    };
    // another caller may have asked for the same meanwhile
    if let Some(known) = reports.known(head, &ranker) {
        return Ok(known);
    }
    let folding = Folding { store: &*service.engine.store, pool: Some(&service.reports) };
    let (of, seed, created_at) = (Arc::clone(loaded), record.seed, record.created_at);
    let start = move |_: IsAwaited<'_>| Fold::start(&of.spec, seed, created_at);
    let fold = folding.in_background(start).await?;
    let start = (fold, SegmentAnswers::none_yet(loaded.spec.clone()));
    let add = |answers: &mut SegmentAnswers, answered: &OutcomeEvent, entry: &LogEntry| {
        answers.add(answered, entry.recorded_at);
    };
    let folded = folding.run(record, head, start, add).await?;
    let name = loaded.name.clone();
    let compute = move |(fold, answers): (Fold, SegmentAnswers)| {
        Ok((head, answers.results(&fold, ranker).report(name, head)))
    };
    reports.get(&service.reports, (head, ranker), move || Ok(folded), compute).await
}

/// Held while the results of an experiment are computed for a page.
#[derive(Debug, Default)]
struct Turn(Arc<tokio::sync::Mutex<()>>);

/// The results of a ranker for a page that updates itself all the time: those of a log that was at
/// most a tenth shorter. If they take long, the last ones, or `None` before the first.
pub async fn recent_segments(
    service: &Arc<Service>,
    loaded: &Arc<LoadedExperiment>,
    ranker: usize,
) -> Result<Option<Arc<Computed<SegmentsReport>>>, ServiceError> {
    let head = loaded.fold()?.position();
    let reports = loaded.extensions().get::<SingleFlight<usize, SegmentsReport>>();
    if let Some(known) = reports.known(head - head / GROWTH, &ranker) {
        return Ok(Some(known));
    }
    refuse_long_log(&loaded.record(), head)?;
    let turn = loaded.extensions().get::<Turn>();
    if let Ok(turn) = Arc::clone(&turn.0).try_lock_owned() {
        let (service, loaded) = (Arc::clone(service), Arc::clone(loaded));
        let computed = tokio::spawn(async move {
            let computed = segments(&service, &loaded, Some(ranker)).await;
            drop(turn);
            computed
        });
        if let Ok(Ok(computed)) = tokio::time::timeout(AT_ONCE, computed).await {
            return computed.map(Some);
        }
    }
    Ok(reports.known(0, &ranker))
}

/// Refuse a log that a request cannot fold.
fn refuse_long_log(record: &ExperimentRecord, head: u64) -> Result<(), ServiceError> {
    let (name, pruned_to) = (&record.name, record.pruned_to);
    let refusal = if pruned_to > 0 {
        format!("was pruned up to position {pruned_to}, and a request reads whole logs only")
    } else if head > REQUEST_ENTRIES_MAX {
        format!("has {head} entries, and a request reads at most {REQUEST_ENTRIES_MAX}")
    } else {
        return Ok(());
    };
    Err(ServiceError::CannotReplay(format!(
        "the log of experiment `{name}` {refusal}; `rankduel segments {name}` has no limit"
    )))
}

/// The answers of an experiment that its segments count, in the order of the log.
///
/// As for the verdict, these are answers within the answer window. Answers without a preference,
/// answers of excluded units and of canaries, and all but the first answer of a unit are left out.
#[derive(Debug)]
pub struct SegmentAnswers {
    spec: ExperimentSpec,
    excluded: BTreeSet<u64>,
    /// With the times at which they were recorded.
    answers: Vec<(OutcomeEvent, i64)>,
}

impl SegmentAnswers {
    /// Those of an experiment without answers.
    pub fn none_yet(spec: ExperimentSpec) -> Self {
        let excluded = spec.excluded_units().map(|UnitHash(unit)| unit).collect();
        Self { spec, excluded, answers: Vec::new() }
    }

    /// Add a duel that an entry answered, which was recorded at this time, in Unix milliseconds.
    pub fn add(&mut self, answered: &OutcomeEvent, recorded_at: i64) {
        let held_out = self.spec.held_out();
        let is_held_out = |ranker: u16| held_out == Some(ranker.into());
        let counts = answered.first != answered.second
            && answered.answer != Answer::None
            && !answered.unit.is_some_and(|unit| self.excluded.contains(&unit))
            && !is_held_out(answered.first)
            && !is_held_out(answered.second);
        if counts {
            self.answers.push((*answered, recorded_at));
        }
    }

    /// The results of `ranker`, after `fold` has folded the log of the answers.
    pub fn results<'a>(&'a self, fold: &'a Fold, ranker: usize) -> SegmentResults<'a> {
        let cohorts = fold.cohorts();
        let complete_until = cohorts.complete_until();
        let (mut segments, mut waiting) = (Segments::default(), 0);
        for (answered, recorded_at) in &self.answers {
            let window_ms = cohorts.window_ms_at(answered.issued_at);
            if window_ms > 0 && recorded_at - answered.issued_at > window_ms {
                continue;
            }
            let next = segments.numbers.len() + 1;
            segments.numbers.entry(answered.segment).or_insert(next);
            if window_ms == 0 || answered.issued_at < complete_until {
                segments.count(answered);
            } else {
                // others may still come, and those that favour one ranker may take longer
                waiting += 1;
            }
        }
        SegmentResults {
            spec: &self.spec,
            fold,
            ranker,
            active: fold.roster().active(),
            waiting,
            segments,
        }
    }
}

/// The results of one ranker by segment.
#[derive(Debug)]
pub struct SegmentResults<'a> {
    spec: &'a ExperimentSpec,
    fold: &'a Fold,
    ranker: usize,
    active: &'a [usize],
    /// Answers that do not count yet, because their cohorts are not complete.
    pub waiting: u64,
    segments: Segments,
}

impl<'a> SegmentResults<'a> {
    /// Id of the ranker.
    pub fn ranker(&self) -> &'a str {
        self.id(self.ranker)
    }

    fn id(&self, ranker: usize) -> &'a str {
        self.spec.rankers.get(ranker).map_or("", |ranker| ranker.id.as_str())
    }

    /// The segments with counted answers, sorted.
    pub fn segments(&self) -> impl Iterator<Item = Option<Segment>> {
        self.segments.names.iter().copied()
    }

    /// The results in one segment against each other active ranker.
    pub fn of(&self, segment: Option<Segment>) -> impl Iterator<Item = OpponentRow> {
        let opponents = self.active.iter().copied().filter(|&other| other != self.ranker);
        let counts = opponents
            .map(move |other| (other, self.segments.of(segment, self.ranker as u16, other as u16)));
        self.rows(segment, counts)
    }

    /// The rows of [`Self::of`] with duels.
    fn with_duels(&self, segment: Option<Segment>) -> impl Iterator<Item = OpponentRow> {
        self.rows(segment, self.pairs_with_duels(segment).into_iter())
    }

    /// The active opponents with duels in one segment, and the counts of the ranker. Takes time for
    /// the pairs of the segment only: there can be many rankers and many segments.
    fn pairs_with_duels(&self, segment: Option<Segment>) -> Vec<(usize, PairCounts)> {
        let ranker = self.ranker as u16;
        let range = (segment, 0, 0)..=(segment, u16::MAX, u16::MAX);
        let pairs = self.segments.counts.range(range);
        let mut pairs: Vec<_> = pairs
            .filter_map(|(&(_, first, second), &counts)| match ranker {
                _ if ranker == first => Some((usize::from(second), counts)),
                _ if ranker == second => Some((usize::from(first), counts.reversed())),
                _ => None,
            })
            .filter(|(opponent, _)| self.active.contains(opponent))
            .collect();
        pairs.sort_by_key(|&(opponent, _)| opponent);
        pairs
    }

    fn rows(
        &self,
        segment: Option<Segment>,
        counts: impl Iterator<Item = (usize, PairCounts)>,
    ) -> impl Iterator<Item = OpponentRow> {
        let number = self.segments.numbers.get(&segment).copied().unwrap_or(1);
        let intervals = intervals_of(self.spec, number);
        counts.map(move |(opponent, counts)| {
            let pair = intervals.of(self.ranker, opponent);
            let interval = pair.interval(counts.wins as f64, counts.losses as f64);
            self.row(opponent, counts, interval)
        })
    }

    fn row(&self, opponent: usize, counts: PairCounts, (low, high): (f64, f64)) -> OpponentRow {
        let PairCounts { wins, losses, ties } = counts;
        let decided = wins + losses;
        OpponentRow {
            opponent: self.id(opponent).into(),
            duels: counts.duels(),
            wins,
            losses,
            ties,
            win_rate: (decided > 0).then(|| (1e4 * wins as f64 / decided as f64).round() / 1e4),
            low: (1e4 * low).floor() / 1e4,
            high: (1e4 * high).ceil() / 1e4,
        }
    }

    /// Duels of the ranker with active opponents in one segment.
    fn duels(&self, segment: Option<Segment>) -> u64 {
        let pairs = self.pairs_with_duels(segment);
        pairs.iter().map(|(_, pair)| pair.duels()).sum()
    }

    fn report(&self, experiment: String, position: u64) -> SegmentsReport {
        let mut names: Vec<_> = self.segments().map(|name| (self.duels(name), name)).collect();
        names.sort_by(|(a_duels, a), (b_duels, b)| b_duels.cmp(a_duels).then(a.cmp(b)));
        let (mut segments, mut rows) = (Vec::new(), 0);
        for (duels, segment) in names {
            let opponents: Vec<_> = self.with_duels(segment).collect();
            rows += opponents.len().max(1);
            if rows > ROWS_MAX {
                break;
            }
            segments.push(SegmentRow { segment, duels, opponents });
        }
        SegmentsReport {
            experiment,
            position,
            ranker: self.ranker().into(),
            segments_total: self.segments.names.len(),
            waiting: self.waiting,
            all: self.all(),
            segments,
        }
    }

    /// The rows of all segments together, of opponents with duels.
    fn all(&self) -> Vec<OpponentRow> {
        let (tracker, tally) = (self.fold.verdict(), self.fold.policy().tally());
        if !self.active.contains(&self.ranker) {
            return Vec::new();
        }
        let standing = tracker.standing(tally, self.active, self.ranker);
        let intervals = Ladder::default().intervals(tracker, tally, self.active, &standing);
        let row = |(opponent, interval): (usize, (f64, f64))| {
            let of = |segment| self.segments.of(segment, self.ranker as u16, opponent as u16);
            let counts = self.segments().map(of).fold(PairCounts::default(), PairCounts::plus);
            (counts.duels() > 0).then(|| self.row(opponent, counts, interval))
        };
        intervals.into_iter().filter_map(row).collect()
    }
}

/// Results of the first ranker of a pair, which has the lower index.
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

    fn plus(self, Self { wins, losses, ties }: Self) -> Self {
        Self { wins: self.wins + wins, losses: self.losses + losses, ties: self.ties + ties }
    }

    fn duels(self) -> u64 {
        self.wins + self.losses + self.ties
    }
}

/// The counts of an experiment by segment.
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
    fn count(&mut self, answered: &OutcomeEvent) {
        let OutcomeEvent { first, second, answer, unit, segment, .. } = *answered;
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

/// The intervals of all pairs in the segment with this number. Those of all segments hold together,
/// at all times, with the probability `1 - ERROR`, however many segments and rankers come: the
/// segments share the error as `Σ 1 / (n (n + 1)) = 1`, and the intervals of [`Sequences`] use up
/// twice its error at most.
fn intervals_of(spec: &ExperimentSpec, number: usize) -> Sequences {
    let share = ERROR / 2.0 / (number * (number + 1)) as f64;
    Sequences::new(spec.initial_rankers(), spec.rankers.len(), 1.0 - share)
}
