//! Batches: the open batch, duels leased from it, and results of batches that were run elsewhere.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::service::Service;
use crate::service::change::refuse_archived;
use crate::service::duels::{DuelPurpose, IssuedDuel, Issuing};
use crate::service::error::ServiceError;
use dueling_bandits::{BatchPair, Batches, Policy};
use rankduel_engine::clock::rfc3339;
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::{FieldError, FirstErrors, excerpt};
use rankduel_engine::fold::{COIN_TIES_MAX, ties_of};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::audience::Audience;
use rankduel_store::events::{ControlEvent, Event, PairResult, Status};
use rankduel_store::{Appended, NewEvent, Nonce, in_time};

/// The open batch.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Batch)]
pub struct OpenBatch {
    pub experiment: String,
    pub position: u64,
    /// From 1; `null` if no batch is open: the policy has run all its batches, or the experiment is
    /// concluded. After units were excluded, numbers can be left out.
    pub number: Option<u32>,
    /// The highest number that a batch of this experiment can get.
    pub number_max: u32,
    /// `null` if no batch is open.
    #[schema(format = DateTime)]
    pub opened_at: Option<String>,
    /// The same in Unix milliseconds.
    #[serde(skip)]
    pub opened_ms: Option<i64>,
    /// Comparisons in the batch, over all pairs. The policy adapts once all are answered.
    pub needed: u64,
    /// Comparisons answered so far.
    pub answered: u64,
    /// Duels issued by the responding server that are neither answered nor expired.
    pub in_flight: u64,
    pub pairs_total: usize,
    /// Pairs that need more answers.
    pub pairs_missing: usize,
    /// One row for each selected pair, in the same order until the batch is complete.
    pub pairs: Vec<OpenPair>,
}

/// One pair of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Pair)]
pub struct OpenPair {
    pub left: String,
    pub right: String,
    pub needed: u32,
    pub answered: u32,
    pub in_flight: u32,
}

/// Which pairs of a batch to read, in the order of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPart {
    /// Pairs before the first.
    pub offset: usize,
    /// Most pairs.
    pub limit: usize,
    /// Only pairs that need more answers.
    pub missing: bool,
}

impl BatchPart {
    /// The maximum of `limit`.
    pub const MAX: usize = 1000;
}

/// The results of one pair.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ResultRow)]
pub struct PostedResult {
    pub left: String,
    pub right: String,
    pub left_wins: u32,
    pub right_wins: u32,
    pub ties: u32,
}

/// Results of a batch that was run elsewhere, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Number of the batch.
    pub batch: u32,
    /// Number of the part; `None` if these are all results that the batch still needs.
    pub part: Option<u32>,
    pub results: Vec<PostedResult>,
}

impl Post {
    /// A post is the same for ever: no two batches of an experiment have one number.
    fn nonce(&self) -> Nonce {
        let part = Nonce::from(self.part.unwrap_or(0));
        Nonce::from(BATCH_RESULTS) << 64 | part << 32 | Nonce::from(self.batch)
    }

    fn conflict(&self, position: u64) -> ServiceError {
        let what = match self.part {
            Some(part) => format!("part {part} of batch {}", self.batch),
            None => format!("batch {}", self.batch),
        };
        ServiceError::Conflict(format!(
            "different results of {what} were posted before (log position {position}); those count"
        ))
    }
}

/// Times that a post is checked and appended while other servers append in between. Each takes a
/// few milliseconds, and the time limit of a request ends them, too.
const ATTEMPTS: usize = 500;

/// Approximate nanoseconds to check the posted results of one pair.
const PAIR_NANOSECONDS: usize = 50;
/// High half of the nonces of posted batches, where other nonces have the number of a process. No
/// process has this number.
const BATCH_RESULTS: u64 = u64::MAX;

/// The open batch. An experiment that is set running again continues the batch that was open.
pub async fn batch(
    service: &Service,
    name: &str,
    part: BatchPart,
) -> Result<OpenBatch, ServiceError> {
    let loaded = service.experiment(name).await?;
    open_batch(&loaded, part, service.now_ms())
}

