-- Appending without a look at `experiment` for each entry.
--
-- An append locks the rows of its experiments and finds their heads there, and experiments are never deleted: an entry
-- of an experiment that does not exist cannot be. Checking the reference again for each entry took half of an append's
-- processor time. SQLite checks it by a look at a cached page and keeps it; its file of this number says so.
alter table log drop constraint log_experiment_id_fkey;
