-- Experiments whose ids are computed from their names. Its SQLite twin has the same number.
--
-- The program computes the id of a new experiment, so that the id alone says where the experiment
-- is. A name is unique because its id is; experiments that were numbered keep their numbers, and
-- the program looks for them by name. No constraint spans experiments, as a distributed database
-- demands. Older programs cannot create experiments any more, so they are stopped.
alter table experiment
    alter column id drop identity,
    drop constraint experiment_name_key;
