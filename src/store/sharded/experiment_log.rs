//! [`ExperimentLog`] of several databases.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures_util::future::join_all;

use super::merging::by_name;
use super::notices;
use super::places::UNKNOWN_DATABASE;
use super::set::DatabaseSet;
use crate::store::{
    AppendUnit, Appended, AuditNote, Change, Changed, Created, EntryChunks, ExperimentId,
    ExperimentLog, ExperimentRecord, Head, Imported, LogEntry, LogPage, NewEvent, NewExperiment,
    Nonce, Notices, Snapshot, StoreError, experiment_id,
};

/// Attempts of a call whose experiment was moved meanwhile.
const ATTEMPTS: usize = 3;

/// Call the database that has the experiment. If the answer shows that it may have moved, look
/// where it is, and call the other database. `$absent` is the answer if no database has it.
macro_rules! at_its_place {
    ($set:ident, $experiment:expr, $absent:expr, $may_have_moved:expr, |$shard:ident| $call:expr) => {{
        let Some(mut place) = $set.place($experiment).await? else { return Ok($absent) };
        for _ in 1..ATTEMPTS {
            let $shard = &$set.shards[place].store;
            let answer = $set.shards[place].of($call.await)?;
            if !$may_have_moved(&answer) {
                return Ok(answer);
            }
            match $set.moved_from(place, $experiment).await? {
                None => return Ok(answer),
                Some(now) => place = now,
            }
        }
        let $shard = &$set.shards[place].store;
        $set.shards[place].of($call.await)
    }};
}

#[async_trait]
impl ExperimentLog for DatabaseSet {
    async fn create_experiment(&self, new: &NewExperiment) -> Result<Created, StoreError> {
        let mut checked = false;
        loop {
            // It may be elsewhere than at home: it was moved, or its home has joined since. The
            // epoch keeps other processes from creating it elsewhere.
            let home = self.home(&new.name).await?;
            if let Some(record) = self.find_anywhere(&new.name).await? {
                return Ok(Created::Taken(record));
            }
            let shard = &self.shards[home];
            let created = match shard.store.create_experiment(new).await {
                Err(StoreError::Set(_)) if !checked => {
                    checked = true;
                    self.verify().await?;
                    continue;
                }
                created => shard.of(created)?,
            };
            if let Created::New(record) | Created::Taken(record) = &created {
                self.remember(record.id, home);
            }
            return Ok(created);
        }
    }

    async fn experiment(&self, name: &str) -> Result<Option<ExperimentRecord>, StoreError> {
        let expected = match self.remembered(experiment_id(name)) {
            Some(place) => place,
            None => self.home(name).await?,
        };
        self.find_by_name(name, expected).await
    }

