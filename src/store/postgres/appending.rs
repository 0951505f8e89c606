//! Appending to logs.
//!
//! Nearly everything that is appended is new, and an append takes it that all of it is: a few
//! entries are written and heads moved by one statement, many by a copy. When that turns out to be
//! wrong (a repeat, an archived experiment), nothing is kept of it and the append is made again
//! with a look at what the logs have.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::Arguments as _;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgArguments;
use sqlx::types::Uuid;
use sqlx::{Connection as _, PgConnection, PgPool, Postgres};

use super::super::append::{Plan, nonces_of, plan};
use super::super::copied;
use super::super::row::{EventColumns, HeadRow, LogRow, ascending, counted, log_columns, records};
use super::super::{Appended, ExperimentId, Head, LogEntry, NewEvent, Nonce, StoreError};
use super::PostgresStore;

/// Most events, and most experiments, of an append in one statement, which joins the one to the
/// other.
const EVENTS_AT_ONCE: usize = 512;
const EXPERIMENTS_AT_ONCE: usize = 16;
/// From so many entries on a copy, which takes more trips, is cheaper than a statement.
const COPY_FROM: usize = 256;
/// So many appends look first after one that ought to have: repeats seldom come alone, and what is
/// done in vain costs a line in the server's log.
const CAREFUL_FOR: u32 = 256;

/// How many of the next appends look at what there is before they write.
#[derive(Debug, Default)]
pub(super) struct Care(AtomicU32);

impl Care {
    fn is_due(&self) -> bool {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
    }

    fn take(&self) {
        self.0.store(CAREFUL_FOR, Ordering::Relaxed);
    }
}

impl PostgresStore {
    /// As [`Store::append`](crate::store::Store::append), once.
    pub(super) async fn append_to(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        let answers = self.append_untold(events, recorded_at).await?;
        // positions ascend: the newest of each experiment comes last
        let mut heads = BTreeMap::new();
        for ((experiment, _), answer) in events.iter().zip(&answers) {
            if let Appended::Recorded(position) = answer {
                heads.insert(*experiment, *position);
            }
        }
        heads.into_iter().for_each(|(experiment, head)| self.teller.tell(experiment, head));
        Ok(answers)
    }

    async fn append_untold(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        if !self.care.is_due() {
            let answers = match New::of(events) {
                Some(new) => at_once(&self.appending, events, &new, recorded_at).await,
                None => in_transaction(&self.appending, events, recorded_at, Look::Later).await,
            };
            match answers {
                Ok(Some(answers)) => return Ok(answers),
                Ok(None) => {}
                Err(error) if is_repeat(&error) => {}
                Err(error) => return Err(error),
            }
            self.care.take();
        }
        let answers = in_transaction(&self.appending, events, recorded_at, Look::First).await?;
        answers
            .ok_or_else(|| StoreError::Corrupt("an append that looked first has no answer".into()))
    }
}

/// Events that can be written by one statement, if all of them are new.
struct New {
    /// How many each experiment gets.
    added: BTreeMap<ExperimentId, i64>,
    /// Of each event, how many of its experiment are up to and with it.
    ordinals: Vec<i64>,
}

impl New {
    fn of(events: &[(ExperimentId, NewEvent)]) -> Option<Self> {
        if events.len() > EVENTS_AT_ONCE {
            return None;
        }
        let mut added = BTreeMap::new();
        let mut ordinals = Vec::with_capacity(events.len());
        let mut nonces = HashSet::with_capacity(events.len());
        for (experiment, new) in events {
            if new.superseded_by().is_some() || !nonces.insert((experiment, new.nonce)) {
                return None;
            }
            let entries = added.entry(*experiment).or_default();
            *entries += 1;
            ordinals.push(*entries);
        }
        (added.len() <= EXPERIMENTS_AT_ONCE).then_some(Self { added, ordinals })
    }
}

/// Append events that are taken to be new. `None`: not all of their experiments take any, and
/// nothing was written.
async fn at_once(
    pool: &PgPool,
    events: &[(ExperimentId, NewEvent)],
    New { added, ordinals }: &New,
    recorded_at: i64,
) -> Result<Option<Vec<Appended>>, StoreError> {
    let experiments: Vec<i64> = added.keys().copied().collect();
    let entries = events.iter().map(|(experiment, new)| (*experiment, new));
    let rows: Vec<(i64, i64)> =
        sqlx::query_as_with(APPEND, arguments(entries, ordinals.clone(), recorded_at)?)
            .bind(experiments)
            .bind(added.values().copied().collect::<Vec<i64>>())
            .fetch_all(pool)
            .await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let heads: BTreeMap<_, _> = rows.into_iter().collect();
    let position = |((experiment, _), ordinal): (&(ExperimentId, NewEvent), &i64)| {
        let head = heads.get(experiment).ok_or_else(|| lost(*experiment))?;
        u64::try_from(head - added[experiment] + ordinal)
            .map(Appended::Recorded)
            .map_err(|_| StoreError::Corrupt(format!("head of experiment {experiment} is {head}")))
    };
    events.iter().zip(ordinals).map(position).collect::<Result<_, _>>().map(Some)
}

