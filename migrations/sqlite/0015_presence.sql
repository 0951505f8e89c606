-- Where an experiment of several databases is. Its PostgreSQL twin has the same number and says
-- what the values mean.
alter table experiment add column presence text not null default 'here'
    constraint experiment_presence check (presence in ('here', 'frozen', 'arriving', 'gone'));
-- 16 random bytes that name the move, while there is one.
alter table experiment add column move_id blob;
-- The identity of the database that the experiment moves to, at the database that it leaves.
alter table experiment add column moving_to blob;
