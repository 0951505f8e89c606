//! [`ExperimentLog`], for both databases.

use async_trait::async_trait;

use super::audit_log::add_notes;
use super::backend::{Backend, Transaction};
use super::key_store::change_noted;
use super::log_row::LogRow;
use super::numbers::{from_column, to_column};
use super::rows::{filter_values, status_name, unknown_place};
use super::statements;
use super::value::{Value, values};
use crate::events::{ControlEvent, Event, Status};
use crate::{
    AppendUnit, Appended, AuditNote, CREATION, Change, Changed, Created, DueExperiment,
    EntryChunks, ExperimentId, ExperimentLog, ExperimentRecord, Head, ListFilter, ListPlace,
    ListSize, ListedExperiment, LogEntry, NewAnswer, NewEvent, NewExperiment, Nonce, Notices,
    Snapshot, StoreError, WebhookNotice,
};

/// From this limit on, entries are read by the database's bulk statement.
const READ_BULK_FROM: u32 = 250;

/// Positions that one statement of a pruning deletes.
const PRUNE_STEP: i64 = 10_000;

#[async_trait]
impl<B: Backend> ExperimentLog for B {
    async fn create_experiment(&self, new: &NewExperiment) -> Result<Created, StoreError> {
        let spec = serde_json::from_str(&new.spec)
            .map_err(|error| StoreError::Corrupt(format!("a spec is not JSON: {error}")))?;
        let first = Event::Control(ControlEvent::Created { spec });
        let record = &ExperimentRecord {
            id: new.id,
            name: new.name.clone(),
            spec: new.spec.clone(),
            seed: new.seed,
            status: Status::Running,
            winner: None,
            version: 1,
            head: 1,
            created_at: new.created_at,
            updated_at: new.created_at,
            archived_at: None,
            pruned_to: 0,
            answer: None,
        };
        self.attempt(|| async {
            let mut transaction = self.begin().await?;
            let created = insert_experiment(&mut transaction, record).await?;
            if let Created::New(_) = &created {
                let row = LogRow::at(new.id, 1, CREATION, new.created_at, &first);
                transaction.insert_rows(&[row]).await?;
                add_notes(&mut transaction, &new.audit).await?;
                transaction.commit().await?;
            }
            Ok(created)
        })
        .await
    }

    async fn experiment(&self, name: &str) -> Result<Option<ExperimentRecord>, StoreError> {
        let named: Vec<(i64,)> = self.fetch(&statements::ID_OF_NAME, values![name]).await?;
        let Some((id,)) = named.first() else { return Ok(None) };
        let found: Option<ExperimentRecord> =
            self.fetch(&statements::EXPERIMENT, values![*id]).await?.pop();
        Ok(found.filter(|record| record.name == name))
    }

