-- Sessions of the dashboard that were ended before their time. Its PostgreSQL twin has the same number and says the
-- same.

-- A session is a signed cookie that is kept nowhere; only the end of one has to be known to every server.
create table ended_session (
    -- 16 random bytes, which the cookie has too.
    id blob primary key check (length(id) = 16),
    -- From then on the cookie is refused anyway, and the row can go.
    expires_at_ms integer not null
) strict, without rowid;
