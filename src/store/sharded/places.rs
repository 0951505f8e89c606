//! Where experiments are.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};

use super::set::DatabaseSet;
use crate::store::member::Presence;
use crate::store::{ExperimentId, ExperimentRecord, Head, StoreError};

/// An experiment has gone, and is in none of the databases.
pub(super) const UNKNOWN_DATABASE: &str = "an experiment was moved to a database that this process \
     does not know: restart it with all of them";
/// The databases are asked at slightly different times. An experiment that switches in between is
/// seen in none of them, and found by the next search.
const SEARCHES: u32 = 4;
/// Pause between two searches: longer than two answers are apart.
const SEARCH_AGAIN_AFTER: Duration = Duration::from_millis(20);

impl DatabaseSet {
    /// The database in which the experiment was last found.
    pub(super) fn remembered(&self, id: ExperimentId) -> Option<usize> {
        self.places.read().unwrap_or_else(PoisonError::into_inner).get(&id).copied()
    }

    pub(super) fn remember(&self, id: ExperimentId, place: usize) {
        if self.remembered(id) != Some(place) {
            self.places.write().unwrap_or_else(PoisonError::into_inner).insert(id, place);
        }
    }

    /// The database of an experiment, if one has it.
    pub(super) async fn place(&self, id: ExperimentId) -> Result<Option<usize>, StoreError> {
        match self.remembered(id) {
            Some(place) => Ok(Some(place)),
            None => Ok(self.search(&[id]).await?.get(&id).map(|(place, _)| *place)),
        }
    }

    /// If another database than `place` has the experiment by now, that one.
    pub(super) async fn moved_from(
        &self,
        place: usize,
        id: ExperimentId,
    ) -> Result<Option<usize>, StoreError> {
        let shard = &self.shards[place];
        let heads = shard.of(shard.store.heads(&[id]).await)?;
        if heads.iter().any(|head| !head.frozen) {
            return Ok(None);
        }
        let found = self.search(&[id]).await?.get(&id).map(|(now, _)| *now);
        Ok(found.filter(|now| *now != place))
    }

    /// Ask every database for these experiments, and remember where they are: where they accept
    /// events, if anywhere. An experiment that is nowhere is left out, unless a database does not
    /// answer.
    pub(super) async fn search(
        &self,
        ids: &[ExperimentId],
    ) -> Result<HashMap<ExperimentId, (usize, Head)>, StoreError> {
        let mut found = self.search_once(ids).await?;
        for _ in 1..SEARCHES {
            let missing: Vec<_> =
                ids.iter().filter(|id| !found.contains_key(id)).copied().collect();
            if missing.is_empty() {
                break;
            }
            tokio::time::sleep(SEARCH_AGAIN_AFTER).await;
            found.extend(self.search_once(&missing).await?);
        }
        Ok(found)
    }

    async fn search_once(
        &self,
        ids: &[ExperimentId],
    ) -> Result<HashMap<ExperimentId, (usize, Head)>, StoreError> {
        let each = self.shards.iter().map(|shard| async move {
            let heads = shard.store.heads(ids).await;
            shard.of(heads)
        });
        let mut found: HashMap<ExperimentId, (usize, Head)> = HashMap::new();
        let mut failed = None;
        for (place, heads) in join_all(each).await.into_iter().enumerate() {
            match heads {
                Ok(heads) => {
                    for head in heads {
                        let best = found.entry(head.experiment).or_insert((place, head));
                        if best.1.frozen && !head.frozen {
                            *best = (place, head);
                        }
                    }
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        for (id, (place, _)) in &found {
            self.remember(*id, *place);
        }
        let is_certain = |id| found.get(id).is_some_and(|(_, head)| !head.frozen);
        match failed {
            Some(error) if !ids.iter().all(is_certain) => Err(error),
            _ => Ok(found),
        }
    }

    /// Whether the experiment has moved away from one of the databases.
    pub(super) async fn has_gone(&self, id: ExperimentId) -> Result<bool, StoreError> {
        let each = self.shards.iter().map(|shard| async move {
            let located = shard.of(shard.store.located(id).await)?;
            Ok::<_, StoreError>(located.is_some_and(|it| it.presence == Presence::Gone))
        });
        Ok(try_join_all(each).await?.contains(&true))
    }

    /// The experiment with this name: asks the database where it is expected, then all of them.
    pub(super) async fn find_by_name(
        &self,
        name: &str,
        expected: usize,
    ) -> Result<Option<ExperimentRecord>, StoreError> {
        let shard = &self.shards[expected];
        if let Ok(Some(record)) = shard.store.experiment(name).await {
            self.remember(record.id, expected);
            return Ok(Some(record));
        }
        self.find_anywhere(name).await
    }

    /// The experiment with this name in any database. `None` is certain: no database has ever had
    /// it. [`StoreError::Lost`] if one had it and none has it now.
    pub(super) async fn find_anywhere(
        &self,
        name: &str,
    ) -> Result<Option<ExperimentRecord>, StoreError> {
        for _ in 0..SEARCHES {
            let each = self.shards.iter().enumerate().map(|(place, shard)| async move {
                let found = shard.store.experiment(name).await;
                shard.of(found.map(|found| found.map(|record| (place, record))))
            });
            let mut failed = None;
            for found in join_all(each).await {
                match found {
                    Ok(Some((place, record))) => {
                        self.remember(record.id, place);
                        return Ok(Some(record));
                    }
                    Ok(None) => {}
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
            let each = self.shards.iter().map(|shard| async move {
                let knows = shard.store.knows(name).await;
                shard.of(knows)
            });
            if !try_join_all(each).await?.contains(&true) {
                return Ok(None);
            }
            tokio::time::sleep(SEARCH_AGAIN_AFTER).await;
        }
        Err(match self.is_complete().await? {
            true => StoreError::Lost(name.into()),
            false => StoreError::Set(UNKNOWN_DATABASE.into()),
        })
    }

    /// Whether the databases are still the whole set.
    pub(super) async fn is_complete(&self) -> Result<bool, StoreError> {
        match self.verify().await {
            Ok(_) => Ok(true),
            Err(StoreError::Set(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Make place for an import of an experiment that no database has: delete what moves have left
    /// of it, and give up copies that arrive, so that none of them can become the experiment.
    pub(super) async fn clear_lost(&self, id: ExperimentId) -> Result<(), StoreError> {
        for shard in &self.shards {
            let Some(left) = shard.of(shard.store.located(id).await)? else { continue };
            if let (Presence::Arriving, Some(of)) = (left.presence, left.move_id) {
                shard.of(shard.store.turn_away(id, &of).await)?;
            }
            // of an experiment that is here by now it deletes nothing
            shard.of(shard.store.clear(id).await)?;
        }
        Ok(())
    }
}
