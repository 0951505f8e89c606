-- API keys, and the audit log. Its PostgreSQL twin has the same number and says the same.

-- A key that callers present. Rows are never deleted: a database that has had a key is never open to everybody again.
create table api_key (
    -- The first 32 bits of the digest, in hexadecimal.
    id text primary key check (length(id) = 8),
    -- SHA-256 of the key's text.
    digest blob not null unique check (length(digest) = 32),
    name text not null,
    -- Names of scopes between spaces.
    scopes text not null,
    -- JSON array of the names of experiments that it is for; null: all.
    experiments text,
    -- The key that it was made to take the place of.
    replaces text,
    created_at_ms integer not null,
    expires_at_ms integer,
    revoked_at_ms integer,
    -- To the minute.
    last_used_at_ms integer
) strict, without rowid;

-- Who did what. Rows are only ever added.
create table audit (
    id integer primary key autoincrement,
    at_ms integer not null,
    -- key:ID, anyone (a server without keys), service, command-line.
    who text not null,
    -- Such as experiment-created, key-revoked, batch-closed.
    what text not null,
    -- Name of an experiment, or id of a key.
    subject text not null,
    -- Name of the experiment, where there is one.
    experiment text,
    -- JSON of what was before and after; null where there was nothing.
    before text,
    after text,
    request_id text,
    -- Names what several processes notice, so that one of them writes it.
    once text unique
) strict;

create index audit_of_experiment on audit (experiment, id);
