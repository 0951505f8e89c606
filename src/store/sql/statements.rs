//! The statements that read alike in both databases, and what each reaches in a distributed one.

use super::reach::statements;

/// The columns of [`ExperimentRow`](super::rows::ExperimentRow), for a `select` or a `returning`.
macro_rules! experiment_columns {
    () => {
        "id, name, spec, seed, status, winner, version, head, created_at_ms, updated_at_ms, \
         archived_at_ms, pruned_to, interleaving"
    };
}
/// The columns of [`LogRow`](super::log_row::LogRow).
macro_rules! log_columns {
    () => {
        "experiment_id, position, nonce, recorded_at_ms, kind, first_ranker, second_ranker, \
         first_left, answer, batch, ticket, chosen_at, issued_at_ms, detail"
    };
}
/// Whether this database has the experiment. It does not while the experiment arrives from another
/// database, nor once it has gone to one.
macro_rules! is_present {
    () => {
        "presence in ('here', 'frozen')"
    };
}
/// Whether this database has the experiment `$1`, for a statement that reads its log: the log of
/// one that has gone is being deleted.
macro_rules! has_experiment {
    () => {
        concat!("exists (select 1 from experiment where id = $1 and ", is_present!(), ")")
    };
}
pub(in crate::store) use {experiment_columns, has_experiment, is_present, log_columns};

