-- Nothing: the column has its constraint.
select 1;