    async fn experiments(
        &self,
        filter: &ListFilter,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ExperimentRecord>, StoreError> {
        let [search, states, names, spec] = &filter_values(filter);
        let values = values![search, states, names, spec, after, limit];
        self.fetch(&statements::EXPERIMENTS, values).await
    }

    async fn listed(
        &self,
        filter: &ListFilter,
        after: Option<&ListPlace>,
        limit: u32,
    ) -> Result<Vec<ListedExperiment>, StoreError> {
        let [search, states, names, spec] = &filter_values(filter);
        let (group, name) = place_values(after);
        let values = values![search, states, names, spec, group, name, limit];
        self.fetch(&statements::LISTED, values).await
    }

    async fn list_size(
        &self,
        filter: &ListFilter,
        until: Option<&ListPlace>,
    ) -> Result<ListSize, StoreError> {
        let [search, states, names, spec] = &filter_values(filter);
        let (group, name) = place_values(until);
        let values = values![search, states, names, spec, group, name];
        let rows: Vec<(i32, i64, i64)> = self.fetch(&statements::LIST_SIZE, values).await?;
        let mut size = ListSize::default();
        for (group, all, before) in rows {
            let group: usize = from_column("a group of the list", group.into())?;
            if let Some(of_group) = size.groups.get_mut(group) {
                *of_group = from_column("the size of a group", all)?;
            }
            size.before += from_column::<u64>("a number of experiments", before)?;
        }
        Ok(size)
    }

    async fn due(
        &self,
        now: i64,
        after: Option<&DueExperiment>,
        limit: u32,
    ) -> Result<Vec<DueExperiment>, StoreError> {
        let (due_at, id) = after.map_or((i64::MIN, i64::MIN), |after| (after.due_at, after.id));
        self.fetch(&statements::DUE, values![now, due_at, id, limit]).await
    }

    async fn names(&self, after: &str, limit: u32) -> Result<Vec<String>, StoreError> {
        let rows: Vec<(String,)> = self.fetch(&statements::NAMES, values![after, limit]).await?;
        Ok(rows.into_iter().map(|(name,)| name).collect())
    }

    async fn heads(&self, experiments: &[ExperimentId]) -> Result<Vec<Head>, StoreError> {
        self.attempt(|| self.read_heads(experiments)).await
    }

    async fn change_experiment(
        &self,
        experiment: ExperimentId,
        expected_version: u64,
        change: &Change,
        event: NewEvent,
        recorded_at: i64,
    ) -> Result<Changed, StoreError> {
        let NewEvent { nonce, event, .. } = &event;
        self.attempt(|| async {
            let mut transaction = self.begin().await?;
            let mut locked: Vec<ExperimentRecord> =
                transaction.fetch(B::LOCK_EXPERIMENT, values![experiment]).await?;
            let Some(before) = locked.pop() else { return Ok(Changed::Missing) };
            if before.version != expected_version {
                return Ok(Changed::Stale(before));
            }
            let after = change.applied_to(&before, recorded_at);
            let owner = owner_of(&after.spec);
            let values = values![
                status_name(after.status),
                after.winner.map(i64::from),
                after.archived_at,
                after.updated_at,
                experiment,
                to_column("version", before.version)?,
                &after.spec,
                &owner,
            ];
            transaction.run(&statements::CHANGE_EXPERIMENT, values).await?;
            let position = to_column("position", after.head)?;
            let row = LogRow::at(experiment, position, *nonce, recorded_at, event);
            transaction.insert_rows(&[row]).await?;
            add_notes(&mut transaction, &change.audit).await?;
            transaction.commit().await?;
            self.announce(experiment, after.head);
            Ok(Changed::Done(after))
        })
        .await
    }

    async fn save_answer(
        &self,
        experiment: ExperimentId,
        position: u64,
        before: Option<&str>,
        answer: &NewAnswer,
        notice: Option<&WebhookNotice>,
    ) -> Result<bool, StoreError> {
        let position = to_column("position", position)?;
        let NewAnswer { text, state, group, due_at } = answer;
        let (before, group) = (before.unwrap_or_default(), i64::from(*group));
        let values = values![experiment, position, text, before, state, group, due_at];
        let Some(WebhookNotice { id, experiment, body, queued_at, .. }) = notice else {
            return Ok(self.run(B::SAVE_ANSWER, values).await? > 0);
        };
        self.attempt(|| async {
            let mut transaction = self.begin().await?;
            // first, so that feedback waits for one statement less
            let added = values![id, experiment, body, queued_at];
            transaction.run(&statements::ADD_NOTICE, added).await?;
            let is_saved = transaction.run(B::SAVE_ANSWER, values).await? > 0;
            if is_saved {
                transaction.commit().await?;
            }
            Ok(is_saved)
        })
        .await
    }

    fn append_unit(&self, experiment: ExperimentId) -> AppendUnit {
        self.unit_of(experiment)
    }

    async fn append(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        self.attempt(|| self.append_events(events, recorded_at)).await
    }

    async fn read(
        &self,
        experiment: ExperimentId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        if limit >= READ_BULK_FROM {
            return self.attempt(|| self.read_bulk(experiment, after, limit)).await;
        }
        // the newest entries, which servers read after each append: one statement, no transaction
        LogRow::entries(self.fetch(&statements::READ, values![experiment, after, limit]).await?)
    }

    async fn find(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError> {
        self.attempt(|| self.find_entries(experiment, nonces)).await
    }

    async fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let position = to_column("snapshot position", snapshot.position)?;
        let saved = &snapshot_values(snapshot.experiment, position, snapshot);
        let replaced = values![snapshot.experiment, snapshot.format, position];
        self.attempt(|| async {
            let mut transaction = self.begin().await?;
            transaction.run(&statements::SAVE_SNAPSHOT, saved).await?;
            transaction.run(&statements::DELETE_SNAPSHOTS, replaced).await?;
            transaction.commit().await
        })
        .await
    }

    async fn newest_snapshot(
        &self,
        experiment: ExperimentId,
        format: u32,
    ) -> Result<Option<Snapshot>, StoreError> {
        let values = values![experiment, format];
        Ok(self.fetch(&statements::NEWEST_SNAPSHOT, values).await?.pop())
    }

    async fn snapshots(&self, experiment: ExperimentId) -> Result<Vec<Snapshot>, StoreError> {
        self.fetch(&statements::SNAPSHOTS, values![experiment]).await
    }

    async fn listen(&self) -> Result<Option<Box<dyn Notices>>, StoreError> {
        self.open_listener().await
    }

    async fn prune(
        &self,
        experiment: ExperimentId,
        to: u64,
        format: u32,
        audit: &AuditNote,
    ) -> Result<bool, StoreError> {
        let to = to_column("position", to)?;
        let values = values![experiment, to, format];
        if !change_noted(self, &statements::PRUNE, values, audit).await? {
            return Ok(false);
        }
        // in steps, so that other writers get their turn and no statement runs for long; an
        // interrupted pruning can be repeated
        loop {
            let first: Vec<(i64,)> =
                self.fetch(&statements::FIRST_POSITION, values![experiment]).await?;
            match first.first() {
                Some((first,)) if *first <= to => {
                    let step = to.min(first.saturating_add(PRUNE_STEP));
                    self.run(&statements::DELETE_ENTRIES, values![experiment, step]).await?;
                }
                _ => return Ok(true),
            }
        }
    }

    async fn import(
        &self,
        record: &ExperimentRecord,
        base: Option<&Snapshot>,
        chunks: EntryChunks<'_>,
        audit: Option<&AuditNote>,
    ) -> Result<Created, StoreError> {
        let id = record.id;
        let mut transaction = self.begin().await?;
        let imported = insert_experiment(&mut transaction, record).await?;
        let Created::New(_) = &imported else { return Ok(imported) };
        if let Some(base) = base {
            let position = to_column("snapshot position", base.position)?;
            let values = snapshot_values(id, position, base);
            transaction.run(&statements::SAVE_SNAPSHOT, &values).await?;
        }
        for chunk in chunks {
            let mut rows = Vec::new();
            for entry in chunk.map_err(StoreError::Corrupt)? {
                let position = to_column("position", entry.position)?;
                rows.push(LogRow::at(id, position, entry.nonce, entry.recorded_at, &entry.event));
            }
            transaction.insert_rows(&rows).await?;
        }
        add_notes(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(imported)
    }
}

/// Add an experiment, unless its name is taken.
async fn insert_experiment(
    transaction: &mut impl Transaction,
    record: &ExperimentRecord,
) -> Result<Created, StoreError> {
    let named = values![&record.name, record.id];
    if transaction.run(&statements::TAKE_NAME, named).await? == 0 {
        let taken: Vec<(i64,)> =
            transaction.fetch(&statements::ID_OF_NAME, values![&record.name]).await?;
        let (owner,) = taken.first().copied().unwrap_or_default();
        if let Some(taken) = transaction.fetch(&statements::EXPERIMENT, values![owner]).await?.pop()
        {
            return Ok(Created::Taken(taken));
        }
        // the database has lost the experiment, and its name is free
        let values = values![&record.name, record.id, owner];
        if transaction.run(&statements::TAKE_NAME_FROM, values).await? == 0 {
            return Err(StoreError::Corrupt(format!(
                "the name {:?} was taken by two experiments at once",
                record.name
            )));
        }
    }
    let ((state, group), owner) = (unknown_place(record.status), owner_of(&record.spec));
    let values = values![
        record.id,
        &record.name,
        &record.spec,
        record.seed.cast_signed(),
        status_name(record.status),
        record.winner.map(i64::from),
        to_column("version", record.version)?,
        to_column("head", record.head)?,
        record.created_at,
        record.updated_at,
        record.archived_at,
        to_column("pruned_to", record.pruned_to)?,
        &record.answer,
        &owner,
        state,
        group,
    ];
    transaction.run(&statements::CREATE_EXPERIMENT, values).await?;
    Ok(Created::New(record.clone()))
}

/// The owner of an experiment with this spec.
fn owner_of(spec: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Owned {
        owner: Option<String>,
    }
    serde_json::from_str::<Owned>(spec).ok()?.owner
}

/// The values that compare a group and a name with a place; without one, all are behind it.
fn place_values(place: Option<&ListPlace>) -> (i64, &str) {
    place.map_or((-1, ""), |place| (place.group.into(), &*place.name))
}

fn snapshot_values(experiment: ExperimentId, position: i64, snapshot: &Snapshot) -> [Value<'_>; 5] {
    [
        experiment.into(),
        snapshot.format.into(),
        position.into(),
        (&snapshot.state).into(),
        snapshot.created_at.into(),
    ]
}
