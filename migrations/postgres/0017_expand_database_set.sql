-- The identity of this database, and the set of databases that it serves in. One row.
create table database_set (
    one smallint not null constraint database_set_pkey primary key
        constraint database_set_one check (one = 1),
    -- 16 random bytes: the identity of this database.
    id bytea not null constraint database_set_id check (length(id) = 16),
    -- The identity of the database that has the keys of the set, and where it was; null: this
    -- database serves alone.
    keys_in bytea,
    keys_at text,
    -- Grows with each change of the set. 0: this database has always served alone.
    epoch bigint not null
);