fn lost(experiment: ExperimentId) -> StoreError {
    StoreError::Corrupt(format!("an append says nothing of experiment {experiment}"))
}

/// Whether an append looks for the nonces of its events before it writes, or leaves repeats to the
/// database to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    First,
    Later,
}

/// Append in a transaction of several statements. `None`: without a look nothing can be said, and
/// nothing was written.
async fn in_transaction(
    pool: &PgPool,
    events: &[(ExperimentId, NewEvent)],
    recorded_at: i64,
    look: Look,
) -> Result<Option<Vec<Appended>>, StoreError> {
    let mut lent = Lent(Some(pool.acquire().await?));
    let Some(connection) = lent.0.as_deref_mut() else { return Ok(None) };
    let mut transaction = connection.begin().await?;
    let rows: Vec<HeadRow> = sqlx::query_as(LOCK_HEADS)
        .bind(ascending(events.iter().map(|(experiment, _)| *experiment)))
        .fetch_all(&mut *transaction)
        .await?;
    let heads = records::<_, Head>(rows)?;
    if look == Look::Later
        && (heads.iter().any(|head| head.archived)
            || events.iter().any(|(_, new)| new.superseded_by().is_some()))
    {
        transaction.rollback().await?;
        lent.give_back();
        return Ok(None);
    }
    let known = match look {
        // after the lock: what other writers have committed is seen
        Look::First => known_nonces(&mut transaction, nonces_of(events)).await?,
        Look::Later => Vec::new(),
    };
    let Plan { entries, heads, answers } = plan(events, heads, &known);
    match entries.len() {
        0 => {}
        few if few < COPY_FROM => {
            write_entries(&mut transaction, &entries, &heads, recorded_at).await?
        }
        _ => copy_entries(&mut transaction, &entries, &heads, recorded_at).await?,
    }
    // a repeat, too, is told only what has reached every server that a commit waits for: the first
    // commit may have been cut short while it waited, and the log is flushed and sent in order
    transaction.commit().await?;
    lent.give_back();
    Ok(Some(answers))
}

/// A connection that is closed unless it is given back: a copy that was broken off leaves it out of
/// step.
struct Lent(Option<PoolConnection<Postgres>>);

impl Lent {
    fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}

/// Whether the database has an entry under one of the nonces.
fn is_repeat(error: &StoreError) -> bool {
    matches!(error, StoreError::Refused(sqlx::Error::Database(error)) if error.is_unique_violation())
}

/// Rows are locked in the order that they come out in. `no key`: nothing that only refers to an
/// experiment has to wait.
pub(super) const LOCK_HEADS: &str =
    "select id, version, head, archived_at_ms is not null as archived from experiment
     where id = any($1) order by id for no key update";

/// `offset 0` keeps the inner select as it is: one look into the index for each nonce.
const KNOWN_NONCES: &str = concat!(
    "select known.* from unnest($1::bigint[], $2::uuid[]) as given (experiment_id, nonce)
     cross join lateral (
         select ",
    log_columns!(),
    " from log where log.experiment_id = given.experiment_id and log.nonce = given.nonce offset 0
     ) as known"
);

/// The entries of [`arguments`], which take the first 14 parameters. `place` stands for the second
/// of them.
macro_rules! given_entries {
    ($place:literal) => {
        concat!(
            "unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::smallint[], $5::integer[], $6::integer[],
                 $7::boolean[], $8::smallint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
                 $13::text[])
             as entry (experiment_id, ",
            $place,
            ", nonce, kind, first_ranker, second_ranker, first_left, answer, batch, ticket, chosen_at,
                 issued_at_ms, detail)"
        )
    };
}
macro_rules! entry_columns {
    () => {
        "nonce, $14, kind, first_ranker, second_ranker, first_left, answer, batch, ticket, chosen_at, issued_at_ms, \
         detail"
    };
}

/// Lock heads in their order, write entries and move the heads, if all experiments are there and
/// take entries. A lock that had to be waited for shows the head as it is then.
const APPEND: &str = concat!(
    "with locked as materialized (
         select id, head from experiment where id = any($15) and archived_at_ms is null
         order by id for no key update
     ), open as materialized (
         select id, head from locked where (select count(*) from locked) = cardinality($15::bigint[])
     ), entries as (
         insert into log (",
    log_columns!(),
    ") select experiment_id, open.head + ordinal, ",
    entry_columns!(),
    " from ",
    given_entries!("ordinal"),
    " join open on open.id = experiment_id
     )
     update experiment set head = open.head + added.entries
     from open join unnest($15::bigint[], $16::bigint[]) as added (id, entries) on added.id = open.id
     where experiment.id = open.id
     returning experiment.id, experiment.head"
);

