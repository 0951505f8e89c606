//! [`ExperimentLog`](crate::store::ExperimentLog), for both databases.

/// From this limit on, entries are read by the database's bulk statement.
pub(in crate::store) const READ_BULK_FROM: u32 = 250;

/// Positions that one statement of a pruning deletes.
pub(in crate::store) const PRUNE_STEP: i64 = 10_000;

/// Implement `ExperimentLog` for a store. Needs [`implement_audit_log`](super::implement_audit_log)
/// and [`implement_member`](super::implement_member) in the same module.
macro_rules! implement_experiment_log {
    ($Store:ty, $Connection:ty) => {
        const _: () = {
            use $crate::store::append_plan::NewEntry;
            use $crate::store::sql::experiment_log::{PRUNE_STEP, READ_BULK_FROM};
            use $crate::store::sql::log_row::LogRow;
            use $crate::store::sql::numbers::to_column;
            use $crate::store::sql::rows::{ExperimentRow, SnapshotRow, records, status_name};
            use $crate::store::sql::statements;
            use $crate::store::{
                AppendUnit, Appended, AuditNote, Change, Changed, Created, EntryChunks,
                ExperimentId, ExperimentLog, ExperimentRecord, Head, Imported, LogEntry, LogPage,
                NewEvent, NewExperiment, Nonce, Notices, Snapshot, StoreError, experiment_id,
            };

            /// The experiment that had the name before `inserted`, the row of this transaction.
            /// `None` without such a row: another name has the id.
            async fn taken(
                connection: &mut $Connection,
                name: &str,
                inserted: &Option<ExperimentRow>,
            ) -> Result<Option<ExperimentRow>, StoreError> {
                // a numbered experiment; none is added any more
                let numbered = sqlx::query_as(statements::NUMBERED_EXPERIMENT)
                    .bind(experiment_id(name))
                    .bind(name)
                    .fetch_optional(&mut *connection)
                    .await?;
                if numbered.is_some() || inserted.is_some() {
                    return Ok(numbered);
                }
                Ok(sqlx::query_as(statements::EXPERIMENT)
                    .bind(experiment_id(name))
                    .bind(name)
                    .fetch_optional(connection)
                    .await?)
            }

            #[async_trait::async_trait]
            impl ExperimentLog for $Store {
                async fn create_experiment(
                    &self,
                    new: &NewExperiment,
                ) -> Result<Created, StoreError> {
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        require_epoch(self, &mut transaction).await?;
                        let created: Option<ExperimentRow> =
                            sqlx::query_as(statements::CREATE_EXPERIMENT)
                                .bind(&new.name)
                                .bind(&new.spec)
                                .bind(new.seed.cast_signed())
                                .bind(new.created_at)
                                .bind(experiment_id(&new.name))
                                .fetch_optional(&mut *transaction)
                                .await?;
                        if let Some(taken) = taken(&mut transaction, &new.name, &created).await? {
                            return Ok(Created::Taken(taken.try_into()?));
                        }
                        let Some(created) = created else { return Ok(Created::Collision) };
                        add_notes(&mut transaction, &new.audit).await?;
                        transaction.commit().await?;
                        Ok(Created::New(created.try_into()?))
                    })
                    .await
                }

                async fn experiment(
                    &self,
                    name: &str,
                ) -> Result<Option<ExperimentRecord>, StoreError> {
                    self.attempt(move || async move {
                        let id = experiment_id(name);
                        for statement in [statements::EXPERIMENT, statements::NUMBERED_EXPERIMENT] {
                            let row: Option<ExperimentRow> = sqlx::query_as(statement)
                                .bind(id)
                                .bind(name)
                                .fetch_optional(self.readers())
                                .await?;
                            if let Some(row) = row {
                                return row.try_into().map(Some);
                            }
                        }
                        Ok(None)
                    })
                    .await
                }

                async fn experiments(
                    &self,
                    after: Option<&str>,
                    limit: u32,
                ) -> Result<Vec<ExperimentRecord>, StoreError> {
                    self.attempt(move || async move {
                        let query = match after {
                            None => sqlx::query_as(statements::EXPERIMENTS),
                            Some(after) => {
                                sqlx::query_as(statements::EXPERIMENTS_AFTER).bind(after)
                            }
                        };
                        let rows: Vec<ExperimentRow> =
                            query.bind(i64::from(limit)).fetch_all(self.readers()).await?;
                        records(rows)
                    })
                    .await
                }

                async fn names(&self, after: &str, limit: u32) -> Result<Vec<String>, StoreError> {
                    self.attempt(move || async move {
                        Ok(sqlx::query_scalar(statements::NAMES)
                            .bind(after)
                            .bind(i64::from(limit))
                            .fetch_all(self.readers())
                            .await?)
                    })
                    .await
                }

                async fn heads(
                    &self,
                    experiments: &[ExperimentId],
                ) -> Result<Vec<Head>, StoreError> {
                    self.attempt(move || self.read_heads(experiments)).await
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
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        let row: Option<ExperimentRow> = sqlx::query_as(LOCK_EXPERIMENT)
                            .bind(experiment)
                            .fetch_optional(&mut *transaction)
                            .await?;
                        let Some(row) = row else { return Ok(Changed::Missing) };
                        let before = ExperimentRecord::try_from(row)?;
                        if before.version != expected_version {
                            return Ok(Changed::Stale(before));
                        }
                        let after = change.applied_to(&before, recorded_at);
                        let changed = sqlx::query(statements::CHANGE_EXPERIMENT)
                            .bind(status_name(after.status))
                            .bind(after.winner.map(i32::from))
                            .bind(after.archived_at)
                            .bind(after.updated_at)
                            .bind(experiment)
                            .bind(to_column("version", before.version)?)
                            .bind(&after.interleaving)
                            .bind(&after.spec)
                            .execute(&mut *transaction)
                            .await?;
                        if changed.rows_affected() == 0 {
                            return Ok(Changed::Frozen);
                        }
                        let entry =
                            NewEntry { experiment, position: after.head, nonce: *nonce, event };
                        insert_entries(&mut transaction, &[entry], recorded_at).await?;
                        add_notes(&mut transaction, &change.audit).await?;
                        transaction.commit().await?;
                        self.announce(experiment, after.head);
                        Ok(Changed::Done(after))
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
                    self.attempt(move || self.append_events(events, recorded_at)).await
                }

                async fn read_page(
                    &self,
                    experiment: ExperimentId,
                    after: u64,
                    limit: u32,
                ) -> Result<LogPage, StoreError> {
                    let after = i64::try_from(after).unwrap_or(i64::MAX);
                    self.attempt(move || async move {
                        if limit >= READ_BULK_FROM {
                            return self.read_bulk(experiment, after, limit).await;
                        }
                        let rows: Vec<LogRow> = sqlx::query_as(statements::READ)
                            .bind(experiment)
                            .bind(after)
                            .bind(i64::from(limit))
                            .fetch_all(self.readers())
                            .await?;
                        records::<_, LogEntry>(rows).map(LogPage::from)
                    })
                    .await
                }

                async fn find(
                    &self,
                    experiment: ExperimentId,
                    nonces: &[Nonce],
                ) -> Result<Vec<Option<LogEntry>>, StoreError> {
                    self.attempt(move || self.find_entries(experiment, nonces)).await
                }

                async fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
                    let position = to_column("snapshot position", snapshot.position)?;
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        sqlx::query(statements::SAVE_SNAPSHOT)
                            .bind(snapshot.experiment)
                            .bind(i64::from(snapshot.format))
                            .bind(position)
                            .bind(&snapshot.state)
                            .bind(snapshot.created_at)
                            .execute(&mut *transaction)
                            .await?;
                        sqlx::query(statements::DELETE_SNAPSHOTS)
                            .bind(snapshot.experiment)
                            .bind(i64::from(snapshot.format))
                            .bind(position)
                            .execute(&mut *transaction)
                            .await?;
                        Ok(transaction.commit().await?)
                    })
                    .await
                }

                async fn newest_snapshot(
                    &self,
                    experiment: ExperimentId,
                    format: u32,
                ) -> Result<Option<Snapshot>, StoreError> {
                    self.attempt(move || async move {
                        let row: Option<SnapshotRow> = sqlx::query_as(statements::NEWEST_SNAPSHOT)
                            .bind(experiment)
                            .bind(i64::from(format))
                            .fetch_optional(self.readers())
                            .await?;
                        row.map(TryInto::try_into).transpose()
                    })
                    .await
                }

                async fn snapshots(
                    &self,
                    experiment: ExperimentId,
                ) -> Result<Vec<Snapshot>, StoreError> {
                    self.attempt(move || async move {
                        let rows: Vec<SnapshotRow> = sqlx::query_as(statements::SNAPSHOTS)
                            .bind(experiment)
                            .fetch_all(self.readers())
                            .await?;
                        records(rows)
                    })
                    .await
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
                    let allowed = self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        let marked = sqlx::query(statements::PRUNE)
                            .bind(experiment)
                            .bind(to)
                            .bind(i64::from(format))
                            .execute(&mut *transaction)
                            .await?;
                        if marked.rows_affected() == 0 {
                            return Ok(false);
                        }
                        add_notes(&mut transaction, [audit]).await?;
                        transaction.commit().await?;
                        Ok(true)
                    });
                    if !allowed.await? {
                        return Ok(false);
                    }
                    // in steps, so that other writers get their turn and no statement runs for
                    // long; an interrupted pruning can be repeated
                    let delete_step = move || async move {
                        let first: Option<i64> = sqlx::query_scalar(statements::FIRST_POSITION)
                            .bind(experiment)
                            .fetch_optional(self.readers())
                            .await?;
                        let Some(first) = first.filter(|first| *first <= to) else {
                            return Ok(false);
                        };
                        sqlx::query(statements::DELETE_ENTRIES)
                            .bind(experiment)
                            .bind(to.min(first.saturating_add(PRUNE_STEP)))
                            .execute(self.writers())
                            .await?;
                        Ok(true)
                    };
                    while self.attempt(delete_step).await? {}
                    Ok(true)
                }

                async fn import(
                    &self,
                    record: &ExperimentRecord,
                    base: Option<&Snapshot>,
                    chunks: EntryChunks<'_>,
                    audit: Option<&AuditNote>,
                ) -> Result<Imported, StoreError> {
                    let mut transaction = self.begin().await?;
                    require_epoch(self, &mut transaction).await?;
                    sqlx::query(statements::FORGET_GONE)
                        .bind(experiment_id(&record.name))
                        .bind(&record.name)
                        .execute(&mut *transaction)
                        .await?;
                    let imported: Option<ExperimentRow> =
                        sqlx::query_as(statements::IMPORT_EXPERIMENT)
                            .bind(&record.name)
                            .bind(&record.spec)
                            .bind(record.seed.cast_signed())
                            .bind(status_name(record.status))
                            .bind(record.winner.map(i32::from))
                            .bind(to_column("version", record.version)?)
                            .bind(to_column("head", record.head)?)
                            .bind(record.created_at)
                            .bind(record.updated_at)
                            .bind(record.archived_at)
                            .bind(to_column("pruned_to", record.pruned_to)?)
                            .bind(&record.interleaving)
                            .bind(experiment_id(&record.name))
                            .fetch_optional(&mut *transaction)
                            .await?;
                    if let Some(taken) = taken(&mut transaction, &record.name, &imported).await? {
                        return Ok(Imported::Taken(taken.try_into()?));
                    }
                    let Some(imported) = imported else { return Ok(Imported::Collision) };
                    let imported = ExperimentRecord::try_from(imported)?;
                    if let Some(base) = base {
                        sqlx::query(statements::SAVE_SNAPSHOT)
                            .bind(imported.id)
                            .bind(i64::from(base.format))
                            .bind(to_column("snapshot position", base.position)?)
                            .bind(&base.state)
                            .bind(base.created_at)
                            .execute(&mut *transaction)
                            .await?;
                    }
                    for chunk in chunks {
                        let chunk = chunk.map_err(StoreError::Corrupt)?;
                        insert_copied(&mut transaction, imported.id, &chunk).await?;
                    }
                    add_notes(&mut transaction, audit).await?;
                    transaction.commit().await?;
                    Ok(Imported::New(imported))
                }
            }
        };
    };
}
pub(in crate::store) use implement_experiment_log;
