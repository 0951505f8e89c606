//! The results of one ranker, split by segment.

use std::cmp::Reverse;
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
/// A page of the dashboard shows the same results until the log has grown by one part in so many.
const GROWTH: u64 = 10;
/// The longest time that a page of the dashboard waits for new results.
const PAGE_WAIT: Duration = Duration::from_millis(500);
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
    /// Lower end of the interval for the probability that the ranker wins a duel without a tie.
    /// The intervals of all segments and pairs hold together with a probability of 95 %, however
    /// often you look; those in `all` are the intervals of the verdict.
    pub low: f64,
    pub high: f64,
}

/// The results by segment of the ranker with this index, or else of the winner of a concluded
/// experiment, or else of the leader, at the current log position. Folds the log anew, unless
/// somebody has asked for the same lately. If that takes long on a busy machine, the last results
/// of the ranker are returned.
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
    // in a task of its own: the log is folded to the end, even if the caller goes
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
    let start = (fold, SegmentAnswers::new(loaded.spec.clone()));
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

/// Held while the results of an experiment are computed for a page of the dashboard.
#[derive(Debug, Default)]
struct PageTurn(Arc<tokio::sync::Mutex<()>>);

/// The results of a ranker for a page of the dashboard, which updates itself all the time: those of
/// a log that was at most a tenth shorter. If they take long, the last ones, or `None` without any.
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
    let turn = loaded.extensions().get::<PageTurn>();
    if let Ok(turn) = Arc::clone(&turn.0).try_lock_owned() {
        let (service, loaded) = (Arc::clone(service), Arc::clone(loaded));
        let computed = tokio::spawn(async move {
            let computed = segments(&service, &loaded, Some(ranker)).await;
            drop(turn);
            computed
        });
        if let Ok(Ok(computed)) = tokio::time::timeout(PAGE_WAIT, computed).await {
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
    /// Start without answers.
    pub fn new(spec: ExperimentSpec) -> Self {
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
        let (spec, numbers, counts) = (&self.spec, HashMap::new(), BTreeMap::new());
        let mut results = SegmentResults { spec, fold, ranker, waiting: 0, numbers, counts };
        // the first answer of each unit counts, as for the verdict
        let mut units = HashSet::new();
        for (answered, recorded_at) in &self.answers {
            let window_ms = cohorts.window_ms_at(answered.issued_at);
            if window_ms > 0 && recorded_at - answered.issued_at > window_ms {
                continue;
            }
            let next = results.numbers.len() + 1;
            results.numbers.entry(answered.segment).or_insert(next);
            if window_ms > 0 && answered.issued_at >= complete_until {
                // others may still come, and those that favour one ranker may take longer
                results.waiting += 1;
            } else if answered.unit.is_none_or(|unit| units.insert(unit)) {
                results.count(answered);
            }
        }
        results
    }
}

/// The results of one ranker by segment.
#[derive(Debug)]
pub struct SegmentResults<'a> {
    spec: &'a ExperimentSpec,
    fold: &'a Fold,
    ranker: usize,
    /// Answers that do not count yet, because their cohorts are not complete.
    pub waiting: u64,
    /// The segments of the answers so far, numbered from 1 in the order of the log. Answers that
    /// wait are included, so that the number of a segment never changes while the log grows.
    numbers: HashMap<Option<Segment>, usize>,
    /// The segments with counted answers of any ranker, each with the results of this ranker by
    /// active opponent.
    counts: BTreeMap<Option<Segment>, BTreeMap<usize, PairCounts>>,
}

impl<'a> SegmentResults<'a> {
    fn count(&mut self, answered: &OutcomeEvent) {
        let of_segment = self.counts.entry(answered.segment).or_default();
        let (first, second) = (usize::from(answered.first), usize::from(answered.second));
        let (opponent, win) = match self.ranker {
            ranker if ranker == first => (second, Answer::First),
            ranker if ranker == second => (first, Answer::Second),
            _ => return,
        };
        if self.fold.roster().is_active(opponent) {
            let counts = of_segment.entry(opponent).or_default();
            match answered.answer {
                Answer::Tie => counts.ties += 1,
                answer if answer == win => counts.wins += 1,
                _ => counts.losses += 1,
            }
        }
    }

    pub fn ranker(&self) -> &'a str {
        self.id(self.ranker)
    }

    fn id(&self, ranker: usize) -> &'a str {
        self.spec.rankers.get(ranker).map_or("", |ranker| ranker.id.as_str())
    }

    /// The segments with counted answers, sorted.
    pub fn segments(&self) -> impl Iterator<Item = Option<Segment>> {
        self.counts.keys().copied()
    }

    /// The results in one segment against each other active ranker.
    pub fn of(&self, segment: Option<Segment>) -> impl Iterator<Item = OpponentRow> {
        let active = self.fold.roster().active().iter().copied();
        let counts = active.filter(|&other| other != self.ranker).map(move |other| {
            let counts = self.counts.get(&segment).and_then(|counts| counts.get(&other));
            (other, counts.copied().unwrap_or_default())
        });
        self.rows(segment, counts)
    }

    fn rows(
        &self,
        segment: Option<Segment>,
        counts: impl Iterator<Item = (usize, PairCounts)>,
    ) -> impl Iterator<Item = OpponentRow> {
        let number = self.numbers.get(&segment).copied().unwrap_or(1);
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

    fn report(&self, experiment: String, position: u64) -> SegmentsReport {
        let duels = |counts: &BTreeMap<_, PairCounts>| counts.values().map(PairCounts::duels).sum();
        let mut all: Vec<(u64, _)> =
            self.counts.iter().map(|segment| (duels(segment.1), segment)).collect();
        // names in order within equal numbers
        all.sort_by_key(|&(duels, _)| Reverse(duels));
        let (mut segments, mut rows) = (Vec::new(), 0);
        for (duels, (&segment, counts)) in all {
            rows += counts.len().max(1);
            if rows > ROWS_MAX {
                break;
            }
            let counts = counts.iter().map(|(&opponent, &counts)| (opponent, counts));
            let opponents = self.rows(segment, counts).collect();
            segments.push(SegmentRow { segment, duels, opponents });
        }
        SegmentsReport {
            experiment,
            position,
            ranker: self.ranker().into(),
            segments_total: self.counts.len(),
            waiting: self.waiting,
            all: self.all(),
            segments,
        }
    }

    /// The rows of all segments together, of opponents with duels.
    fn all(&self) -> Vec<OpponentRow> {
        let (tracker, tally) = (self.fold.verdict(), self.fold.policy().tally());
        let roster = self.fold.roster();
        if !roster.is_active(self.ranker) {
            return Vec::new();
        }
        let standing = tracker.standing(tally, roster.active(), self.ranker);
        let intervals = Ladder::default().intervals(tracker, tally, roster.active(), &standing);
        let row = |(opponent, interval): (usize, (f64, f64))| {
            let of = self.counts.values().filter_map(|segment| segment.get(&opponent));
            let counts = of.copied().reduce(PairCounts::plus)?;
            Some(self.row(opponent, counts, interval))
        };
        intervals.into_iter().filter_map(row).collect()
    }
}

/// Results of the ranker against one opponent.
#[derive(Debug, Clone, Copy, Default)]
struct PairCounts {
    wins: u64,
    losses: u64,
    ties: u64,
}

impl PairCounts {
    fn plus(self, Self { wins, losses, ties }: Self) -> Self {
        Self { wins: self.wins + wins, losses: self.losses + losses, ties: self.ties + ties }
    }

    fn duels(&self) -> u64 {
        self.wins + self.losses + self.ties
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
