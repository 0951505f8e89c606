-- Finds the experiments that were numbered, and lists all names in order.
create index experiment_by_name on experiment (name);
