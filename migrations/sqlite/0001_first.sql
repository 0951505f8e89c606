-- The schema for SQLite. Its PostgreSQL twin has the same tables and columns.
--
-- A change of the schema adds a file to both folders; a released file is never edited. The name
-- `NNNN_expand_…` promises that programs which do not know the migration can go on: new columns
-- have defaults, and nothing is removed or changes its meaning.
--
-- Times are unix milliseconds. Columns with all 64 bits of an unsigned number (seed, ticket,
-- chosen_at, unit) keep its bits, so a value above 2^63 - 1 reads as a negative one.

-- An experiment. Rows are never deleted: an archived experiment keeps its name and its log.
create table experiment (
    -- Drawn at random: an experiment that is created again is another one.
    id integer primary key,
    name text not null,
    -- The specification that the log folds to, as JSON that the database does not parse.
    spec text not null,
    seed integer not null,
    status text not null check (status in ('running', 'paused', 'concluded')),
    -- Index of the ranker that it was concluded with.
    winner integer check (winner between 0 and 65535),
    -- Counts the changes of this row, from 1. An append is not a change.
    version integer not null check (version >= 1),
    -- Position of the newest log entry. The first one is the creation.
    head integer not null check (head >= 0),
    -- Log entries up to this position were pruned, and a snapshot at or above it takes their
    -- place. 0: the log is whole.
    pruned_to integer not null default 0 check (pruned_to >= 0),
    created_at_ms integer not null,
    updated_at_ms integer not null,
    archived_at_ms integer,
    -- The answer, as JSON that the database does not parse; null until a server has looked.
    answer text,
    -- The log position of `answer`.
    answered_to integer not null default 0,
    -- The state of `answer`, and the group of the list that it belongs to, the first one first.
    state text not null,
    list_group integer not null check (list_group between 0 and 3),
    -- When a server has to look again, whatever is requested; null: never.
    due_at_ms integer,
    -- As in `spec`, for the list.
    owner text
) strict;

-- All names in order.
create index experiment_by_name on experiment (name);
-- The experiments as the dashboard lists them.
create index experiment_grouped on experiment (list_group, name);
-- Those that are not archived, by the time at which a server has to look.
create index experiment_due on experiment (due_at_ms, id) where archived_at_ms is null;

-- The experiment that has a name. A table of its own, because a distributed database cannot make the
-- names in `experiment` unique.
create table experiment_name (
    name text primary key,
    id integer not null
) strict, without rowid;

-- The logs. Positions of an experiment are 1, 2, 3, … without a gap, and a nonce counts once for
-- each experiment. Rows are added at the end, and only pruning deletes any.
--
-- Outcomes (kind 0) have columns of their own, because there are many. Other events (kind 1) are
-- JSON in `detail`. The table is its own primary key: entries of an experiment are stored side by
-- side, which is how they are read.
create table log (
    experiment_id integer not null references experiment (id),
    position integer not null check (position >= 1),
    -- 16 bytes.
    nonce blob not null check (length(nonce) = 16),
    recorded_at_ms integer not null,
    kind integer not null check (kind in (0, 1)),
    first_ranker integer,
    second_ranker integer,
    first_left integer,
    -- 0: the first won; 1: the second won; 2: a tie; 3: no click.
    answer integer,
    batch integer,
    ticket integer,
    -- Log position at which the duel was selected.
    chosen_at integer,
    issued_at_ms integer,
    -- Hash of the unit that answered.
    unit integer,
    segment text,
    detail text,
    primary key (experiment_id, position),
    unique (experiment_id, nonce)
) strict, without rowid;

-- States of folds at log positions. A cache: without a row, the next start takes longer.
create table snapshot (
    experiment_id integer not null references experiment (id),
    -- Layout of the bytes. A program reads the layouts that it knows.
    format integer not null,
    position integer not null check (position >= 0),
    state blob not null,
    created_at_ms integer not null,
    primary key (experiment_id, format, position)
) strict;

-- The keys that duels are signed with. A key verifies for as long as it is here.
create table signing_key (
    id integer primary key,
    secret blob not null check (length(secret) = 32),
    created_at_ms integer not null,
    -- The time from which it signs. Every server knows it by then.
    active_from_ms integer not null
) strict;

-- The keys of callers. Rows are never deleted: a database that has had a key stays closed.
create table api_key (
    -- The first 32 bits of the digest, in hexadecimal.
    id text primary key check (length(id) = 8),
    -- SHA-256 of the key's text.
    digest blob not null unique check (length(digest) = 32),
    name text not null,
    -- Names of scopes, separated by spaces.
    scopes text not null,
    -- JSON array of the names of experiments that it is valid for; null: all.
    experiments text,
    -- The key that it replaces.
    replaces text,
    created_at_ms integer not null,
    expires_at_ms integer,
    revoked_at_ms integer,
    -- To the minute.
    last_used_at_ms integer
) strict, without rowid;

-- The audit log. Rows are only added.
create table audit (
    id integer primary key autoincrement,
    at_ms integer not null,
    -- key:ID, anyone (a server without keys), service or command-line.
    who text not null,
    -- Such as experiment-created, key-revoked or log-pruned.
    what text not null,
    -- Name of an experiment, or id of a key.
    subject text not null,
    -- Name of the experiment, if it is about one.
    experiment text,
    -- Values before and after the action, as JSON.
    before text,
    after text,
    request_id text
) strict;

create index audit_of_experiment on audit (experiment, id);

-- Sessions of the dashboard that were ended before their time. Other sessions are signed cookies
-- and are kept nowhere.
create table ended_session (
    -- 16 random bytes of the cookie.
    id blob primary key check (length(id) = 16),
    -- From then on the cookie is refused anyway, and the row can go.
    expires_at_ms integer not null
) strict, without rowid;

-- Notices that a webhook has not taken. They outlive what they are about.
create table webhook_notice (
    -- Drawn at random; the receiver knows a repeat by it.
    id text primary key,
    -- Name of the experiment.
    experiment text not null,
    -- JSON that the database does not parse.
    body text not null,
    queued_at_ms integer not null,
    attempts integer not null default 0 check (attempts >= 0),
    -- No server tries before: the pause after a failure, or another server is trying.
    due_at_ms integer not null
) strict, without rowid;
