//! Strategy of appends.
//!
//! Nearly all appended events are new, and an append is optimistic: it assumes that all of its
//! events are. One statement writes some entries and moves the heads; a copy writes many. If the
//! assumption is wrong (a repeat, an archived experiment), nothing is kept, and the append runs
//! again with a check against the logs.
//!
//! A plain database appends to several experiments in one transaction: for 8 experiments, that
//! costs a third to a sixth of one call for each. A distributed one has them on different nodes,
//! so each has a transaction of its own.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use futures_util::{StreamExt as _, stream};
use sqlx::postgres::PgArguments;
use sqlx::{Arguments as _, Encode, Postgres, Type};

use super::backend::{known_entries, lock_heads};
use super::lease::Pool;
use super::statements::{APPEND, APPEND_TO_SEVERAL, MOVE_HEAD, MOVE_HEADS};
use super::store::{Layout, PostgresStore};
use super::transaction::PgTransaction;
use crate::append_plan::{nonces_of, plan};
use crate::sql::backend::{Backend as _, Transaction as _};
use crate::sql::log_row::LogRow;
use crate::sql::numbers::to_column;
use crate::sql::rows::ascending;
use crate::{Appended, ExperimentId, NewEvent, StoreError};

/// Most events, and most experiments, of an append in one statement, which joins the one to the
/// other.
const ONE_STATEMENT_EVENTS: usize = 512;
const ONE_STATEMENT_EXPERIMENTS: usize = 16;

/// Appends that check for repeats after one that met a repeat. Repeats seldom come alone, and a
/// failed optimistic append costs a line in the server's log.
const CHECKED_APPENDS: u32 = 256;

/// Transactions of one append at the same time, in a distributed database.
const AT_ONCE: usize = 8;

impl PostgresStore {
    /// Append, and notify other processes.
    pub(super) async fn append_in_units(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        let one = events.iter().all(|(experiment, _)| *experiment == events[0].0);
        if one || self.layout().await? == Layout::Whole {
            return self.append_unit_of_events(events, recorded_at).await;
        }
        // the place of each experiment's events among all
        let mut places: BTreeMap<ExperimentId, Vec<usize>> = BTreeMap::new();
        for (place, (experiment, _)) in events.iter().enumerate() {
            places.entry(*experiment).or_default().push(place);
        }
        let appends = places.into_values().map(async |places| {
            let own: Vec<_> = places.iter().map(|place| events[*place].clone()).collect();
            let appended = self.attempt(|| self.append_unit_of_events(&own, recorded_at)).await?;
            Ok::<_, StoreError>(places.into_iter().zip(appended))
        });
        let appended: Vec<Result<_, _>> =
            stream::iter(appends).buffer_unordered(AT_ONCE).collect().await;
        let mut results = vec![Appended::Missing; events.len()];
        for unit in appended {
            unit?.for_each(|(place, result)| results[place] = result);
        }
        Ok(results)
    }

    /// Append the events of one unit, and notify other processes.
    async fn append_unit_of_events(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        let results = self.append_quietly(events, recorded_at).await.inspect_err(|error| {
            // the database may have been distributed meanwhile
            if is_unsupported(error) {
                self.forget_layout();
            }
        })?;
        // positions ascend: the last one of each experiment is its head
        let mut heads = BTreeMap::new();
        for ((experiment, _), result) in events.iter().zip(&results) {
            if let Appended::Recorded(position) = result {
                heads.insert(*experiment, *position);
            }
        }
        heads.into_iter().for_each(|(experiment, head)| self.announce(experiment, head));
        Ok(results)
    }

    async fn append_quietly(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        let checked =
            self.checked_appends
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if checked.is_err() {
            let results = match OneStatement::of(events) {
                Some(one) => append_at_once(&self.appending, events, &one, recorded_at).await,
                None => self.in_transaction(events, recorded_at, Check::Skip).await,
            };
            match results {
                Ok(Some(results)) => return Ok(results),
                Ok(None) => {}
                Err(error) if is_repeat(&error) => {}
                Err(error) => return Err(error),
            }
            self.checked_appends.store(CHECKED_APPENDS, Ordering::Relaxed);
        }
        let results = self.in_transaction(events, recorded_at, Check::First).await?;
        results.ok_or_else(|| StoreError::Corrupt("a checked append has no result".into()))
    }

    /// Append in a transaction of several statements. `None`: the results need a check, and nothing
    /// was written.
    async fn in_transaction(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
        check: Check,
    ) -> Result<Option<Vec<Appended>>, StoreError> {
        let mut transaction = PgTransaction::begin(&self.appending).await?;
        let ids = ascending(events.iter().map(|(experiment, _)| *experiment));
        let heads = lock_heads(&mut transaction, &ids).await?;
        if check == Check::Skip
            && (heads.iter().any(|head| head.archived)
                || events.iter().any(|(_, new)| new.is_conditional()))
        {
            transaction.end("ROLLBACK").await?;
            return Ok(None);
        }
        let known = match check {
            // after taking the locks, so that commits of other writers are visible
            Check::First => known_entries(&mut transaction, nonces_of(events)).await?,
            Check::Skip => Vec::new(),
        };
        let plan = plan(events, heads, &known);
        if !plan.entries.is_empty() {
            transaction.copy_rows(&plan.rows(recorded_at)?).await?;
            move_heads(&mut transaction, &plan.heads).await?;
        }
        // A repeat, too, is only answered once it has reached every server that a commit waits for:
        // the first commit may have been cut short while it waited. The log is flushed and sent in
        // order.
        transaction.commit().await?;
        Ok(Some(plan.results))
    }
}

