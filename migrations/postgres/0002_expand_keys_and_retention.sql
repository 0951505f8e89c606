-- Keys that take turns, and logs whose beginning was pruned. Its SQLite twin has the same number and says the same.
--
-- `expand` in a file's name promises that a program that does not know the migration can go on working on the schema
-- after it: new columns have defaults and nothing goes. Such a program then serves side by side with a newer one.

-- From when on the key signs: those who verify learn of it before. A key verifies for as long as it is here.
alter table signing_key add column active_from_ms bigint not null default 0;

-- Log entries up to this position were pruned; a snapshot at or above it takes their place. 0: the log is whole.
alter table experiment add column pruned_to bigint not null default 0 check (pruned_to >= 0);
