alter table experiment add constraint experiment_presence
    check (presence in ('here', 'frozen', 'arriving', 'gone'));
