-- The databases of the set, in the database that has its keys.
create table set_member (
    -- Its identity.
    id bytea not null constraint set_member_pkey primary key
        constraint set_member_id check (length(id) = 16),
    -- Host and database, or path, when it joined.
    place text not null
);
