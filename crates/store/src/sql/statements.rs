//! The statements that read alike in both databases. Each begins with the part of a distributed
//! database that it reaches, its `Reach`; `{…}` stands for columns.

use super::statement::statements;

statements! {
    Coordinator MIGRATIONS =
        "select version, checksum, description from _sqlx_migrations where success order by version";

    Coordinator ID_OF_NAME = "select id from experiment_name where name = $1";
    Coordinator TAKE_NAME =
        "insert into experiment_name (name, id) values ($1, $2) on conflict (name) do nothing";
    /// From an experiment that does not exist any more.
    Coordinator TAKE_NAME_FROM = "update experiment_name set id = $2 where name = $1 and id = $3";
    Experiment EXPERIMENT = "select {experiment} from experiment where id = $1";
    Experiments EXPERIMENTS = "select {experiment} from experiment
         where {listed} and name > $5 order by name limit $6";
    Experiments LISTED =
        "select id, name, owner, status, list_group, updated_at_ms, answer from experiment
         where {listed} and (list_group, name) > ($5, $6) order by list_group, name limit $7";
    Experiments LIST_SIZE =
        "select list_group, count(*), count(*) filter (where (list_group, name) <= ($5, $6))
         from experiment where {listed} group by list_group";
    Experiments DUE = "select id, name, due_at_ms from experiment
         where archived_at_ms is null and due_at_ms <= $1 and (due_at_ms, id) > ($2, $3)
         order by due_at_ms, id limit $4";
    Experiments NAMES = "select name from experiment where name > $1 order by name limit $2";
    /// Of a new experiment, or of an imported one.
    Experiment CREATE_EXPERIMENT =
        "insert into experiment ({experiment}, owner, state, list_group, due_at_ms)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $9)";
    /// `$6` is the version before the change.
    Experiment CHANGE_EXPERIMENT = "update experiment
         set status = $1, winner = $2, archived_at_ms = $3, updated_at_ms = $4, due_at_ms = $4,
             spec = $7, owner = $8,
             version = version + 1, head = head + 1
         where id = $5 and version = $6";
    Experiment READ =
        "select {log} from log where experiment_id = $1 and position > $2 order by position limit $3";
    /// Checks the conditions of pruning under the row's lock: they may have changed since the
    /// caller checked them.
    Experiment PRUNE = "update experiment set pruned_to = $2
         where id = $1 and pruned_to <= $2 and head >= $2
           and (status = 'concluded' or archived_at_ms is not null)
           and exists (
               select 1 from snapshot where experiment_id = $1 and format = $3 and position >= $2
           )";
    Experiment FIRST_POSITION =
        "select position from log where experiment_id = $1 order by position limit 1";
    Experiment DELETE_ENTRIES = "delete from log where experiment_id = $1 and position <= $2";
    Experiment SAVE_SNAPSHOT =
        "insert into snapshot (experiment_id, format, position, state, created_at_ms)
         select $1, $2, $3, $4, $5
         where exists (select 1 from experiment where id = $1 and head >= $3)
         on conflict (experiment_id, format, position) do update
         set state = excluded.state, created_at_ms = excluded.created_at_ms";
    /// Deletes the snapshots that one at position `$3` replaces, and those above the log's head.
    Experiment DELETE_SNAPSHOTS =
        "delete from snapshot where experiment_id = $1 and format = $2 and exists (
             select 1 from experiment
             where id = $1 and (snapshot.position > head or (snapshot.position < $3 and $3 <= head))
         )";
    Experiment NEWEST_SNAPSHOT =
        "select experiment_id, format, position, state, created_at_ms from snapshot
         where experiment_id = $1 and format = $2 order by position desc limit 1";
    Experiment SNAPSHOTS =
        "select experiment_id, format, position, state, created_at_ms from snapshot
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
    Coordinator END_SESSION =
        "insert into ended_session (id, expires_at_ms) values ($1, $2) on conflict (id) do nothing";
    Coordinator FORGET_ENDED_SESSIONS = "delete from ended_session where expires_at_ms < $1";

    Coordinator ADD_NOTICE =
        "insert into webhook_notice (id, experiment, body, queued_at_ms, due_at_ms)
         values ($1, $2, $3, $4, $4)";
    Coordinator DUE_NOTICE =
        "select id, experiment, body, queued_at_ms, attempts from webhook_notice
         where due_at_ms <= $1 and attempts between $2 and $3 order by due_at_ms, id limit 1";
    /// `$3` is the number of attempts that were read: another server may have taken it since.
    Coordinator TAKE_NOTICE = "update webhook_notice set attempts = attempts + 1, due_at_ms = $2
         where id = $1 and attempts = $3";
    Coordinator POSTPONE_NOTICE = "update webhook_notice set due_at_ms = $2 where id = $1";
    Coordinator REMOVE_NOTICE = "delete from webhook_notice where id = $1";
    Coordinator COUNT_NOTICES = "select count(*) from webhook_notice";

    Coordinator ADD_AUDIT = "insert into audit
             (at_ms, who, what, subject, experiment, before, after, request_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8)";
    Coordinator AUDIT =
        "select id, at_ms, who, what, subject, experiment, before, after, request_id from audit
         where id < $1 order by id desc limit $2";
    Coordinator AUDIT_OF_EXPERIMENT =
        "select id, at_ms, who, what, subject, experiment, before, after, request_id from audit
         where id < $1 and experiment = $3 order by id desc limit $2";
}
