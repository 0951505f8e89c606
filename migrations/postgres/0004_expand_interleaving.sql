-- How rankings are interleaved, once that has changed. Its SQLite twin has the same number and says the same.

-- JSON that the database does not look into; null: as the experiment was created.
alter table experiment add column interleaving text;