macro_rules! moved_heads {
    ($experiments:literal, $heads:literal) => {
        concat!(
            "with moved as (
                 update experiment set head = moved.head
                 from unnest(",
            $experiments,
            "::bigint[], ",
            $heads,
            "::bigint[]) as moved (id, head) where experiment.id = moved.id returning 1
             ) "
        )
    };
}

const MOVE_HEADS: &str = concat!(moved_heads!("$1", "$2"), "select count(*) from moved");

/// Entries and heads in one trip.
const WRITE_ENTRIES: &str = concat!(
    moved_heads!("$15", "$16"),
    "insert into log (",
    log_columns!(),
    ") select experiment_id, position, ",
    entry_columns!(),
    " from ",
    given_entries!("position")
);

const COPY_ENTRIES: &str = concat!("copy log (", log_columns!(), ") from stdin (format binary)");

/// The log entries under these nonces, in no order.
pub(super) async fn known_nonces(
    connection: &mut PgConnection,
    nonces: impl Iterator<Item = (ExperimentId, Nonce)>,
) -> Result<Vec<(ExperimentId, LogEntry)>, StoreError> {
    let (experiments, nonces): (Vec<_>, Vec<_>) =
        nonces.map(|(experiment, nonce)| (experiment, Uuid::from_u128(nonce))).unzip();
    let rows: Vec<LogRow> =
        sqlx::query_as(KNOWN_NONCES).bind(experiments).bind(nonces).fetch_all(connection).await?;
    rows.into_iter().map(|row| Ok((row.experiment_id, row.try_into()?))).collect()
}

/// Add entries and set the heads of their experiments.
pub(super) async fn write_entries(
    connection: &mut PgConnection,
    entries: &[(ExperimentId, u64, &NewEvent)],
    heads: &BTreeMap<ExperimentId, u64>,
    recorded_at: i64,
) -> Result<(), StoreError> {
    let positions = entries
        .iter()
        .map(|(_, position, _)| counted("position", *position))
        .collect::<Result<Vec<i64>, _>>()?;
    let (experiments, heads) = columns_of(heads)?;
    let entries = entries.iter().map(|(experiment, _, new)| (*experiment, *new));
    sqlx::query_with(WRITE_ENTRIES, arguments(entries, positions, recorded_at)?)
        .bind(experiments)
        .bind(heads)
        .execute(connection)
        .await?;
    Ok(())
}

/// As [`write_entries`], for many.
async fn copy_entries(
    connection: &mut PgConnection,
    entries: &[(ExperimentId, u64, &NewEvent)],
    heads: &BTreeMap<ExperimentId, u64>,
    recorded_at: i64,
) -> Result<(), StoreError> {
    let (experiments, heads) = columns_of(heads)?;
    let rows = copied::rows(entries, recorded_at)?;
    let mut copy = connection.copy_in_raw(COPY_ENTRIES).await?;
    copy.send(rows).await?;
    copy.finish().await?;
    sqlx::query(MOVE_HEADS).bind(experiments).bind(heads).execute(connection).await?;
    Ok(())
}

fn columns_of(heads: &BTreeMap<ExperimentId, u64>) -> Result<(Vec<i64>, Vec<i64>), StoreError> {
    let new_heads = heads.values().map(|head| counted("head", *head)).collect::<Result<_, _>>()?;
    Ok((heads.keys().copied().collect(), new_heads))
}

/// What the statements that write entries begin with: a list for each column, and when they are
/// recorded.
fn arguments<'a>(
    entries: impl Iterator<Item = (ExperimentId, &'a NewEvent)>,
    places: Vec<i64>,
    recorded_at: i64,
) -> Result<PgArguments, StoreError> {
    let (mut experiments, mut nonces, mut columns) = (Vec::new(), Vec::new(), Vec::new());
    for (experiment, new) in entries {
        experiments.push(experiment);
        nonces.push(Uuid::from_u128(new.nonce));
        columns.push(EventColumns::from(&new.event));
    }
    let details: Vec<Option<String>> =
        columns.iter_mut().map(|event| event.detail.take()).collect();
    fn column<T>(columns: &[EventColumns], of: impl Fn(&EventColumns) -> T) -> Vec<T> {
        columns.iter().map(of).collect()
    }
    let mut arguments = PgArguments::default();
    let add_all = || {
        arguments.add(experiments)?;
        arguments.add(places)?;
        arguments.add(nonces)?;
        arguments.add(column(&columns, |event| event.kind))?;
        arguments.add(column(&columns, |event| event.first_ranker))?;
        arguments.add(column(&columns, |event| event.second_ranker))?;
        arguments.add(column(&columns, |event| event.first_left))?;
        arguments.add(column(&columns, |event| event.answer))?;
        arguments.add(column(&columns, |event| event.batch))?;
        arguments.add(column(&columns, |event| event.ticket))?;
        arguments.add(column(&columns, |event| event.chosen_at))?;
        arguments.add(column(&columns, |event| event.issued_at_ms))?;
        arguments.add(details)?;
        arguments.add(recorded_at)
    };
    add_all().map_err(sqlx::Error::Encode)?;
    Ok(arguments)
}