/// Events that one statement can append, if all of them are new.
struct OneStatement {
    /// The number of events of each experiment.
    added: BTreeMap<ExperimentId, i64>,
    /// For each event, its rank among the events of its experiment, from 1.
    ordinals: Vec<i64>,
}

impl OneStatement {
    fn of(events: &[(ExperimentId, NewEvent)]) -> Option<Self> {
        if events.len() > ONE_STATEMENT_EVENTS {
            return None;
        }
        let mut added = BTreeMap::new();
        let mut ordinals = Vec::with_capacity(events.len());
        let mut nonces = HashSet::with_capacity(events.len());
        for (experiment, new) in events {
            if new.is_conditional() || !nonces.insert((experiment, new.nonce)) {
                return None;
            }
            let entries = added.entry(*experiment).or_default();
            *entries += 1;
            ordinals.push(*entries);
        }
        (added.len() <= ONE_STATEMENT_EXPERIMENTS).then_some(Self { added, ordinals })
    }
}

/// Append events that are assumed to be new. `None`: one of their experiments does not exist or
/// is archived, and nothing was written.
async fn append_at_once(
    pool: &Pool,
    events: &[(ExperimentId, NewEvent)],
    OneStatement { added, ordinals }: &OneStatement,
    recorded_at: i64,
) -> Result<Option<Vec<Appended>>, StoreError> {
    let row = |((experiment, new), ordinal): (&(ExperimentId, NewEvent), &i64)| {
        LogRow::at(*experiment, *ordinal, new.nonce, recorded_at, &new.event)
    };
    let rows: Vec<_> = events.iter().zip(ordinals).map(row).collect();
    let mut only = added.keys();
    let query = |proof| {
        let mut arguments = PgArguments::default();
        let statement = match (only.next(), only.next()) {
            (Some(&experiment), None) => {
                bind(&mut arguments, experiment)?;
                &APPEND
            }
            _ => {
                let of_rows: Vec<i64> = rows.iter().map(|row| row.experiment_id).collect();
                bind(&mut arguments, added.keys().copied().collect::<Vec<i64>>())?;
                bind(&mut arguments, added.values().copied().collect::<Vec<i64>>())?;
                bind(&mut arguments, of_rows)?;
                &APPEND_TO_SEVERAL
            }
        };
        LogRow::bind_arrays(&rows, &mut arguments).map_err(sqlx::Error::Encode)?;
        bind(&mut arguments, proof)?;
        Ok::<_, StoreError>(sqlx::query_with(statement.sql(), arguments))
    };
    let heads = pool
        .proven(query, |proof, answer: Vec<(Option<String>,)>| {
            let lines = answer.into_iter().filter_map(|(line,)| line);
            lines.map(|line| new_head(&line, proof)).collect::<Option<BTreeMap<_, _>>>()
        })
        .await?;
    if heads.is_empty() {
        return Ok(None);
    }
    let position = |((experiment, _), ordinal): (&(ExperimentId, NewEvent), &i64)| {
        let head = heads.get(experiment).ok_or_else(|| {
            StoreError::Corrupt(format!("an append returned no head of experiment {experiment}"))
        })?;
        u64::try_from(head - added[experiment] + ordinal)
            .map(Appended::Recorded)
            .map_err(|_| StoreError::Corrupt(format!("head of experiment {experiment} is {head}")))
    };
    events.iter().zip(ordinals).map(position).collect::<Result<_, _>>().map(Some)
}

/// The experiment and its new head in a line of the answer to an append, which ends with the proof
/// of the call. `None`: the line is the answer to another one.
fn new_head(line: &str, proof: i64) -> Option<(ExperimentId, i64)> {
    let mut numbers = line.split(' ').map(str::parse);
    let (Some(Ok(experiment)), Some(Ok(head)), Some(Ok(proved)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        return None;
    };
    (proved == proof).then_some((experiment, head))
}

fn bind<'v>(
    arguments: &mut PgArguments,
    value: impl Encode<'v, Postgres> + Type<Postgres>,
) -> Result<(), StoreError> {
    Ok(arguments.add(value).map_err(sqlx::Error::Encode)?)
}

/// Move the heads of experiments, whose rows are locked.
async fn move_heads(
    transaction: &mut PgTransaction,
    heads: &BTreeMap<ExperimentId, u64>,
) -> Result<(), StoreError> {
    let ids: Vec<i64> = heads.keys().copied().collect();
    let heads: Result<Vec<i64>, _> = heads.values().map(|head| to_column("head", *head)).collect();
    let query = match (&ids[..], &heads?[..]) {
        ([id], [head]) => sqlx::query(MOVE_HEAD.sql()).bind(id).bind(head),
        (ids, heads) => sqlx::query(MOVE_HEADS.sql()).bind(ids).bind(heads),
    };
    transaction.execute(query).await.map(drop)
}

/// Whether an append looks up the nonces of its events before it writes, or lets the database's
/// unique constraint find repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    First,
    Skip,
}

/// Whether the log already has an entry under one of the nonces.
fn is_repeat(error: &StoreError) -> bool {
    let StoreError::Refused(sqlx::Error::Database(error)) = error else { return false };
    // A distributed PostgreSQL reports what a shard refuses under the code of an internal error.
    error.is_unique_violation()
        || (error.code().as_deref() == Some("XX000")
            && error.message().contains("duplicate key value violates unique constraint"))
}

/// Whether a distributed database refused a statement that reaches several nodes.
fn is_unsupported(error: &StoreError) -> bool {
    const FEATURE_NOT_SUPPORTED: &str = "0A000";
    let StoreError::Refused(sqlx::Error::Database(error)) = error else { return false };
    error.code().as_deref() == Some(FEATURE_NOT_SUPPORTED)
}