statements! {
    Coordinator MIGRATIONS =
        "select version, checksum, description from _sqlx_migrations where success order by version";

    /// The id first: it leads to the row, and in a distributed database to its shard.
    Experiment EXPERIMENT = concat!(
        "select ",
        experiment_columns!(),
        " from experiment where id = $1 and name = $2 and ",
        is_present!()
    );
    /// An experiment that an earlier version numbered; `$1` is the id of the name.
    Experiments NUMBERED_EXPERIMENT = concat!(
        "select ",
        experiment_columns!(),
        " from experiment where name = $2 and id <> $1 and ",
        is_present!()
    );
    Experiments EXPERIMENTS = concat!(
        "select ",
        experiment_columns!(),
        " from experiment where archived_at_ms is null and ",
        is_present!(),
        " order by name limit $1"
    );
    Experiments EXPERIMENTS_AFTER = concat!(
        "select ",
        experiment_columns!(),
        " from experiment where archived_at_ms is null and name > $1 and ",
        is_present!(),
        " order by name limit $2"
    );
    Experiments NAMES = concat!(
        "select name from experiment where name > $1 and ",
        is_present!(),
        " order by name limit $2"
    );
    Experiment CREATE_EXPERIMENT = concat!(
        "insert into experiment
             (id, name, spec, seed, status, version, head, created_at_ms, updated_at_ms)
         values ($5, $1, $2, $3, 'running', 1, 0, $4, $4) on conflict do nothing returning ",
        experiment_columns!()
    );
    /// `$6` is the version before the change: a row with another version is not touched, nor one that
    /// is frozen.
    Experiment CHANGE_EXPERIMENT = "update experiment
         set status = $1, winner = $2, archived_at_ms = $3, updated_at_ms = $4, interleaving = $7,
             spec = $8, version = version + 1, head = head + 1
         where id = $5 and version = $6 and presence = 'here'";
    Experiment IMPORT_EXPERIMENT = concat!(
        "insert into experiment
             (name, spec, seed, status, winner, version, head, created_at_ms, updated_at_ms,
              archived_at_ms, pruned_to, interleaving, id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
         on conflict do nothing returning ",
        experiment_columns!()
    );
    Experiment READ = concat!(
        "select ",
        log_columns!(),
        " from log where experiment_id = $1 and position > $2 and ",
        has_experiment!(),
        " order by position limit $3"
    );
    /// Checks the conditions of pruning under the row's lock: they may have changed since the
    /// caller checked them. A log that is being copied is not pruned.
    Experiment PRUNE = "update experiment set pruned_to = $2
         where id = $1 and pruned_to <= $2 and head >= $2 and presence = 'here' and move_id is null
           and (status = 'concluded' or archived_at_ms is not null)
           and exists (
               select 1 from snapshot where experiment_id = $1 and format = $3 and position >= $2
           )";
    Experiment FIRST_POSITION = "select position from log where experiment_id = $1 order by position limit 1";
    Experiment DELETE_ENTRIES = "delete from log where experiment_id = $1 and position <= $2";
    Experiment SAVE_SNAPSHOT = "insert into snapshot (experiment_id, format, position, state, created_at_ms)
         select $1, $2, $3, $4, $5
         where exists (select 1 from experiment where id = $1 and head >= $3 and presence <> 'gone')
         on conflict (experiment_id, format, position) do update
         set state = excluded.state, created_at_ms = excluded.created_at_ms";
    /// Deletes the snapshots that one at position `$3` replaces, and those above the log's head.
    Experiment DELETE_SNAPSHOTS = "delete from snapshot where experiment_id = $1 and format = $2 and exists (
             select 1 from experiment
             where id = $1 and (snapshot.position > head or (snapshot.position < $3 and $3 <= head))
         )";
    Experiment NEWEST_SNAPSHOT = "select experiment_id, format, position, state, created_at_ms from snapshot
         where experiment_id = $1 and format = $2 order by position desc limit 1";
    Experiment SNAPSHOTS = "select experiment_id, format, position, state, created_at_ms from snapshot
         where experiment_id = $1 order by format, position";

    Coordinator SIGNING_KEYS = "select id, secret, created_at_ms, active_from_ms from signing_key
         order by active_from_ms desc, created_at_ms desc, id desc";
    Coordinator ENSURE_SIGNING_KEY =
        "insert into signing_key (id, secret, created_at_ms, active_from_ms)
         select $1, $2, $3, $4 where not exists (select 1 from signing_key)";
    Coordinator ADD_SIGNING_KEY =
        "insert into signing_key (id, secret, created_at_ms, active_from_ms) values ($1, $2, $3, $4)";
    Coordinator REMOVE_SIGNING_KEY = "delete from signing_key where id = $1";

    Coordinator API_KEYS =
        "select id, digest, name, scopes, experiments, replaces, created_at_ms, expires_at_ms,
             revoked_at_ms, last_used_at_ms
         from api_key order by id";
    Coordinator ADD_API_KEY = "insert into api_key
             (id, digest, name, scopes, experiments, replaces, created_at_ms, expires_at_ms)
         values ($1, $2, $3, $4, $5, $6, $7, $8)";
    Coordinator END_API_KEY = "update api_key set expires_at_ms = $2
         where id = $1 and revoked_at_ms is null and (expires_at_ms is null or expires_at_ms > $2)";
    Coordinator REVOKE_API_KEY =
        "update api_key set revoked_at_ms = $2 where id = $1 and revoked_at_ms is null";
    Coordinator NOTE_KEY_USE = "update api_key set last_used_at_ms = $2
         where id = $1 and (last_used_at_ms is null or last_used_at_ms < $2)";

    Coordinator ENDED_SESSIONS = "select id from ended_session";
    Coordinator END_SESSION = "insert into ended_session (id, expires_at_ms) values ($1, $2)
         on conflict (id) do nothing";
    Coordinator FORGET_ENDED_SESSIONS = "delete from ended_session where expires_at_ms < $1";

    Coordinator ADD_AUDIT = "insert into audit (at_ms, who, what, subject, experiment, before, after, request_id, once)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (once) do nothing";
    Coordinator AUDIT = "select id, at_ms, who, what, subject, experiment, before, after, request_id from audit
         where id < $1 order by id desc limit $2";
    Coordinator AUDIT_OF_EXPERIMENT = "select id, at_ms, who, what, subject, experiment, before, after, request_id from audit
         where id < $1 and experiment = $3 order by id desc limit $2";
    Coordinator SET = "select id, keys_in, keys_at, epoch from database_set where one = 1";
    Coordinator MEMBERS = "select id, place from set_member order by id";
    Experiments IS_EMPTY = "select not exists (select 1 from experiment)
         and not exists (select 1 from signing_key) and not exists (select 1 from api_key)";
    /// An epoch never goes back, also if two processes change the set at once.
    Coordinator ENTER_SET = "update database_set
         set keys_in = $1, keys_at = $2, epoch = case when epoch < $3 then $3 else epoch end
         where one = 1";
    Coordinator ADD_MEMBER = "insert into set_member (id, place) values ($1, $2) on conflict (id) do nothing";
    /// Also one that nobody sees.
    Experiment ANY_EXPERIMENT = concat!("select ", experiment_columns!(), " from experiment where id = $1");
    Experiments KNOWS = "select exists (select 1 from experiment where id = $1 or name = $2)";
    Experiment PRESENCE = "select presence, move_id, moving_to from experiment where id = $1";
    Experiments NOT_HERE = "select id, name, presence from experiment
         where id > $1 and presence <> 'here' order by id limit $2";
    /// What is left of an experiment that has gone makes place for an import.
    Experiment FORGET_GONE = "delete from experiment where id = $1 and name = $2 and presence = 'gone'";
    Experiment BEGIN_MOVE = "update experiment set move_id = $2, moving_to = $3
         where id = $1 and presence = 'here' and move_id is null";
    Experiment FREEZE = "update experiment set presence = 'frozen'
         where id = $1 and presence in ('here', 'frozen') and move_id = $2";
    Experiment STAY = "update experiment set move_id = null, moving_to = null
         where id = $1 and presence = 'here' and move_id = $2";
    Experiment THAW = "update experiment set presence = 'here', move_id = null, moving_to = null
         where id = $1 and presence = 'frozen' and move_id = $2";
    Experiment LEAVE = "update experiment set presence = 'gone', move_id = null, moving_to = null
         where id = $1 and presence = 'frozen' and move_id = $2";
    /// The version is not known yet; no program sees the row. A move that was turned away cannot
    /// begin again.
    Experiment EXPECT = "insert into experiment
             (id, move_id, name, spec, seed, status, version, head, pruned_to, created_at_ms,
              updated_at_ms, presence)
         values ($1, $2, $3, $4, $5, $6, 1, $7, $7, $8, $8, 'arriving')
         on conflict (id) do update
         set presence = 'arriving', move_id = excluded.move_id, head = excluded.head,
             pruned_to = excluded.pruned_to, winner = null, archived_at_ms = null
         where experiment.presence = 'gone'
           and (experiment.move_id is null or experiment.move_id <> excluded.move_id)";
    /// The new head `$4` of a copy whose head is `$3`.
    Experiment COPIED = "update experiment set head = $4
         where id = $1 and presence = 'arriving' and move_id = $2 and head = $3";
    Experiment ARRIVE = "update experiment
         set presence = 'here', move_id = null, spec = $4, status = $5, winner = $6, version = $7,
             updated_at_ms = $8, archived_at_ms = $9, interleaving = $10
         where id = $1 and presence = 'arriving' and move_id = $2 and head = $3";
    /// The row keeps the move's id, so that the move cannot begin again.
    Experiment TURN_AWAY = "update experiment set presence = 'gone'
         where id = $1 and presence = 'arriving' and move_id = $2";
    Experiment CLEAR_SNAPSHOTS = "delete from snapshot where experiment_id = $1
         and exists (select 1 from experiment where id = $1 and presence = 'gone')";
    Experiment CLEAR_ENTRIES = "delete from log where experiment_id = $1 and position <= $2
         and exists (select 1 from experiment where id = $1 and presence = 'gone')";
}

pub const SET_CHANGED: &str = "the set of databases has changed since this process started: \
     restart it with all of them";