/// Issue up to `count` duels of the open batch at once. Returns fewer, or none, if the batch does
/// not need that many.
///
/// `finish` turns the duels into the result, on the thread that issues them.
pub async fn lease<T: Send + 'static>(
    service: &Arc<Service>,
    name: &str,
    count: usize,
    finish: impl FnOnce(Vec<IssuedDuel>) -> T + Send + 'static,
) -> Result<T, ServiceError> {
    let loaded = service.experiment(name).await?;
    require_batches(&loaded, loaded.fold()?.run().policy())?;
    loaded.with_record(refuse_archived)?;
    match loaded.with_record(|record| record.status) {
        Status::Running => {}
        Status::Paused => return Err(ServiceError::Paused(name.into())),
        Status::Concluded => return Ok(finish(Vec::new())),
    }
    let (of, rankers) = (Arc::clone(service), loaded.spec.rankers.len());
    service.select(count, rankers, move || lease_duels(&of, &loaded, count).map(finish)).await?
}

fn lease_duels(
    service: &Service,
    loaded: &LoadedExperiment,
    count: usize,
) -> Result<Vec<IssuedDuel>, ServiceError> {
    let now = service.now_ms();
    let mut duels = Vec::new();
    for _ in 0..count {
        let (mut rng, step) = service.selection_rng();
        let chosen = loaded.choose_for_lease(&mut rng, now)?;
        if chosen.selection.batch.is_none() {
            break;
        }
        let audience = Audience::default();
        let issuing = Issuing { audience, purpose: DuelPurpose::Stock, now, step };
        duels.push(service.issue(loaded, chosen, issuing));
    }
    Ok(duels)
}

/// Results of a batch that are in the log.
#[derive(Debug, Clone, Copy)]
pub struct RecordedBatch {
    /// Whether they were not there before.
    pub is_new: bool,
    pub position: u64,
}

/// Record results of a batch that was run elsewhere. Each row has exactly the comparisons that its
/// pair still needs, and a post without a part has a row for every such pair.
///
/// Whether the batch is open and what it needs is checked at the position of the log that the
/// results get: other servers may have answered or closed it, or concluded the experiment.
pub async fn record_results(
    service: &Service,
    name: &str,
    post: Post,
) -> Result<RecordedBatch, ServiceError> {
    let post = Arc::new(post);
    for attempt in 0..ATTEMPTS {
        let loaded = service.experiment(name).await?;
        loaded.with_record(refuse_archived)?;
        require_batches(&loaded, loaded.fold()?.run().policy())?;
        // the log went on in between: from now on, the other events of this server wait
        let _alone = match attempt {
            0 | 1 => None,
            _ => Some(loaded.appending.write().await),
        };
        if attempt > 0 {
            loaded.catch_up(&*service.engine.store).await?;
            if loaded.is_broken() {
                continue;
            }
        }
        let event = match check_post(service, &loaded, &post).await {
            // it is a repeat, or the log goes on beyond what is known here
            Err(ServiceError::BatchNotOpen { .. } | ServiceError::Invalid(_)) if attempt == 0 => {
                match find_post(service, &loaded, &post).await? {
                    Some(recorded) => return Ok(recorded),
                    None => continue,
                }
            }
            checked => checked?,
        };
        return match service.engine.writer.append_alone(&loaded, event).await? {
            Appended::Recorded(position) => Ok(RecordedBatch { is_new: true, position }),
            Appended::Duplicate(position) => Ok(RecordedBatch { is_new: false, position }),
            Appended::Conflict(position) => Err(post.conflict(position)),
            Appended::TooLate(_) => continue,
            Appended::Archived => Err(ServiceError::Archived(name.into())),
            Appended::Missing => Err(ServiceError::not_found(name)),
        };
    }
    Err(EngineError::Overloaded.into())
}

/// The post as an event that follows the newest folded entry, if the batch needs it there.
async fn check_post(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    post: &Arc<Post>,
) -> Result<NewEvent, ServiceError> {
    let (read, asked) = (Arc::clone(loaded), post.batch);
    let read = move || {
        let fold = read.fold()?;
        let concluded = read.with_record(|record| record.status == Status::Concluded);
        let open = fold.run().policy().batch().filter(|_| !concluded);
        // a batch has up to 32,640 pairs
        let pairs =
            if open == Some(asked) { fold.run().policy().batch_pairs() } else { Vec::new() };
        Ok::<_, EngineError>((fold.state().position, open, pairs))
    };
    let (position, open, pairs) = service.reports.read(read).await??;
    if open != Some(asked) {
        return Err(ServiceError::BatchNotOpen { asked, open });
    }
    let nanoseconds = pairs.len().max(post.results.len()) * PAIR_NANOSECONDS;
    let (experiment, posted) = (Arc::clone(loaded), Arc::clone(post));
    let check = move || match_results(&experiment, &pairs, &posted);
    let results = service.run_by_cost(nanoseconds, check).await?.map_err(ServiceError::Invalid)?;
    let event = ControlEvent::BatchResults { batch: asked, part: post.part, results };
    let event = NewEvent::new(post.nonce(), Event::Control(event));
    Ok(NewEvent { follows: Some(position), ..event })
}

