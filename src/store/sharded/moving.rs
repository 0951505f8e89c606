//! Moving an experiment from one database to another while it is served.
//!
//! | step | old database | new database | accepts events |
//! | --- | --- | --- | --- |
//! | `begin_move`, `expect` | here | arriving | old |
//! | copy log and snapshots | here | arriving | old |
//! | `freeze`, copy the rest | frozen | arriving | none |
//! | `arrive` | frozen | here | new |
//! | `leave`, `clear` | gone | here | new |
//!
//! Each step is one transaction in one database, and changes a row only if the row is in the state
//! before the step and carries the id of this move. A mover that was stopped leaves one of these
//! states, and another one goes on from there. `arrive` decides: before it the move can be undone,
//! after it only finished. Undoing a frozen move first makes `arrive` impossible (`turn_away`), and
//! only then lets the old database accept events again (`thaw`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::set::{DatabaseSet, Shard};
use crate::entropy;
use crate::store::member::{DatabaseId, Located, MoveId, Presence};
use crate::store::{
    AuditAuthor, AuditNote, ExperimentId, ExperimentLog as _, Snapshot, StoreError,
};

/// Entries that are copied at a time.
const CHUNK: u32 = 10_000;
/// The experiment is frozen once no more entries than these are left to copy.
const LEFT_AT_FREEZE: usize = 500;
/// Rounds of copying before the experiment is frozen in any case.
const ROUNDS: usize = 10_000;

/// Why an experiment was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The move is not possible, for a reason that the caller reads.
    #[error("{0}")]
    Refused(String),
    /// A database failed. The move can be run again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a move did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The old database; `None` if the experiment was in the new one already.
    pub from: Option<Arc<str>>,
    /// The new database.
    pub to: Arc<str>,
    /// Log entries that this run copied.
    pub entries: u64,
    /// For how long no database accepted events, if this run switched.
    pub pause: Option<Duration>,
}

/// An experiment in one database.
struct Found<'s> {
    place: usize,
    shard: &'s Shard,
    located: Located,
}

fn refused<T>(why: String) -> Result<T, MoveError> {
    Err(MoveError::Refused(why))
}

/// Another command works on the same experiment.
fn interfered<T>(name: &str) -> Result<T, MoveError> {
    refused(format!(
        "another command is moving `{name}` or undoing its move; wait for it, or run this again"
    ))
}

impl DatabaseSet {
    /// Move an experiment to the database at this index. A move that was stopped goes on.
    pub async fn move_experiment(
        &self,
        name: &str,
        to: usize,
        by: &AuditAuthor,
        now_ms: impl Fn() -> i64,
    ) -> Result<Moved, MoveError> {
        let found = self.locate(name).await?;
        let id = found[0].located.record.id;
        let new = &self.shards[to];
        let is_at = |place, presence| {
            found.iter().find(|it| it.place == place && it.located.presence == presence)
        };
        let frozen = found.iter().find(|it| it.located.presence == Presence::Frozen);
        let done = |from: Option<&Shard>, entries, pause| Moved {
            from: from.map(|shard| Arc::clone(&shard.label)),
            to: Arc::clone(&new.label),
            entries,
            pause,
        };
        if is_at(to, Presence::Here).is_some() {
            // a mover may have been stopped after it arrived
            if let Some(frozen) = frozen {
                self.leave(frozen, id).await?;
            }
            for left in found.iter().filter(|it| it.located.presence == Presence::Gone) {
                left.shard.of(left.shard.store.clear(id).await)?;
            }
            self.remember(id, to);
            return Ok(done(frozen.map(|it| it.shard), 0, None));
        }
        let here = found.iter().find(|it| it.located.presence == Presence::Here);
        let Some(old) = here.or(frozen) else {
            return refused(format!("no database has experiment `{name}`"));
        };
        let of = self.begin(name, old, to).await?;
        let mut copy = Copy { name, id, of, old: old.shard, new, head: 0, entries: 0 };
        copy.prepare(found.iter().find(|it| it.place == to), old).await?;
        let mut copied = BTreeSet::new();
        for _ in 0..ROUNDS {
            if copy.entries(CHUNK).await? <= LEFT_AT_FREEZE {
                break;
            }
        }
        copy.snapshots(&mut copied).await?;
        let frozen_at = Instant::now();
        if !old.shard.of(old.shard.store.freeze(id, &of).await)? {
            return interfered(name);
        }
        while copy.entries(CHUNK).await? > 0 {}
        copy.snapshots(&mut copied).await?;
        let newest = old.shard.of(old.shard.store.located(id).await)?;
        let Some(Located { record, .. }) = newest else { return interfered(name) };
        let note = AuditNote::of_experiment(by.clone(), "experiment-moved", name, now_ms())
            .changed(
                Some(json!({"database": old.shard.store.place()})),
                Some(json!({"database": new.store.place(), "log_entries": record.head})),
            );
        if !new.of(new.store.arrive(&record, &of, &note).await)? {
            return interfered(name);
        }
        let pause = frozen_at.elapsed();
        self.remember(id, to);
        old.shard.of(old.shard.store.leave(id, &of).await)?;
        old.shard.of(old.shard.store.clear(id).await)?;
        Ok(done(Some(old.shard), copy.entries, Some(pause)))
    }

