//! Distributes a database by experiment, with the extension Citus.
//!
//! The rows of an experiment are on one node, in shards of `experiment`, `log` and `snapshot` that
//! stay together. The other tables are small; they stay on the coordinator, and every node reaches
//! them. One transaction does all of it, so an interrupted distribution leaves nothing.

use sqlx::{Executor as _, PgConnection};

use super::statements::CONTINUE_AUDIT_IDS;
use crate::sql::log_row::LogRow;
use crate::{Distributed, StoreError};

/// The tables that are distributed, with the column that has the experiment, and the table whose
/// shards each joins.
const DISTRIBUTED: [(&str, &str, &str); 3] = [
    ("experiment", "id", "none"),
    ("log", "experiment_id", "experiment"),
    ("snapshot", "experiment_id", "experiment"),
];

/// The tables that stay on the coordinator.
const LOCAL: [&str; 7] = [
    "_sqlx_migrations",
    "api_key",
    "audit",
    "ended_session",
    "experiment_name",
    "signing_key",
    "webhook_notice",
];

/// Copying the rows of a large database takes long. The function can only be distributed in a
/// transaction that works on one shard after the other.
const BEGIN: &str = "
    begin;
    set local statement_timeout = 0;
    set local idle_in_transaction_session_timeout = 0;
    set local citus.multi_shard_modify_mode = 'sequential';
    select pg_advisory_xact_lock(7217351171);
";

const IS_INSTALLED: &str = "select exists (select 1 from pg_extension where extname = 'citus')";

/// The nodes: this one's group (0: the coordinator), how many entries the coordinator has, and how
/// many nodes hold shards.
const NODES: &str = "select (select groupid from pg_dist_local_group),
         count(*) filter (where groupid = 0),
         count(*) filter (where shouldhaveshards and isactive and noderole = 'primary')
     from pg_dist_node";

/// How a table is distributed: `h` by a hash, `n` otherwise. No row: not at all.
const METHOD: &str = "select partmethod::text from pg_dist_partition
     where logicalrelid = $1::text::regclass";

const DISTRIBUTE: &str =
    "select create_distributed_table($1::text::regclass, $2, colocate_with => $3)::text";

/// The rows are on the nodes now; the coordinator still has their first copies.
const FORGET_COPIES: &str =
    "select truncate_local_data_after_distributing_table($1::text::regclass)::text";

const KEEP_LOCAL: &str = "select citus_add_local_table_to_metadata($1::text::regclass)::text";

/// `force_delegation`: the node runs the function, inside a transaction too.
const DISTRIBUTE_FUNCTION: &str = "select create_distributed_function(
         $1::text::regprocedure, 'experiment', colocate_with => 'log', force_delegation => true
     )::text";

/// Sets the settings of sessions on a node, because the coordinator does not pass on those of its
/// own session. The database has what commits and plans need, for all roles. This role alone has
/// the time limits: they would end the moves of shards, which an administrator starts.
/// `statement_timeout` is not among them: the coordinator cancels what it started.
const SETTINGS: &str = "
    do $$
    declare
        setting text;
    begin
        perform set_config('citus.enable_ddl_propagation', 'off', true);
        foreach setting in array array[
            'jit', 'enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'enable_hashjoin',
            'enable_mergejoin'
        ] loop
            execute format('alter database %I set %I = off', current_database(), setting);
        end loop;
        if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
            execute format('alter database %I set synchronous_commit = on', current_database());
        end if;
        foreach setting in array array[
            'lock_timeout = ''5s''', 'idle_in_transaction_session_timeout = ''15s'''
        ] loop
            execute format('alter role %I in database %I set ', current_user, current_database())
                || setting;
        end loop;
    end $$";

/// The nodes that do not have the settings, and why.
const SET_ON_EVERY_NODE: &str = "select node.nodename || ':' || node.nodeport, ran.result
     from run_command_on_all_nodes($1) as ran join pg_dist_node as node using (nodeid)
     where not ran.success";