    async fn experiments(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ExperimentRecord>, StoreError> {
        let each = self.shards.iter().map(|shard| async move {
            let records = shard.store.experiments(after, limit).await;
            shard.of(records)
        });
        let records: Result<Vec<_>, _> = join_all(each).await.into_iter().collect();
        Ok(by_name(records?.into_iter().flatten().collect(), limit))
    }

    async fn names(&self, after: &str, limit: u32) -> Result<Vec<String>, StoreError> {
        let each = self.shards.iter().map(|shard| async move {
            let names = shard.store.names(after, limit).await;
            shard.of(names)
        });
        let names: Result<Vec<_>, _> = join_all(each).await.into_iter().collect();
        let mut names: Vec<_> = names?.into_iter().flatten().collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(limit as usize);
        Ok(names)
    }

    async fn heads(&self, experiments: &[ExperimentId]) -> Result<Vec<Head>, StoreError> {
        let mut of_place: BTreeMap<usize, Vec<ExperimentId>> = BTreeMap::new();
        let mut missing = Vec::new();
        for id in experiments {
            match self.remembered(*id) {
                Some(place) => of_place.entry(place).or_default().push(*id),
                None => missing.push(*id),
            }
        }
        let each = of_place.iter().map(|(place, ids)| async move {
            let shard = &self.shards[*place];
            shard.of(shard.store.heads(ids).await)
        });
        let found: Result<Vec<_>, _> = join_all(each).await.into_iter().collect();
        let mut heads: BTreeMap<ExperimentId, Head> =
            found?.into_iter().flatten().map(|head| (head.experiment, head)).collect();
        let may_have_moved = |id: &&ExperimentId| heads.get(*id).is_none_or(|head| head.frozen);
        missing.extend(of_place.values().flatten().filter(may_have_moved));
        if !missing.is_empty() {
            let found = self.search(&missing).await?;
            for id in missing.iter().filter(|id| !found.contains_key(id)) {
                // one that is lost is left out: the others must be followed
                if self.has_gone(*id).await? && !self.is_complete().await? {
                    return Err(StoreError::Set(UNKNOWN_DATABASE.into()));
                }
            }
            heads.extend(found.into_iter().map(|(id, (_, head))| (id, head)));
        }
        Ok(heads.into_values().collect())
    }

    async fn change_experiment(
        &self,
        experiment: ExperimentId,
        expected_version: u64,
        change: &Change,
        event: NewEvent,
        recorded_at: i64,
    ) -> Result<Changed, StoreError> {
        let may_have_moved =
            |changed: &Changed| matches!(changed, Changed::Missing | Changed::Frozen);
        let changed = async {
            at_its_place!(self, experiment, Changed::Missing, may_have_moved, |shard| shard
                .change_experiment(
                    experiment,
                    expected_version,
                    change,
                    event.clone(),
                    recorded_at
                ))
        };
        match changed.await? {
            Changed::Missing if self.has_gone(experiment).await? => Ok(Changed::Frozen),
            changed => Ok(changed),
        }
    }

    async fn append(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        let mut results = vec![Appended::Missing; events.len()];
        let mut open: Vec<usize> = (0..events.len()).collect();
        for attempt in 1..=ATTEMPTS {
            self.append_some(events, &open, recorded_at, &mut results).await?;
            open.retain(|at| matches!(results[*at], Appended::Missing | Appended::Frozen));
            if open.is_empty() {
                break;
            }
            let mut ids: Vec<_> = open.iter().map(|at| events[*at].0).collect();
            ids.sort_unstable();
            ids.dedup();
            let found = self.search(&ids).await?;
            for at in &open {
                let id = events[*at].0;
                if results[*at] == Appended::Missing
                    && (found.contains_key(&id) || self.has_gone(id).await?)
                {
                    // it exists, and can be sent again
                    results[*at] = Appended::Frozen;
                }
            }
            if attempt == ATTEMPTS {
                break;
            }
            let accepts = |id| found.get(id).is_some_and(|(_, head)| !head.frozen);
            open.retain(|at| accepts(&events[*at].0));
        }
        Ok(results)
    }

    async fn read_page(
        &self,
        experiment: ExperimentId,
        after: u64,
        limit: u32,
    ) -> Result<LogPage, StoreError> {
        let nothing = LogPage::from(Vec::new());
        at_its_place!(self, experiment, nothing, LogPage::is_empty, |shard| shard
            .read_page(experiment, after, limit))
    }

    async fn find(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError> {
        let lacks_one = |found: &Vec<Option<LogEntry>>| found.iter().any(Option::is_none);
        at_its_place!(self, experiment, vec![None; nonces.len()], lacks_one, |shard| shard
            .find(experiment, nonces))
    }

    async fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        // of an experiment that has moved, it is not kept; the next one is
        let Some(place) = self.place(snapshot.experiment).await? else { return Ok(()) };
        let shard = &self.shards[place];
        shard.of(shard.store.save_snapshot(snapshot).await)
    }

    async fn newest_snapshot(
        &self,
        experiment: ExperimentId,
        format: u32,
    ) -> Result<Option<Snapshot>, StoreError> {
        at_its_place!(self, experiment, None, Option::is_none, |shard| shard
            .newest_snapshot(experiment, format))
    }

    async fn snapshots(&self, experiment: ExperimentId) -> Result<Vec<Snapshot>, StoreError> {
        at_its_place!(self, experiment, Vec::new(), Vec::is_empty, |shard| shard
            .snapshots(experiment))
    }

    async fn listen(&self) -> Result<Option<Box<dyn Notices>>, StoreError> {
        Ok(notices::listen(&self.shards))
    }

    fn append_unit(&self, experiment: ExperimentId) -> AppendUnit {
        let database = self.database_of(experiment);
        AppendUnit { database, ..self.shards[database].store.append_unit(experiment) }
    }

    fn databases(&self) -> usize {
        self.shards.len()
    }

    fn database_of(&self, experiment: ExperimentId) -> usize {
        self.remembered(experiment).unwrap_or(0)
    }

    async fn prune(
        &self,
        experiment: ExperimentId,
        to: u64,
        format: u32,
        audit: &AuditNote,
    ) -> Result<bool, StoreError> {
        at_its_place!(self, experiment, false, |pruned: &bool| !pruned, |shard| shard
            .prune(experiment, to, format, audit))
    }

    async fn import(
        &self,
        record: &ExperimentRecord,
        base: Option<&Snapshot>,
        chunks: EntryChunks<'_>,
        audit: Option<&AuditNote>,
    ) -> Result<Imported, StoreError> {
        let mut checked = false;
        loop {
            let home = self.home(&record.name).await?;
            match self.find_anywhere(&record.name).await {
                Ok(Some(existing)) => return Ok(Imported::Taken(existing)),
                Ok(None) => {}
                Err(StoreError::Lost(name)) => self.clear_lost(experiment_id(&name)).await?,
                Err(error) => return Err(error),
            }
            let shard = &self.shards[home];
            // refused before it takes the first chunk
            let imported = match shard.store.import(record, base, &mut *chunks, audit).await {
                Err(StoreError::Set(_)) if !checked => {
                    checked = true;
                    self.verify().await?;
                    continue;
                }
                imported => shard.of(imported)?,
            };
            if let Imported::New(record) | Imported::Taken(record) = &imported {
                self.remember(record.id, home);
            }
            return Ok(imported);
        }
    }
}

impl DatabaseSet {
    /// Append the events at the indexes `open`, database by database at once, and set their
    /// results. If a database fails, the others may have kept theirs: the events carry nonces, and
    /// can all be sent again.
    async fn append_some(
        &self,
        events: &[(ExperimentId, NewEvent)],
        open: &[usize],
        recorded_at: i64,
        results: &mut [Appended],
    ) -> Result<(), StoreError> {
        let mut of_place: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in open {
            if let Some(place) = self.place(events[*at].0).await? {
                of_place.entry(place).or_default().push(*at);
            }
        }
        let each = of_place.into_iter().map(|(place, indexes)| async move {
            let shard = &self.shards[place];
            let appended = if indexes.len() == events.len() {
                shard.store.append(events, recorded_at).await
            } else {
                let own: Vec<_> = indexes.iter().map(|at| events[*at].clone()).collect();
                shard.store.append(&own, recorded_at).await
            };
            shard.of(appended.map(|appended| (indexes, appended)))
        });
        let mut failed = None;
        for appended in join_all(each).await {
            match appended {
                Ok((indexes, appended)) => {
                    indexes.into_iter().zip(appended).for_each(|(at, result)| results[at] = result);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(()), Err)
    }
}
