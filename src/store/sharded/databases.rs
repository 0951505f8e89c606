//! [`Database`] of several databases.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;

use super::set::DatabaseSet;
use crate::store::{Database, Distributed, StoreError};

/// A database that takes longer for a trivial query counts as down.
const CHECK_WITHIN: Duration = Duration::from_millis(1500);
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

    /// Also names that two databases have.
    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let damage = shard.of(shard.store.integrity().await)?;
            found
                .extend(damage.into_iter().map(|what| format!("database {}: {what}", shard.label)));
        }
        found.extend(self.doubles().await?);
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
}
