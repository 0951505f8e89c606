-- The first schema, for PostgreSQL 14 and later. Its SQLite twin has the same number and says the same.
--
-- Times are unix milliseconds. A column that holds all 64 bits of an unsigned number (seed, ticket, chosen_at) keeps
-- its bits as they are, so a value above 2^63 - 1 reads as a negative one; positions and versions are counted here
-- and never come near.
--
-- Whoever changes the schema adds a file to both folders and never edits one that has been released.

-- An experiment: what it was created from, where it stands, and how long its log is. Rows are never deleted; an
-- archived experiment keeps its name and its log. Names sort by their bytes, as they do in SQLite, whatever the
-- database's locale.
--
-- Every append changes `head`. Half of each page is left free so that the new version of a row finds room beside the
-- old one and no index is touched.
create table experiment (
    id bigint generated always as identity primary key,
    name text collate "C" not null unique,
    -- What it was created with, as JSON that the database does not look into.
    spec text not null,
    seed bigint not null,
    status text not null check (status in ('running', 'paused', 'concluded')),
    -- Index of the ranker that it was concluded on.
    winner integer check (winner between 0 and 65535),
    -- Counts the changes of this row, from 1; appending to the log is none.
    version bigint not null check (version >= 1),
    -- Position of the newest log entry; 0 before the first.
    head bigint not null check (head >= 0),
    created_at_ms bigint not null,
    updated_at_ms bigint not null,
    archived_at_ms bigint
) with (fillfactor = 50);

-- Listing goes by name through those that are not archived.
create index experiment_listed on experiment (name) where archived_at_ms is null;

-- What happened, in order. Positions of an experiment are 1, 2, 3, … without a gap, and a nonce counts once per
-- experiment. Rows are only ever added.
--
-- An outcome (kind 0) is spread over columns because there are many; the rarer events (kind 1) are JSON in `detail`.
-- Columns are ordered so that none needs padding.
create table log (
    experiment_id bigint not null references experiment (id),
    position bigint not null check (position >= 1),
    recorded_at_ms bigint not null,
    nonce uuid not null,
    issued_at_ms bigint,
    -- Log position that the duel was selected at.
    chosen_at bigint,
    ticket bigint,
    batch bigint,
    first_ranker integer,
    second_ranker integer,
    kind smallint not null check (kind in (0, 1)),
    -- 0 the first won, 1 the second won, 2 a tie, 3 no click.
    answer smallint,
    first_left boolean,
    detail text,
    primary key (experiment_id, position),
    unique (experiment_id, nonce)
);

-- A fold's state at a log position. A cache: losing a row costs a start time and nothing else.
create table snapshot (
    experiment_id bigint not null references experiment (id),
    -- Layout of the bytes; a program reads only the layouts it knows.
    format bigint not null,
    position bigint not null check (position >= 0),
    state bytea not null,
    created_at_ms bigint not null,
    primary key (experiment_id, format, position)
);

-- The keys that duels are signed with.
create table signing_key (
    id bigint primary key,
    secret bytea not null check (length(secret) = 32),
    created_at_ms bigint not null
);
