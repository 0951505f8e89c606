-- Nothing: the name is unique here and has an index.
select 1;