/// The post that an earlier request has recorded, if it is this one; `None` if the log has none.
async fn find_post(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    post: &Arc<Post>,
) -> Result<Option<RecordedBatch>, ServiceError> {
    let found = in_time(service.engine.store.find(loaded.id, &[post.nonce()])).await?;
    let Some(entry) = found.into_iter().next().flatten() else { return Ok(None) };
    let (position, experiment) = (entry.position, Arc::clone(loaded));
    let nanoseconds = post.results.len() * PAIR_NANOSECONDS;
    let posted = Arc::clone(post);
    let compare = move || same_results(&experiment, &entry.event, &posted.results);
    match service.run_by_cost(nanoseconds, compare).await? {
        true => Ok(Some(RecordedBatch { is_new: false, position })),
        false => Err(post.conflict(position)),
    }
}

fn open_batch(
    loaded: &LoadedExperiment,
    part: BatchPart,
    now_ms: i64,
) -> Result<OpenBatch, ServiceError> {
    let concluded = loaded.with_record(|record| record.status == Status::Concluded);
    let fold = loaded.fold()?;
    let batches = require_batches(loaded, fold.run().policy())?;
    let (number, number_max) = (batches.number().filter(|_| !concluded), batches.most());
    let progress = number.map(|_| batches.progress()).unwrap_or_default();
    let BatchPart { offset, limit, missing } = part;
    let limit = if number.is_some() { limit.min(BatchPart::MAX) } else { 0 };
    // a batch has up to 32,640 pairs: only the part is copied
    let pairs: Vec<_> = match missing {
        true => {
            let open = batches.pairs_after(0).filter(|pair| pair.answered < pair.needed);
            open.skip(offset).take(limit).collect()
        }
        false => batches.pairs_after(offset).take(limit).collect(),
    };
    let (position, opened_ms) =
        (fold.state().position, number.map(|_| fold.state().batches.opened_at));
    drop(fold);
    loaded
        .in_flight(now_ms, |in_flight| {
            let id = |ranker: usize| loaded.spec.rankers[ranker].id.clone();
            let pair = |BatchPair { duel, needed, answered, .. }: BatchPair| OpenPair {
                left: id(duel.first),
                right: id(duel.second),
                needed,
                answered,
                in_flight: in_flight.of(duel.first, duel.second),
            };
            OpenBatch {
                experiment: loaded.name.clone(),
                position,
                number,
                number_max,
                opened_at: opened_ms.map(rfc3339),
                opened_ms,
                needed: progress.needed,
                answered: progress.answered,
                in_flight: if number.is_some() { in_flight.total() } else { 0 },
                pairs_total: progress.pairs,
                pairs_missing: progress.open_pairs,
                pairs: pairs.into_iter().map(pair).collect(),
            }
        })
        .map_err(Into::into)
}

fn require_batches<'a>(
    loaded: &LoadedExperiment,
    policy: &'a dyn Policy,
) -> Result<&'a dyn Batches, ServiceError> {
    policy.batches().ok_or_else(|| ServiceError::NotInBatches(loaded.spec.policy.kind()))
}