    /// Undo a move that has not arrived. Returns whether there was one.
    pub async fn abort_move(&self, name: &str) -> Result<bool, MoveError> {
        let found = self.locate(name).await?;
        let id = found[0].located.record.id;
        let is_moving = |it: &&Found<'_>| {
            matches!(it.located.presence, Presence::Here | Presence::Frozen)
                && it.located.moving_to.is_some()
        };
        let old = found.iter().find(is_moving);
        let Some((old, of)) = old.and_then(|old| Some((old, old.located.move_id?))) else {
            // a copy may be left of a move that was undone while its new database did not answer
            return self.turn_all_away(&found, id).await;
        };
        if old.located.presence == Presence::Here {
            // it cannot be frozen afterwards, so it cannot arrive
            if !old.shard.of(old.shard.store.stay(id, &of).await)? {
                return interfered(name);
            }
            self.turn_all_away(&found, id).await?;
            return Ok(true);
        }
        let to = self.index_of(&old.located.moving_to.unwrap_or_default()).await?;
        let Some(to) = to else { return refused(format!("`{name}` moves to an unknown database")) };
        let new = &self.shards[to];
        if new.of(new.store.located(id).await)?.is_some_and(|it| it.presence == Presence::Here) {
            return refused(format!(
                "`{name}` has arrived in database {} and accepts feedback there: run the move \
                 again to finish it",
                new.label
            ));
        }
        // without a row there, it could still be made
        new.of(new.store.expect(&old.located.record, &of).await)?;
        new.of(new.store.turn_away(id, &of).await)?;
        let away = new.of(new.store.located(id).await)?;
        let is_away = |it: &Located| it.presence == Presence::Gone && it.move_id == Some(of);
        if !away.as_ref().is_some_and(is_away)
            || !old.shard.of(old.shard.store.thaw(id, &of).await)?
        {
            return interfered(name);
        }
        new.of(new.store.clear(id).await)?;
        Ok(true)
    }

    /// Give up every copy that arrives. Returns whether there was one.
    async fn turn_all_away(
        &self,
        found: &[Found<'_>],
        id: ExperimentId,
    ) -> Result<bool, MoveError> {
        let mut any = false;
        for Found { shard, located, .. } in found {
            if let (Presence::Arriving, Some(of)) = (located.presence, located.move_id) {
                any |= shard.of(shard.store.turn_away(id, &of).await)?;
                shard.of(shard.store.clear(id).await)?;
            }
        }
        Ok(any)
    }

    /// The experiment in every database that has anything of it; in one at least.
    async fn locate(&self, name: &str) -> Result<Vec<Found<'_>>, MoveError> {
        self.verify().await?;
        let Some(record) = self.experiment(name).await? else {
            return refused(format!("there is no experiment `{name}`"));
        };
        let mut found = Vec::new();
        for (place, shard) in self.shards.iter().enumerate() {
            if let Some(located) = shard.of(shard.store.located(record.id).await)? {
                found.push(Found { place, shard, located });
            }
        }
        match found.is_empty() {
            true => interfered(name),
            false => Ok(found),
        }
    }

    /// Begin the move, or go on with the one that was begun.
    async fn begin(&self, name: &str, old: &Found<'_>, to: usize) -> Result<MoveId, MoveError> {
        let known = self.known().await?;
        let to_id = known.ids[to];
        match (old.located.move_id, old.located.moving_to) {
            (Some(of), Some(moving_to)) if moving_to == to_id => Ok(of),
            (Some(_), moving_to) => {
                let moving_to = self.index_of(&moving_to.unwrap_or_default()).await?;
                let label = moving_to.map_or("?", |index| &self.shards[index].label);
                refused(format!(
                    "`{name}` already moves to database {label}: run that move again, or undo it \
                     with --abort"
                ))
            }
            (None, _) => {
                let of: MoveId = entropy::bytes().map_err(|error| {
                    MoveError::Refused(format!("the system provides no randomness: {error}"))
                })?;
                let id = old.located.record.id;
                match old.shard.of(old.shard.store.begin_move(id, &of, &to_id).await)? {
                    true => Ok(of),
                    false => interfered(name),
                }
            }
        }
    }

    async fn index_of(&self, database: &DatabaseId) -> Result<Option<usize>, StoreError> {
        Ok(self.known().await?.ids.iter().position(|id| id == database))
    }

    /// The old database of an experiment that has arrived.
    async fn leave(&self, old: &Found<'_>, id: ExperimentId) -> Result<(), MoveError> {
        if let Some(of) = old.located.move_id {
            old.shard.of(old.shard.store.leave(id, &of).await)?;
            old.shard.of(old.shard.store.clear(id).await)?;
        }
        Ok(())
    }
}

