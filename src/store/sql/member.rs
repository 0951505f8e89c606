//! [`Member`](crate::store::member::Member), for both databases.

use crate::store::StoreError;
use crate::store::member::{DatabaseId, Located, Presence};
use crate::store::sql::rows::ExperimentRow;
use crate::store::sql::table_row::table_row;

table_row! {
    /// The row of `database_set`.
    pub(in crate::store) struct SetRow {
        pub id: Vec<u8>,
        pub keys_in: Option<Vec<u8>>,
        pub keys_at: Option<String>,
        pub epoch: i64,
    }
}

table_row! {
    /// How an experiment is here.
    pub(in crate::store) struct PresenceRow {
        presence: String,
        move_id: Option<Vec<u8>>,
        moving_to: Option<Vec<u8>>,
    }
}

/// An id of 16 bytes in a column.
pub(in crate::store) fn id_of(what: &str, bytes: Vec<u8>) -> Result<DatabaseId, StoreError> {
    bytes.try_into().map_err(|bytes: Vec<u8>| {
        StoreError::Corrupt(format!("{what} has {} bytes, not 16", bytes.len()))
    })
}

pub(in crate::store) fn presence_of(column: &str) -> Result<Presence, StoreError> {
    match column {
        "here" => Ok(Presence::Here),
        "frozen" => Ok(Presence::Frozen),
        "arriving" => Ok(Presence::Arriving),
        "gone" => Ok(Presence::Gone),
        other => Err(StoreError::Corrupt(format!("a presence is {other:?}"))),
    }
}

pub(in crate::store) fn located(
    experiment: ExperimentRow,
    row: PresenceRow,
) -> Result<Located, StoreError> {
    Ok(Located {
        record: experiment.try_into()?,
        presence: presence_of(&row.presence)?,
        move_id: row.move_id.map(|id| id_of("a move", id)).transpose()?,
        moving_to: row.moving_to.map(|id| id_of("a database", id)).transpose()?,
    })
}

