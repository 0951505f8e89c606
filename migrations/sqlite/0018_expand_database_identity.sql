insert into database_set (one, id, epoch) values (1, randomblob(16), 0);
