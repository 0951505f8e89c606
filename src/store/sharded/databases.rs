//! [`Database`] of several databases.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;

use super::set::DatabaseSet;
use crate::store::member::{MoveId, Presence};
use crate::store::{Database, Distributed, ExperimentId, StoreError};

/// A database that takes longer for a trivial query counts as down.
const CHECK_WITHIN: Duration = Duration::from_millis(1500);
/// A move that changes nothing for this long has stopped.
const MOVE_RUNS_WITHIN: Duration = Duration::from_secs(3);
/// Names that are compared at a time.
const NAMES_AT_A_TIME: u32 = 1000;

#[async_trait]
impl Database for DatabaseSet {
    fn kind(&self) -> &'static str {
        let first = self.shards.first().map_or("", |shard| shard.store.kind());
        match self.shards.iter().all(|shard| shard.store.kind() == first) {
            true => first,
            false => "postgres and sqlite",
        }
    }

    fn serves_one_process(&self) -> bool {
        self.shards.iter().any(|shard| shard.store.serves_one_process())
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        for shard in &self.shards {
            shard.of(shard.store.migrate().await)?;
        }
        self.join().await
    }

    async fn check(&self) -> Result<(), StoreError> {
        for shard in &self.shards {
            shard.of(shard.store.check_schema().await)?;
        }
        self.verify().await.map(drop)
    }

    async fn check_each(&self) -> Vec<(String, Result<(), StoreError>)> {
        let each = self.shards.iter().map(|shard| async move {
            let check = tokio::time::timeout(CHECK_WITHIN, shard.store.check_schema()).await;
            let checked = check.unwrap_or(Err(StoreError::Slow(CHECK_WITHIN)));
            (shard.label.to_string(), shard.of(checked))
        });
        join_all(each).await
    }

    /// The nodes are those of all databases.
    async fn distribute(&self) -> Result<Distributed, StoreError> {
        let mut all = Distributed { newly: false, nodes: 0 };
        for shard in &self.shards {
            let Distributed { newly, nodes } = shard.of(shard.store.distribute().await)?;
            all.newly |= newly;
            all.nodes += nodes;
        }
        Ok(all)
    }

    /// Also experiments that two databases have, or none, and moves that have stopped.
    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let damage = shard.of(shard.store.integrity().await)?;
            found
                .extend(damage.into_iter().map(|what| format!("database {}: {what}", shard.label)));
        }
        found.extend(self.doubles().await?);
        found.extend(self.unsettled().await?);
        Ok(found)
    }

    async fn close(&self) {
        join_all(self.shards.iter().map(|shard| shard.store.close())).await;
    }
}

impl DatabaseSet {
    /// Experiments that accept events in two databases.
    async fn doubles(&self) -> Result<Vec<String>, StoreError> {
        let mut places: BTreeMap<i64, &str> = BTreeMap::new();
        let mut found = Vec::new();
        for shard in &self.shards {
            let mut after = String::new();
            loop {
                let names = shard.of(shard.store.names(&after, NAMES_AT_A_TIME).await)?;
                let Some(last) = names.last() else { break };
                after.clone_from(last);
                for name in names {
                    let record = shard.of(shard.store.experiment(&name).await)?;
                    let Some(record) = record else { continue };
                    let heads = shard.of(shard.store.heads(&[record.id]).await)?;
                    if heads.iter().all(|head| head.frozen) {
                        continue;
                    }
                    if let Some(other) = places.insert(record.id, &shard.label) {
                        found.push(format!(
                            "experiment `{name}` is in database {other} and in database {}",
                            shard.label
                        ));
                    }
                }
            }
        }
        Ok(found)
    }

    /// Experiments that have gone from a database without being in another, and those whose move
    /// has stopped.
    async fn unsettled(&self) -> Result<Vec<String>, StoreError> {
        let mut lost: BTreeMap<ExperimentId, String> = BTreeMap::new();
        let mut moving: BTreeMap<ExperimentId, String> = BTreeMap::new();
        for shard in &self.shards {
            let mut after = ExperimentId::MIN;
            loop {
                let rows = shard.of(shard.store.not_here(after, NAMES_AT_A_TIME).await)?;
                let Some((last, ..)) = rows.last() else { break };
                after = *last;
                let ids: Vec<_> = rows.iter().map(|(id, ..)| *id).collect();
                let elsewhere = self.search(&ids).await?;
                for (id, name, presence) in rows {
                    if !elsewhere.contains_key(&id) {
                        lost.insert(id, name);
                    } else if presence != Presence::Gone {
                        moving.insert(id, name);
                    }
                }
            }
        }
        let mut found: Vec<_> =
            lost.into_values().map(|name| StoreError::Lost(name).to_string()).collect();
        // a move that runs changes something meanwhile
        let mut before = Vec::new();
        for id in moving.keys() {
            before.push(self.traces(*id).await?);
        }
        if !moving.is_empty() {
            tokio::time::sleep(MOVE_RUNS_WITHIN).await;
        }
        for ((id, name), before) in moving.into_iter().zip(before) {
            let now = self.traces(id).await?;
            let Some((to, accepts)) = now.standing() else { continue };
            if now == before {
                found.push(stopped_move(&name, to.map(|to| &*self.shards[to].label), accepts));
            }
        }
        Ok(found)
    }

    /// What each database has of an experiment.
    async fn traces(&self, id: ExperimentId) -> Result<Traces, StoreError> {
        let known = self.known().await?;
        let mut all = Vec::new();
        for shard in &self.shards {
            let located = shard.of(shard.store.located(id).await)?;
            all.push(located.map(|it| {
                let to = known.ids.iter().position(|known| Some(*known) == it.moving_to);
                Trace { presence: it.presence, of: it.move_id, to, head: it.record.head }
            }));
        }
        Ok(Traces(all))
    }
}

/// What one database has of an experiment: its move, the index of the database that it moves to,
/// and its head.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    presence: Presence,
    of: Option<MoveId>,
    to: Option<usize>,
    head: u64,
}

/// What each database has of an experiment.
#[derive(Debug, PartialEq, Eq)]
struct Traces(Vec<Option<Trace>>);

impl Traces {
    /// Where the experiment moves to, if that is known, and whether it accepts feedback. `None` if
    /// no move of it has begun.
    fn standing(&self) -> Option<(Option<usize>, bool)> {
        let with = |wanted| self.0.iter().flatten().find(move |it| it.presence == wanted);
        let (frozen, arriving) = (with(Presence::Frozen), with(Presence::Arriving));
        frozen.or(arriving)?;
        let here = with(Presence::Here);
        let to = [frozen, here].into_iter().flatten().find_map(|it| it.to);
        Some((to, here.is_some()))
    }
}

fn stopped_move(name: &str, to: Option<&str>, accepts_feedback: bool) -> String {
    let state = if accepts_feedback { "" } else { ", and it accepts no feedback" };
    let undo = format!("`rankduel move {name} --abort`");
    match to {
        Some(to) => format!(
            "the move of experiment `{name}` to database {to} has stopped{state}: run it again, or \
             undo it with {undo} if it has not arrived"
        ),
        None => format!("a stopped move of experiment `{name}` has left a copy: run {undo}"),
    }
}
