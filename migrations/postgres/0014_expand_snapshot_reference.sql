-- A snapshot is written by a statement that finds its experiment, and experiments are never
-- deleted: the reference cannot be wrong. A distributed database has the tables only without it.
alter table snapshot drop constraint snapshot_experiment_id_fkey;