/// Implement `Member` for a store. Needs [`implement_audit_log`](super::implement_audit_log) in the
/// same module.
macro_rules! implement_member {
    ($Store:ty, $Connection:ty) => {
        /// Refuse to add experiments if the set of databases has changed since this process checked
        /// it. The set cannot change until the transaction ends.
        async fn require_epoch(
            store: &$Store,
            connection: &mut $Connection,
        ) -> Result<(), $crate::store::StoreError> {
            let epoch: i64 = sqlx::query_scalar(LOCK_EPOCH).fetch_one(connection).await?;
            if epoch == store.epoch.load(std::sync::atomic::Ordering::SeqCst) {
                return Ok(());
            }
            Err($crate::store::StoreError::Set($crate::store::sql::statements::SET_CHANGED.into()))
        }

        const _: () = {
            use $crate::store::member::{
                DatabaseId, KnownMember, Located, Member, Membership, MoveId, Presence,
            };
            use $crate::store::sql::experiment_log::PRUNE_STEP;
            use $crate::store::sql::member::{PresenceRow, SetRow, id_of, located, presence_of};
            use $crate::store::sql::numbers::to_column;
            use $crate::store::sql::rows::{ExperimentRow, status_name};
            use $crate::store::sql::statements;
            use $crate::store::{
                AuditNote, ExperimentId, ExperimentRecord, LogEntry, Snapshot, StoreError,
            };

            impl $Store {
                /// Run a statement that changes at most one row; returns whether it did.
                async fn step(
                    &self,
                    statement: &'static str,
                    id: ExperimentId,
                    of: &MoveId,
                ) -> Result<bool, StoreError> {
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        let done = sqlx::query(statement)
                            .bind(id)
                            .bind(of.as_slice())
                            .execute(&mut *transaction)
                            .await?;
                        transaction.commit().await?;
                        Ok(done.rows_affected() > 0)
                    })
                    .await
                }
            }

            #[async_trait::async_trait]
            impl Member for $Store {
                fn place(&self) -> &str {
                    &self.place
                }

                async fn check_schema(&self) -> Result<(), StoreError> {
                    self.compare_schema().await
                }

                async fn membership(&self) -> Result<Membership, StoreError> {
                    self.attempt(move || async move {
                        let row: SetRow =
                            sqlx::query_as(statements::SET).fetch_one(self.readers()).await?;
                        let members: Vec<(Vec<u8>, String)> =
                            sqlx::query_as(statements::MEMBERS).fetch_all(self.readers()).await?;
                        let is_empty: bool = sqlx::query_scalar(statements::IS_EMPTY)
                            .fetch_one(self.readers())
                            .await?;
                        let known = |(id, place): (Vec<u8>, String)| {
                            Ok(KnownMember { id: id_of("a database", id)?, place })
                        };
                        Ok(Membership {
                            id: id_of("this database", row.id)?,
                            keys: row
                                .keys_in
                                .map(|id| known((id, row.keys_at.unwrap_or_default())))
                                .transpose()?,
                            epoch: row.epoch,
                            members: members
                                .into_iter()
                                .map(known)
                                .collect::<Result<_, StoreError>>()?,
                            is_empty,
                        })
                    })
                    .await
                }

                async fn enter_set(
                    &self,
                    keys: &KnownMember,
                    epoch: i64,
                    members: &[KnownMember],
                ) -> Result<(), StoreError> {
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        sqlx::query(statements::ENTER_SET)
                            .bind(keys.id.as_slice())
                            .bind(&keys.place)
                            .bind(epoch)
                            .execute(&mut *transaction)
                            .await?;
                        for member in members {
                            sqlx::query(statements::ADD_MEMBER)
                                .bind(member.id.as_slice())
                                .bind(&member.place)
                                .execute(&mut *transaction)
                                .await?;
                        }
                        Ok(transaction.commit().await?)
                    })
                    .await
                }

                fn expect_epoch(&self, epoch: i64) {
                    self.epoch.store(epoch, std::sync::atomic::Ordering::SeqCst);
                }

                async fn knows(&self, name: &str) -> Result<bool, StoreError> {
                    self.attempt(move || async move {
                        Ok(sqlx::query_scalar(statements::KNOWS)
                            .bind($crate::store::experiment_id(name))
                            .bind(name)
                            .fetch_one(self.readers())
                            .await?)
                    })
                    .await
                }

                async fn located(&self, id: ExperimentId) -> Result<Option<Located>, StoreError> {
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        let experiment: Option<ExperimentRow> =
                            sqlx::query_as(statements::ANY_EXPERIMENT)
                                .bind(id)
                                .fetch_optional(&mut *transaction)
                                .await?;
                        let row: Option<PresenceRow> = sqlx::query_as(statements::PRESENCE)
                            .bind(id)
                            .fetch_optional(&mut *transaction)
                            .await?;
                        transaction.commit().await?;
                        match (experiment, row) {
                            (Some(experiment), Some(row)) => located(experiment, row).map(Some),
                            _ => Ok(None),
                        }
                    })
                    .await
                }

                async fn not_here(
                    &self,
                    after: ExperimentId,
                    limit: u32,
                ) -> Result<Vec<(ExperimentId, String, Presence)>, StoreError> {
                    let rows: Vec<(i64, String, String)> = self
                        .attempt(move || async move {
                            Ok(sqlx::query_as(statements::NOT_HERE)
                                .bind(after)
                                .bind(i64::from(limit))
                                .fetch_all(self.readers())
                                .await?)
                        })
                        .await?;
                    rows.into_iter()
                        .map(|(id, name, presence)| Ok((id, name, presence_of(&presence)?)))
                        .collect()
                }

                async fn begin_move(
                    &self,
                    id: ExperimentId,
                    of: &MoveId,
                    to: &DatabaseId,
                ) -> Result<bool, StoreError> {
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        let begun = sqlx::query(statements::BEGIN_MOVE)
                            .bind(id)
                            .bind(of.as_slice())
                            .bind(to.as_slice())
                            .execute(&mut *transaction)
                            .await?;
                        transaction.commit().await?;
                        Ok(begun.rows_affected() > 0)
                    })
                    .await
                }

                async fn freeze(&self, id: ExperimentId, of: &MoveId) -> Result<bool, StoreError> {
                    self.step(statements::FREEZE, id, of).await
                }

                async fn stay(&self, id: ExperimentId, of: &MoveId) -> Result<bool, StoreError> {
                    self.step(statements::STAY, id, of).await
                }

                async fn thaw(&self, id: ExperimentId, of: &MoveId) -> Result<bool, StoreError> {
                    self.step(statements::THAW, id, of).await
                }

                async fn leave(&self, id: ExperimentId, of: &MoveId) -> Result<bool, StoreError> {
                    self.step(statements::LEAVE, id, of).await
                }

                async fn expect(
                    &self,
                    record: &ExperimentRecord,
                    of: &MoveId,
                ) -> Result<bool, StoreError> {
                    let pruned_to = to_column("pruned_to", record.pruned_to)?;
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        let expected = sqlx::query(statements::EXPECT)
                            .bind(record.id)
                            .bind(of.as_slice())
                            .bind(&record.name)
                            .bind(&record.spec)
                            .bind(record.seed.cast_signed())
                            .bind(status_name(record.status))
                            .bind(pruned_to)
                            .bind(record.created_at)
                            .execute(&mut *transaction)
                            .await?;
                        transaction.commit().await?;
                        Ok(expected.rows_affected() > 0)
                    })
                    .await
                }

                async fn copy_entries(
                    &self,
                    id: ExperimentId,
                    of: &MoveId,
                    after: u64,
                    entries: &[LogEntry],
                ) -> Result<bool, StoreError> {
                    let Some(last) = entries.last() else { return Ok(true) };
                    let (after, head) =
                        (to_column("head", after)?, to_column("head", last.position)?);
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        // locks the row: a second mover finds another head
                        let moved = sqlx::query(statements::COPIED)
                            .bind(id)
                            .bind(of.as_slice())
                            .bind(after)
                            .bind(head)
                            .execute(&mut *transaction)
                            .await?;
                        if moved.rows_affected() == 0 {
                            return Ok(false);
                        }
                        insert_copied(&mut transaction, id, entries).await?;
                        transaction.commit().await?;
                        Ok(true)
                    })
                    .await
                }

                async fn copy_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
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
                        Ok(transaction.commit().await?)
                    })
                    .await
                }

                async fn arrive(
                    &self,
                    record: &ExperimentRecord,
                    of: &MoveId,
                    audit: &AuditNote,
                ) -> Result<bool, StoreError> {
                    let arrived = self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        let arrived = sqlx::query(statements::ARRIVE)
                            .bind(record.id)
                            .bind(of.as_slice())
                            .bind(to_column("head", record.head)?)
                            .bind(&record.spec)
                            .bind(status_name(record.status))
                            .bind(record.winner.map(i32::from))
                            .bind(to_column("version", record.version)?)
                            .bind(record.updated_at)
                            .bind(record.archived_at)
                            .bind(&record.interleaving)
                            .execute(&mut *transaction)
                            .await?;
                        if arrived.rows_affected() == 0 {
                            return Ok(false);
                        }
                        add_notes(&mut transaction, [audit]).await?;
                        transaction.commit().await?;
                        Ok(true)
                    });
                    let arrived = arrived.await?;
                    if arrived {
                        self.announce(record.id, record.head);
                    }
                    Ok(arrived)
                }

                async fn turn_away(
                    &self,
                    id: ExperimentId,
                    of: &MoveId,
                ) -> Result<bool, StoreError> {
                    self.step(statements::TURN_AWAY, id, of).await
                }

                async fn clear(&self, id: ExperimentId) -> Result<(), StoreError> {
                    self.attempt(move || async move {
                        sqlx::query(statements::CLEAR_SNAPSHOTS)
                            .bind(id)
                            .execute(self.writers())
                            .await?;
                        Ok(())
                    })
                    .await?;
                    let delete_step = move || async move {
                        let first: Option<i64> = sqlx::query_scalar(statements::FIRST_POSITION)
                            .bind(id)
                            .fetch_optional(self.readers())
                            .await?;
                        let Some(first) = first else { return Ok(false) };
                        let deleted = sqlx::query(statements::CLEAR_ENTRIES)
                            .bind(id)
                            .bind(first.saturating_add(PRUNE_STEP))
                            .execute(self.writers())
                            .await?;
                        Ok(deleted.rows_affected() > 0)
                    };
                    while self.attempt(delete_step).await? {}
                    Ok(())
                }
            }
        };
    };
}
pub(in crate::store) use implement_member;
