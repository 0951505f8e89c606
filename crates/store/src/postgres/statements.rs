//! The statements of PostgreSQL alone. Those that read alike in both databases are in
//! [`crate::sql::statements`].

use crate::sql::statement::statements;

/// The heads of experiments.
macro_rules! heads_where {
    ($which:literal) => {
        concat!(
            "select id, version, head, archived_at_ms is not null as archived
             from experiment where ",
            $which
        )
    };
}

statements! {
    Experiment LOCK_EXPERIMENT =
        "select {experiment} from experiment where id = $1 for no key update";
    /// Does not queue for the row: feedback behind it would wait for two locks in turn, which is
    /// longer than a commit may take.
    Experiment SAVE_ANSWER = "update experiment
         set answer = $3, answered_to = $2, state = $5, list_group = $6, due_at_ms = $7
         where id = $1 and answered_to <= $2 and coalesce(answer, '') = $4
           and id in (select id from experiment where id = $1 for no key update skip locked)";
    /// "If there is no key yet" cannot be a constraint, so only one process at a time may check
    /// and add.
    Coordinator LOCK_SIGNING_KEYS = "lock table signing_key in share row exclusive mode";

    /// After the table was made known to the other nodes, which starts its ids again.
    Coordinator CONTINUE_AUDIT_IDS = "select setval(pg_get_serial_sequence('audit', 'id'), max(id))
         from audit having count(*) > 0";

    Experiments HEADS = heads_where!("id = any($1) order by id");
    /// `no key`: rows that only refer to an experiment do not wait.
    Experiment LOCK_HEAD = heads_where!("id = $1 for no key update");
    /// Locks rows in the order of the result.
    Together LOCK_HEADS = heads_where!("id = any($1) order by id for no key update");

    /// The entries of one experiment under any of these nonces.
    Experiment KNOWN_ENTRIES =
        "select {log} from log where experiment_id = $1 and nonce = any($2)";
    /// `offset 0` keeps the planner from merging the inner select: one index lookup for each nonce.
    Together KNOWN_ENTRIES_OF_SEVERAL =
        "select known.* from unnest($1::bigint[], $2::uuid[]) as given (experiment_id, nonce)
         cross join lateral (
             select {log} from log
             where log.experiment_id = given.experiment_id and log.nonce = given.nonce offset 0
         ) as known";

    /// A copy takes no parameters: these are replaced by numbers.
    Experiment READ_BULK =
        "copy (select {log} from log where experiment_id = $1 and position > $2
         order by position limit $3) to stdout (format binary)";

    /// Lock the head of `$1`, write entries above it and move it: one trip to one node. The
    /// result is the experiment, its new head and the last parameter, which proves whose answer it
    /// is; null if the experiment does not exist or is archived. The positions of the entries are
    /// counted from the head.
    Experiment APPEND = "select append_entries($1, {log arrays 2}, {after arrays 2})";
    /// Lock heads in order, write entries and move the heads, if every experiment exists and is
    /// not archived. A lock that had to wait reads the head as it is afterwards. `$1` has the
    /// experiments and `$2` the number of entries of each. The positions of the entries are counted
    /// from the heads. Each line of the result is as that of `APPEND`.
    Together APPEND_TO_SEVERAL =
        "with locked as materialized (
             select id, head from experiment where id = any($1) and archived_at_ms is null
             order by id for no key update
         ), open as materialized (
             select id, head from locked
             where (select count(*) from locked) = cardinality($1::bigint[])
         ), entries as (
             insert into log ({log})
             select {log above heads} from unnest($3::bigint[], {log arrays 4}) as entry ({log})
             join open on open.id = entry.experiment_id
         )
         update experiment set head = open.head + added.entries
         from open
         join unnest($1::bigint[], $2::bigint[]) as added (id, entries) on added.id = open.id
         where experiment.id = open.id
         returning experiment.id || ' ' || experiment.head || ' ' || {after arrays 4}::bigint";

    Experiment INSERT_ROW = "insert into log ({log}) values ({log values})";
    /// The rows have their experiments.
    Experiment COPY_ROWS = "copy log ({log}) from stdin (format binary)";
    Experiment MOVE_HEAD = "update experiment set head = $2 where id = $1";
    Together MOVE_HEADS = "update experiment set head = moved.head
         from unnest($1::bigint[], $2::bigint[]) as moved (id, head) where experiment.id = moved.id";
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::sql::statement::{Reach, Statement};
    use crate::sql::statements;

    const DISTRIBUTED: [&str; 3] = ["experiment", "log", "snapshot"];

    fn words(sql: &str) -> Vec<&str> {
        sql.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
            .filter(|word| !word.is_empty())
            .collect()
    }

    /// The table and the first column of the table that an insertion or a copy writes.
    fn written(sql: &str) -> Option<(&str, Vec<&str>)> {
        let rest = sql
            .strip_prefix("insert into ")
            .or_else(|| sql.strip_prefix("copy ").filter(|rest| !rest.starts_with('(')))?;
        let (table, rest) = rest.split_once('(')?;
        let (columns, _) = rest.split_once(')')?;
        Some((table.trim(), words(columns)))
    }

    fn names_its_experiment(sql: &str) -> bool {
        let plain = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((table, columns)) = written(&plain) {
            let key = if table == "experiment" { "id" } else { "experiment_id" };
            return columns.contains(&key);
        }
        plain.starts_with("select append_entries($1,")
            || words(&plain).windows(2).any(|pair| {
                matches!(pair[0], "experiment_id" | "id")
                    && pair[1].starts_with('$')
                    && plain.contains(&format!("{} = {}", pair[0], pair[1]))
            })
    }

    fn locks_or_writes(sql: &str) -> bool {
        let words = words(sql);
        let has = |word| words.contains(&word);
        has("update") || has("insert") || has("delete") || has("lock") || has("share")
    }

    fn of_experiments(sql: &str) -> bool {
        let words = words(sql);
        words.windows(2).any(|pair| {
            matches!(pair[0], "from" | "into" | "update" | "join" | "table" | "copy")
                && DISTRIBUTED.contains(&pair[1])
        }) || sql.contains("append_entries")
    }

    fn all() -> impl Iterator<Item = &'static Statement> {
        ALL.iter().chain(statements::ALL).copied()
    }

    /// The statement of a database with experiments on several nodes.
    #[test]
    fn every_statement_suits_a_distributed_database() {
        for statement in all() {
            let Statement { name, reach, .. } = statement;
            let sql = statement.sql();
            match reach {
                Reach::Experiment => {
                    assert!(of_experiments(sql), "{name} has no table of experiments: {sql}");
                    assert!(
                        names_its_experiment(sql),
                        "{name} does not name its experiment: {sql}"
                    );
                }
                Reach::Experiments => {
                    assert!(of_experiments(sql), "{name} has no table of experiments: {sql}");
                    assert!(!locks_or_writes(sql), "{name} locks or writes many nodes: {sql}");
                }
                Reach::Coordinator => {
                    assert!(!of_experiments(sql), "{name} is about experiments: {sql}");
                }
                Reach::Together => {
                    assert!(!names_its_experiment(sql), "{name} suits one experiment: {sql}");
                }
            }
        }
    }

    /// The reads of many experiments, which ask every node. A new one is a decision.
    #[test]
    fn few_statements_ask_every_node() {
        let everywhere: Vec<_> = all()
            .filter(|statement| statement.reach == Reach::Experiments)
            .map(|statement| statement.name)
            .collect();
        assert_eq!(everywhere, ["HEADS", "EXPERIMENTS", "LISTED", "LIST_SIZE", "DUE", "NAMES"]);
    }

    #[test]
    fn the_checks_tell_statements_apart() {
        assert!(!names_its_experiment("update experiment set head = 1"));
        assert!(!names_its_experiment("select 1 from log where experiment_id = any($1)"));
        assert!(!names_its_experiment("insert into log (position) values ($1)"));
        assert!(!names_its_experiment("delete from log where position <= $1"));
        assert!(names_its_experiment("delete from log where experiment_id = $1"));
        assert!(locks_or_writes("select id from experiment for no key update"));
        assert!(of_experiments("delete from snapshot where position < 1"));
        assert!(!of_experiments("select id from audit where experiment = $1"));
    }
}
