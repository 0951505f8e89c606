-- Nothing: in PostgreSQL, `snapshot` no longer refers to `experiment`, because a distributed
-- database has the tables only without the reference.
select 1;
