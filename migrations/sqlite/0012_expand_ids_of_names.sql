-- Nothing: the program computes the id of a new experiment from its name, and an older program goes
-- on to number its own. PostgreSQL, where a constraint must not span experiments, drops the unique
-- name here.
select 1;