/// Distribute every table, the function and the settings, unless they are distributed already.
pub(super) async fn distribute(connection: &mut PgConnection) -> Result<Distributed, StoreError> {
    require_coordinator(connection).await?;
    connection.execute(BEGIN).await?;
    let mut newly = false;
    for (table, column, beside) in DISTRIBUTED {
        match method(connection, table).await?.as_deref() {
            Some("h") => continue,
            Some(_) => {
                return Err(refused(format!(
                    "the table {table} is distributed in another way, such as by schema; undo that \
                     first (undistribute_table, citus_schema_undistribute)"
                )));
            }
            None => newly = true,
        }
        sqlx::query(DISTRIBUTE)
            .bind(table)
            .bind(column)
            .bind(beside)
            .execute(&mut *connection)
            .await?;
        sqlx::query(FORGET_COPIES).bind(table).execute(&mut *connection).await?;
    }
    for table in LOCAL {
        if method(connection, table).await?.is_none() {
            sqlx::query(KEEP_LOCAL).bind(table).execute(&mut *connection).await?;
            if table == "audit" {
                sqlx::query(CONTINUE_AUDIT_IDS.sql()).execute(&mut *connection).await?;
            }
        }
    }
    let function =
        format!("append_entries(bigint, {}[], bigint)", LogRow::POSTGRES_TYPES.join("[], "));
    sqlx::query(DISTRIBUTE_FUNCTION).bind(function).execute(&mut *connection).await?;
    connection.execute("commit").await?;

    let failed: Vec<(String, String)> =
        sqlx::query_as(SET_ON_EVERY_NODE).bind(SETTINGS).fetch_all(&mut *connection).await?;
    if let Some((node, why)) = failed.first() {
        return Err(refused(format!(
            "node {node} does not accept the settings of the database: {why}. The tables are \
             distributed; repeat the command when the node accepts them"
        )));
    }
    let (_, _, nodes) = nodes(connection).await?;
    Ok(Distributed { newly, nodes })
}

async fn require_coordinator(connection: &mut PgConnection) -> Result<(), StoreError> {
    let installed: bool = sqlx::query_scalar(IS_INSTALLED).fetch_one(&mut *connection).await?;
    if !installed {
        return Err(refused(
            "it does not have the extension citus: run `create extension citus` in this database \
             on every node, then citus_set_coordinator_host and citus_add_node on the coordinator"
                .into(),
        ));
    }
    match nodes(connection).await? {
        (0, 0, _) => Err(refused(
            "the coordinator is not in its own list of nodes: run \
             `select citus_set_coordinator_host('HOST', PORT)`"
                .into(),
        )),
        (0, _, 0) => Err(refused(
            "no node holds shards: add the workers with `select citus_add_node('HOST', PORT)`"
                .into(),
        )),
        (0, _, _) => Ok(()),
        _ => Err(refused("this node is a worker: use the URL of the coordinator".into())),
    }
}

async fn nodes(connection: &mut PgConnection) -> Result<(i32, i64, i64), StoreError> {
    Ok(sqlx::query_as(NODES).fetch_one(connection).await?)
}

async fn method(connection: &mut PgConnection, table: &str) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar(METHOD).bind(table).fetch_optional(connection).await?)
}

pub(super) fn refused(why: String) -> StoreError {
    StoreError::Distribution(why)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A migration that adds a table must say where it is.
    #[test]
    fn every_table_has_its_place() {
        let created: BTreeSet<&str> = crate::schema::POSTGRES
            .iter()
            .flat_map(|(_, _, sql)| sql.lines())
            .filter_map(|line| line.strip_prefix("create table "))
            .filter_map(|rest| rest.split([' ', '(']).next())
            .collect();
        let placed: BTreeSet<&str> = DISTRIBUTED
            .iter()
            .map(|(table, _, _)| *table)
            .chain(LOCAL)
            .filter(|table| *table != "_sqlx_migrations")
            .collect();
        assert_eq!(created, placed);
    }
}
