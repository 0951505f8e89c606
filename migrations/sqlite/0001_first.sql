-- The first schema, for SQLite. Its PostgreSQL twin has the same number and says the same.
--
-- Times are unix milliseconds. A column that holds all 64 bits of an unsigned number (seed, ticket, chosen_at) keeps
-- its bits as they are, so a value above 2^63 - 1 reads as a negative one; positions and versions are counted here
-- and never come near.
--
-- Whoever changes the schema adds a file to both folders and never edits one that has been released.

-- An experiment: what it was created from, where it stands, and how long its log is. Rows are never deleted; an
-- archived experiment keeps its name and its log.
create table experiment (
    id integer primary key,
    name text not null unique,
    -- What it was created with, as JSON that the database does not look into.
    spec text not null,
    seed integer not null,
    status text not null check (status in ('running', 'paused', 'concluded')),
    -- Index of the ranker that it was concluded on.
    winner integer check (winner between 0 and 65535),
    -- Counts the changes of this row, from 1; appending to the log is none.
    version integer not null check (version >= 1),
    -- Position of the newest log entry; 0 before the first.
    head integer not null check (head >= 0),
    created_at_ms integer not null,
    updated_at_ms integer not null,
    archived_at_ms integer
) strict;

-- Listing goes by name through those that are not archived.
create index experiment_listed on experiment (name) where archived_at_ms is null;

-- What happened, in order. Positions of an experiment are 1, 2, 3, … without a gap, and a nonce counts once per
-- experiment. Rows are only ever added.
--
-- An outcome (kind 0) is spread over columns because there are many; the rarer events (kind 1) are JSON in `detail`.
-- The table is its own primary key: entries of an experiment lie side by side, which is how they are read.
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
    -- 0 the first won, 1 the second won, 2 a tie, 3 no click.
    answer integer,
    batch integer,
    ticket integer,
    -- Log position that the duel was selected at.
    chosen_at integer,
    issued_at_ms integer,
    detail text,
    primary key (experiment_id, position),
    unique (experiment_id, nonce)
) strict, without rowid;

-- A fold's state at a log position. A cache: losing a row costs a start time and nothing else.
create table snapshot (
    experiment_id integer not null references experiment (id),
    -- Layout of the bytes; a program reads only the layouts it knows.
    format integer not null,
    position integer not null check (position >= 0),
    state blob not null,
    created_at_ms integer not null,
    primary key (experiment_id, format, position)
) strict;

-- The keys that duels are signed with.
create table signing_key (
    id integer primary key,
    secret blob not null check (length(secret) = 32),
    created_at_ms integer not null
) strict;