/// The posted rows as results of the pairs of the batch, or the first errors in them.
fn match_results(
    loaded: &LoadedExperiment,
    pairs: &[BatchPair],
    post: &Post,
) -> Result<Vec<PairResult>, Vec<FieldError>> {
    if post.part.is_some() && post.results.is_empty() {
        return Err(vec![FieldError::new("/results", "a part has at least one pair")]);
    }
    let by_pair: HashMap<(usize, usize), &BatchPair> =
        pairs.iter().map(|pair| (unordered(pair.duel.first, pair.duel.second), pair)).collect();
    let mut errors = FirstErrors::default();
    let mut results = Vec::new();
    let mut seen = HashSet::new();
    for (index, row) in post.results.iter().enumerate() {
        if errors.is_full() {
            return Err(errors.into_vec());
        }
        match result_of(loaded, &by_pair, &mut seen, row) {
            Ok(result) => results.push(result),
            Err(detail) => errors.push(FieldError::new(format!("/results/{index}"), detail)),
        }
    }
    let missing = pairs.iter().filter(|pair| {
        post.part.is_none()
            && pair.answered < pair.needed
            && !seen.contains(&unordered(pair.duel.first, pair.duel.second))
    });
    errors.extend(missing.map(|pair| {
        let id = |ranker: usize| &loaded.spec.rankers[ranker].id;
        FieldError::new(
            "/results",
            format!(
                "pair `{}` and `{}` is missing; the batch needs {} comparisons of it",
                id(pair.duel.first),
                id(pair.duel.second),
                pair.needed - pair.answered
            ),
        )
    }));
    if !errors.is_empty() {
        return Err(errors.into_vec());
    }
    let ties = ties_of(&results);
    if loaded.spec.ties.constant().is_none() && ties > COIN_TIES_MAX {
        let detail = format!(
            "the results have {ties} ties, and this experiment lets a coin decide each; at most \
             {COIN_TIES_MAX} at a time: create it with ties `skip` or `half`, or with more batches"
        );
        return Err(vec![FieldError::new("/results", detail)]);
    }
    results.sort_by_key(|result| (result.first, result.second));
    Ok(results)
}

/// A posted row as the result of a pair of the batch that no row before has had, or what is wrong.
fn result_of(
    loaded: &LoadedExperiment,
    by_pair: &HashMap<(usize, usize), &BatchPair>,
    seen: &mut HashSet<(usize, usize)>,
    row: &PostedResult,
) -> Result<PairResult, String> {
    let index = |id: &str| {
        let index = loaded.spec.ranker_index(id);
        index.ok_or_else(|| format!("there is no ranker `{}`", excerpt(id)))
    };
    let (left, right) = (index(&row.left)?, index(&row.right)?);
    let names = || format!("pair `{}` and `{}`", row.left, row.right);
    let unordered = unordered(left, right);
    let pair =
        by_pair.get(&unordered).ok_or_else(|| format!("{} is not in this batch", names()))?;
    if !seen.insert(unordered) {
        return Err(format!("{} is listed twice", names()));
    }
    let total = u64::from(row.left_wins) + u64::from(row.right_wins) + u64::from(row.ties);
    let open = u64::from(pair.needed - pair.answered);
    if total != open {
        return Err(format!(
            "{} has {total} comparisons here and the batch needs {open} ({} in all, {} answered)",
            names(),
            pair.needed,
            pair.answered
        ));
    }
    Ok(oriented((pair.duel.first, pair.duel.second), left, row))
}

/// The result of a pair, whose rankers the caller may name in either order.
fn oriented((first, second): (usize, usize), left: usize, row: &PostedResult) -> PairResult {
    let (first_wins, second_wins) = match left == first {
        true => (row.left_wins, row.right_wins),
        false => (row.right_wins, row.left_wins),
    };
    let (first, second) = (first as u16, second as u16);
    PairResult { first, second, first_wins, second_wins, ties: row.ties }
}

/// Whether the posted rows are the logged results of a batch, in any order of rows and rankers.
fn same_results(loaded: &LoadedExperiment, event: &Event, posted: &[PostedResult]) -> bool {
    let Event::Control(ControlEvent::BatchResults { results, .. }) = event else { return false };
    let of_log = results.iter();
    let pair = |one: &PairResult| (usize::from(one.first), usize::from(one.second));
    let mut of_log: HashMap<_, _> =
        of_log.map(|one| (unordered(pair(one).0, pair(one).1), one)).collect();
    let mut is_logged = |row: &PostedResult| {
        let left = loaded.spec.ranker_index(&row.left)?;
        let right = loaded.spec.ranker_index(&row.right)?;
        let logged = of_log.remove(&unordered(left, right))?;
        Some(*logged == oriented(pair(logged), left, row))
    };
    results.len() == posted.len() && posted.iter().all(|row| is_logged(row) == Some(true))
}

fn unordered(i: usize, j: usize) -> (usize, usize) {
    (i.min(j), i.max(j))
}
