-- The schema for PostgreSQL 14 and later. Its SQLite twin has the same tables and columns.
--
-- A change of the schema adds a file to both folders; a released file is never edited. The name
-- `NNNN_expand_…` promises that programs which do not know the migration can go on: new columns
-- have defaults, and nothing is removed or changes its meaning. Each later migration has one
-- command and names its constraints, because a distributed database refuses others.
--
-- No constraint and no reference spans experiments, so that a database can be distributed by
-- experiment. Times are unix milliseconds. Columns with all 64 bits of an unsigned number (seed,
-- ticket, chosen_at, unit) keep its bits, so a value above 2^63 - 1 reads as a negative one.

-- An experiment. Rows are never deleted: an archived experiment keeps its name and its log.
--
-- Every append changes `head`. Half of each page is left free, so that the new version of a row
-- fits beside the old one and no index is touched.
create table experiment (
    -- Drawn at random: an experiment that is created again is another one.
    id bigint primary key,
    -- Names sort by their bytes, as in SQLite, whatever the locale of the database.
    name text collate "C" not null,
    -- The specification that the log folds to, as JSON that the database does not parse.
    spec text not null,
    seed bigint not null,
    status text not null check (status in ('running', 'paused', 'concluded')),
    -- Index of the ranker that it was concluded with.
    winner integer check (winner between 0 and 65535),
    -- Counts the changes of this row, from 1. An append is not a change.
    version bigint not null check (version >= 1),
    -- Position of the newest log entry. The first one is the creation.
    head bigint not null check (head >= 0),
    -- Log entries up to this position were pruned, and a snapshot at or above it takes their
    -- place. 0: the log is whole.
    pruned_to bigint not null default 0 check (pruned_to >= 0),
    created_at_ms bigint not null,
    updated_at_ms bigint not null,
    archived_at_ms bigint,
    -- The answer, as JSON that the database does not parse; null until a server has looked.
    answer text,
    -- The log position of `answer`.
    answered_to bigint not null default 0,
    -- The state of `answer`, and the group of the list that it belongs to, the first one first.
    state text collate "C" not null,
    list_group integer not null check (list_group between 0 and 3),
    -- When a server has to look again, whatever is requested; null: never.
    due_at_ms bigint,
    -- As in `spec`, for the list.
    owner text collate "C"
) with (fillfactor = 50);

-- All names in order.
create index experiment_by_name on experiment (name);
-- The experiments as the dashboard lists them.
create index experiment_grouped on experiment (list_group, name);
-- Those that are not archived, by the time at which a server has to look.
create index experiment_due on experiment (due_at_ms, id) where archived_at_ms is null;

-- The experiment that has a name. A table of its own, because a distributed database cannot make the
-- names in `experiment` unique.
create table experiment_name (
    name text collate "C" primary key,
    id bigint not null
);

-- The logs. Positions of an experiment are 1, 2, 3, … without a gap, and a nonce counts once for
-- each experiment. Rows are added at the end, and only pruning deletes any.
--
-- Outcomes (kind 0) have columns of their own, because there are many. Other events (kind 1) are
-- JSON in `detail`. The order of the columns avoids padding. Nothing refers to `experiment`: an
-- append locks the rows of its experiments, so a check for each entry would only cost time.
create table log (
    experiment_id bigint not null,
    position bigint not null check (position >= 1),
    recorded_at_ms bigint not null,
    nonce uuid not null,
    issued_at_ms bigint,
    -- Log position at which the duel was selected.
    chosen_at bigint,
    ticket bigint,
    batch bigint,
    -- Hash of the unit that answered.
    unit bigint,
    first_ranker integer,
    second_ranker integer,
    kind smallint not null check (kind in (0, 1)),
    -- 0: the first won; 1: the second won; 2: a tie; 3: no click.
    answer smallint,
    first_left boolean,
    segment text,
    detail text,
    primary key (experiment_id, position),
    unique (experiment_id, nonce)
);