/// A copy in progress.
struct Copy<'s> {
    name: &'s str,
    id: ExperimentId,
    of: MoveId,
    old: &'s Shard,
    new: &'s Shard,
    /// Position of the last entry that was copied.
    head: u64,
    /// Entries that this run copied.
    entries: u64,
}

impl Copy<'_> {
    /// Make the row that the log is copied to, or find the one of an earlier run.
    async fn prepare(
        &mut self,
        left: Option<&Found<'_>>,
        old: &Found<'_>,
    ) -> Result<(), MoveError> {
        let (id, new) = (self.id, self.new);
        if let Some(Found { located, .. }) = left {
            match (located.presence, located.move_id) {
                (Presence::Arriving, Some(of)) if of == self.of => {
                    self.head = located.record.head;
                    return Ok(());
                }
                // of a move that was undone
                (Presence::Arriving, Some(other)) => {
                    new.of(new.store.turn_away(id, &other).await)?;
                }
                (Presence::Gone, Some(of)) if of == self.of => {
                    return refused(format!(
                        "the move of `{}` is being undone: finish that with --abort",
                        self.name
                    ));
                }
                _ => {}
            }
            new.of(new.store.clear(id).await)?;
        }
        if !new.of(new.store.expect(&old.located.record, &self.of).await)? {
            return interfered(self.name);
        }
        self.head = old.located.record.pruned_to;
        Ok(())
    }

    /// Copy the next entries, at most `limit`. Returns how many there were.
    async fn entries(&mut self, limit: u32) -> Result<usize, MoveError> {
        let entries = self.old.of(self.old.store.read(self.id, self.head, limit).await)?;
        let Some(last) = entries.last() else { return Ok(0) };
        let copied = self.new.store.copy_entries(self.id, &self.of, self.head, &entries).await;
        if !self.new.of(copied)? {
            return interfered(self.name);
        }
        self.head = last.position;
        self.entries += entries.len() as u64;
        Ok(entries.len())
    }

    /// Copy the snapshots of what was copied of the log, except those in `copied`.
    async fn snapshots(&self, copied: &mut BTreeSet<(u32, u64)>) -> Result<(), MoveError> {
        let snapshots: Vec<Snapshot> = self.old.of(self.old.store.snapshots(self.id).await)?;
        for snapshot in snapshots {
            if snapshot.position <= self.head && copied.insert((snapshot.format, snapshot.position))
            {
                self.new.of(self.new.store.copy_snapshot(&snapshot).await)?;
            }
        }
        Ok(())
    }
}
