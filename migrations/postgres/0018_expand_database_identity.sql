insert into database_set (one, id, epoch) values (1, uuid_send(gen_random_uuid()), 0);
