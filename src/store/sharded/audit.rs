//! [`AuditLog`] of several databases. A change and its note are in the database of the experiment,
//! or in that of the keys; a page merges all of them by time.

use std::collections::VecDeque;

use async_trait::async_trait;
use futures_util::future::join_all;

use super::set::DatabaseSet;
use crate::store::{AuditCursor, AuditLog, AuditNote, AuditPage, AuditRecord, StoreError};

#[async_trait]
impl AuditLog for DatabaseSet {
    /// Notes without a change are kept with the keys: wherever an experiment moves, `once` stays
    /// unique.
    async fn add_audit(&self, notes: &[AuditNote]) -> Result<(), StoreError> {
        let keys = self.keys().await?;
        keys.of(keys.store.add_audit(notes).await)
    }

    async fn audit(
        &self,
        experiment: Option<&str>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        let bounds = vec![before; self.shards.len()];
        Ok(self.merged(experiment, &bounds, limit).await?.0)
    }

    async fn audit_page(
        &self,
        experiment: Option<&str>,
        after: Option<&AuditCursor>,
        limit: u32,
    ) -> Result<AuditPage, StoreError> {
        let known = self.known().await?;
        let bound = |id| after.map_or(i64::MAX, |after| after.id_in(id));
        let bounds: Vec<i64> = known.ids.iter().map(bound).collect();
        let (records, next) = self.merged(experiment, &bounds, limit).await?;
        let next = next.map(|bounds| AuditCursor::of(known.ids.iter().copied().zip(bounds)));
        Ok(AuditPage { records, next })
    }
}

impl DatabaseSet {
    /// At most `limit` entries before entry `bounds[i]` of each database, newest first, and the
    /// bounds of the next page.
    ///
    /// The bound of a database that gave nothing to this page is its newest entry: what is added to
    /// it later belongs before this page.
    async fn merged(
        &self,
        experiment: Option<&str>,
        bounds: &[i64],
        limit: u32,
    ) -> Result<(Vec<AuditRecord>, Option<Vec<i64>>), StoreError> {
        let each = self.shards.iter().zip(bounds).map(|(shard, before)| async move {
            let entries = shard.store.audit(experiment, *before, limit.saturating_add(1)).await;
            shard.of(entries.map(VecDeque::from))
        });
        let entries: Result<Vec<_>, _> = join_all(each).await.into_iter().collect();
        let mut entries = entries?;
        let newest = |entries: &VecDeque<AuditRecord>| {
            entries.front().map_or(i64::MIN, |entry| entry.id.saturating_add(1))
        };
        let mut next: Vec<i64> = entries.iter().map(newest).collect();
        let mut page = Vec::new();
        while page.len() < limit as usize {
            let fronts = entries.iter().enumerate();
            let times = fronts.filter_map(|(at, entries)| Some((entries.front()?.at, at)));
            let Some((_, at)) = times.max_by_key(|(time, at)| (*time, std::cmp::Reverse(*at)))
            else {
                return Ok((page, None));
            };
            if let Some(entry) = entries[at].pop_front() {
                next[at] = entry.id;
                page.push(entry);
            }
        }
        let more = entries.iter().any(|entries| !entries.is_empty());
        Ok((page, more.then_some(next)))
    }
}