-- States of folds at log positions. A cache: without a row, the next start takes longer.
create table snapshot (
    experiment_id bigint not null,
    -- Layout of the bytes. A program reads the layouts that it knows.
    format bigint not null,
    position bigint not null check (position >= 0),
    state bytea not null,
    created_at_ms bigint not null,
    primary key (experiment_id, format, position)
);

-- The keys that duels are signed with. A key verifies for as long as it is here.
create table signing_key (
    id bigint primary key,
    secret bytea not null check (length(secret) = 32),
    created_at_ms bigint not null,
    -- The time from which it signs. Every server knows it by then.
    active_from_ms bigint not null
);

-- The keys of callers. Rows are never deleted: a database that has had a key stays closed.
create table api_key (
    -- The first 32 bits of the digest, in hexadecimal.
    id text primary key check (length(id) = 8),
    -- SHA-256 of the key's text.
    digest bytea not null unique check (length(digest) = 32),
    name text not null,
    -- Names of scopes, separated by spaces.
    scopes text not null,
    -- JSON array of the names of experiments that it is valid for; null: all.
    experiments text,
    -- The key that it replaces.
    replaces text,
    created_at_ms bigint not null,
    expires_at_ms bigint,
    revoked_at_ms bigint,
    -- To the minute.
    last_used_at_ms bigint
);

-- The audit log. Rows are only added.
create table audit (
    id bigint generated always as identity primary key,
    at_ms bigint not null,
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
);

create index audit_of_experiment on audit (experiment, id);

-- Sessions of the dashboard that were ended before their time. Other sessions are signed cookies
-- and are kept nowhere.
create table ended_session (
    -- 16 random bytes of the cookie.
    id bytea primary key check (length(id) = 16),
    -- From then on the cookie is refused anyway, and the row can go.
    expires_at_ms bigint not null
);

-- Notices that a webhook has not taken. They outlive what they are about.
create table webhook_notice (
    -- Drawn at random; the receiver knows a repeat by it.
    id text primary key,
    -- Name of the experiment.
    experiment text not null,
    -- JSON that the database does not parse.
    body text not null,
    queued_at_ms bigint not null,
    attempts bigint not null default 0 check (attempts >= 0),
    -- No server tries before: the pause after a failure, or another server is trying.
    due_at_ms bigint not null
);

-- Appends entries to one experiment: locks its head, writes the entries above it and moves it.
-- Their positions are counted from the head. Returns the experiment, its new head and `proof`, which
-- shows the caller that the answer is its own; null if the experiment does not exist or is
-- archived. A distributed database runs the call on the node that has the experiment, in one trip.
create function append_entries(
    experiment bigint, positions bigint[], nonces uuid[], times bigint[], kinds smallint[],
    firsts integer[], seconds integer[], lefts boolean[], answers smallint[], batches bigint[],
    tickets bigint[], chosen bigint[], issued bigint[], units bigint[], segments text[],
    details text[], proof bigint
) returns text language plpgsql set search_path from current as $$
declare
    before bigint;
begin
    select e.head into before from experiment as e
    where e.id = append_entries.experiment and e.archived_at_ms is null
    for no key update;
    if not found then
        return null;
    end if;
    insert into log (
        experiment_id, position, nonce, recorded_at_ms, kind, first_ranker, second_ranker,
        first_left, answer, batch, ticket, chosen_at, issued_at_ms, unit, segment, detail
    )
    select append_entries.experiment, before + entry.position, entry.nonce, entry.recorded_at_ms,
        entry.kind, entry.first_ranker, entry.second_ranker, entry.first_left, entry.answer,
        entry.batch, entry.ticket, entry.chosen_at, entry.issued_at_ms, entry.unit, entry.segment,
        entry.detail
    from unnest(
        positions, nonces, times, kinds, firsts, seconds, lefts, answers, batches, tickets, chosen,
        issued, units, segments, details
    ) as entry (
        position, nonce, recorded_at_ms, kind, first_ranker, second_ranker, first_left, answer,
        batch, ticket, chosen_at, issued_at_ms, unit, segment, detail
    );
    update experiment as e set head = before + cardinality(positions)
    where e.id = append_entries.experiment;
    return experiment || ' ' || before + cardinality(positions) || ' ' || proof;
end $$;
