-- The databases of the set, in the database that has its keys. Its PostgreSQL twin has the same
-- number and says the same.
create table set_member (
    -- Its identity.
    id blob not null constraint set_member_pkey primary key
        constraint set_member_id check (length(id) = 16),
    -- Host and database, or path, when it joined.
    place text not null
) strict, without rowid;
