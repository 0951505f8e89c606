-- Nothing: in PostgreSQL, `log` no longer refers to `experiment`, because checking that for each entry is dear there.
select 1;
