-- Where an experiment of several databases is. Its SQLite twin has the same number.
--
-- `presence` says what this database has of the experiment:
--   here      all of it: it accepts events, unless it is archived
--   frozen    all of it: it accepts nothing while the rest is copied to another database
--   arriving  a part of it, copied from another database; nobody sees it yet
--   gone      what was left behind when it moved to another database; nobody sees it any more
-- Older programs would write to an experiment that has moved, so they are stopped.
alter table experiment
    add column presence text not null default 'here',
    -- 16 random bytes that name the move, while there is one.
    add column move_id bytea,
    -- The identity of the database that the experiment moves to, at the database that it leaves.
    add column moving_to bytea;
