"""Compare two layouts of the log in PostgreSQL: a row for each entry, as it is, and a row for each
commit, whose entries are packed bytes:

    pip install 'psycopg[binary]'
    scripts/with-postgres python3 scripts/measure_packed_log.py [ROUNDS]

The packed layout needs a second table, because a repeat must be found by its nonce at any time: one
row for each entry with the nonce and the position, partitioned by the time at which the duel
expires. Prints the processor time of PostgreSQL's process for each entry, appended by commits of
1, 10, 100 and 10,000 entries and read again, and the bytes of tables, indexes and the write-ahead
log. Sides take turns; figures are medians of the rounds. The time to pack and unpack entries is the
server's, and is not included. Linux only: it reads /proc.
"""

import os
import statistics
import struct
import sys
import uuid

import psycopg

COMMITS = {1: 4_000, 10: 2_000, 100: 1_000, 10_000: 30}
COPY_FROM = 256
PARTITIONS = 24
PACKED_BYTES = 40
TICKS = os.sysconf("SC_CLK_TCK")

SCHEMA = """
drop table if exists head, log, chunk, nonce;
create table head (id bigint primary key, head bigint not null) with (fillfactor = 50);
insert into head values (1, 0);
create table log (
    experiment_id bigint not null, position bigint not null check (position >= 1),
    recorded_at_ms bigint not null, nonce uuid not null, issued_at_ms bigint, chosen_at bigint,
    ticket bigint, batch bigint, first_ranker integer, second_ranker integer,
    kind smallint not null check (kind in (0, 1)), answer smallint, first_left boolean, detail text,
    primary key (experiment_id, position), unique (experiment_id, nonce)
);
create table chunk (
    experiment_id bigint not null, last_position bigint not null, entries bytea not null,
    primary key (experiment_id, last_position)
);
alter table chunk alter column entries set storage external;
create table nonce (
    experiment_id bigint not null, nonce uuid not null, position bigint not null,
    expires_hour integer not null, primary key (expires_hour, experiment_id, nonce)
) partition by range (expires_hour);
""" + "".join(
    f"create table nonce_{hour} partition of nonce for values from ({hour}) to ({hour + 1});\n" for hour in range(PARTITIONS)
)

APPEND_ROWS = """
with moved as (update head set head = head + cardinality(%(nonces)s::uuid[]) where id = 1 returning head)
insert into log select 1, moved.head - cardinality(%(nonces)s::uuid[]) + ordinal, 1790000000000, nonce, issued, chosen, ticket,
    null, first, second, 0, answer, first_left, null
from moved, unnest(%(nonces)s::uuid[], %(issued)s::bigint[], %(chosen)s::bigint[], %(ticket)s::bigint[], %(first)s::integer[],
    %(second)s::integer[], %(answer)s::smallint[], %(left)s::boolean[])
    with ordinality as entry (nonce, issued, chosen, ticket, first, second, answer, first_left, ordinal)
"""
APPEND_PACKED = """
with moved as (update head set head = head + cardinality(%(nonces)s::uuid[]) where id = 1 returning head),
kept as (
    insert into nonce select 1, nonce, moved.head - cardinality(%(nonces)s::uuid[]) + ordinal, %(hour)s
    from moved, unnest(%(nonces)s::uuid[]) with ordinality as entry (nonce, ordinal)
)
insert into chunk select 1, moved.head, %(entries)s from moved
"""
MOVE_HEAD = "update head set head = head + %s where id = 1 returning head"
COPY_ROWS = "copy log from stdin (format binary)"
COPY_NONCES = "copy nonce from stdin (format binary)"
ROW_TYPES = ["int8", "int8", "int8", "uuid", "int8", "int8", "int8", "int8", "int4", "int4", "int2", "int2", "bool", "text"]


class Side:
    def __init__(self, url: str, packed: bool) -> None:
        self.packed = packed
        self.connection = psycopg.connect(url, prepare_threshold=0)
        self.pid = self.connection.info.backend_pid
        self.appended = 0

    def processor_seconds(self) -> float:
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def append(self, entries: int) -> None:
        nonces = [uuid.UUID(bytes=struct.pack(">QQ", 7, self.appended + index)) for index in range(entries)]
        self.appended += entries
        hour = self.appended // 100_000 % PARTITIONS
        with self.connection.cursor(binary=True) as cursor:
            if entries < COPY_FROM:
                numbers = list(range(entries))
                cursor.execute(
                    APPEND_PACKED if self.packed else APPEND_ROWS,
                    {
                        "nonces": nonces, "hour": hour, "entries": os.urandom(PACKED_BYTES * entries),
                        "issued": [1790000000000 + n for n in numbers], "chosen": numbers, "ticket": [n << 40 for n in numbers],
                        "first": [n % 10 for n in numbers], "second": [n % 9 for n in numbers], "answer": [n % 2 for n in numbers],
                        "left": [n % 3 == 0 for n in numbers],
                    } if not self.packed else {"nonces": nonces, "hour": hour, "entries": os.urandom(PACKED_BYTES * entries)},
                )
            else:
                head = cursor.execute(MOVE_HEAD, (entries,)).fetchone()[0]
                if self.packed:
                    with cursor.copy(COPY_NONCES) as copy:
                        copy.set_types(["int8", "uuid", "int8", "int4"])
                        for index, nonce in enumerate(nonces):
                            copy.write_row((1, nonce, head - entries + index + 1, hour))
                    cursor.execute("insert into chunk values (1, %s, %s)", (head, os.urandom(PACKED_BYTES * entries)))
                else:
                    with cursor.copy(COPY_ROWS) as copy:
                        copy.set_types(ROW_TYPES)
                        for index, nonce in enumerate(nonces):
                            copy.write_row((
                                1, head - entries + index + 1, 1790000000000, nonce, 1790000000000 + index, index, index << 40,
                                None, index % 10, index % 9, 0, index % 2, index % 3 == 0, None,
                            ))
        self.connection.commit()

    def read(self) -> None:
        what = "select entries from chunk where experiment_id = 1 order by last_position" if self.packed else (
            "select position, recorded_at_ms, nonce, kind, first_ranker, second_ranker, first_left, answer, batch, ticket, "
            "chosen_at, issued_at_ms, detail from log where experiment_id = 1 order by position"
        )
        with self.connection.cursor() as cursor, cursor.copy(f"copy ({what}) to stdout (format binary)") as copy:
            for _ in copy:
                pass
        self.connection.commit()


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    url = os.environ["RANKDUEL_TEST_POSTGRES_URL"]
    control = psycopg.connect(url, autocommit=True)
    times: dict[tuple[str, bool], list[float]] = {}
    sizes: dict[tuple[str, bool], float] = {}

    def timed(side: Side, name: str, entries: int, work) -> None:
        before = side.processor_seconds()
        work()
        times.setdefault((name, side.packed), []).append(1e6 * (side.processor_seconds() - before) / entries)

    for _ in range(rounds):
        for size, commits in COMMITS.items():
            for packed in (False, True):
                control.execute(SCHEMA)
                side = Side(url, packed)
                start = control.execute("select pg_current_wal_lsn()").fetchone()[0]
                timed(side, f"append by {size}", size * commits, lambda: [side.append(size) for _ in range(commits)])
                wal = control.execute("select pg_current_wal_lsn() - %s::pg_lsn", (start,)).fetchone()[0]
                tables = "select sum(pg_total_relation_size(oid)) from pg_class where relkind = 'r' and relname ~ '^(log|chunk|nonce_.*)$'"
                total = control.execute(tables).fetchone()[0]
                sizes[f"append by {size}: tables and indexes", packed] = float(total) / (size * commits)
                sizes[f"append by {size}: write-ahead log", packed] = float(wal) / (size * commits)
                control.execute("vacuum analyze log, chunk, nonce")
                side.read()
                repeats = max(1, 600_000 // (size * commits))
                timed(side, f"read what came by {size}", size * commits * repeats, lambda: [side.read() for _ in range(repeats)])
                side.connection.close()

    print(f"{'microseconds of processor time an entry':48} {'rows':>8} {'packed':>8} {'ratio':>6}")
    for name, packed in times:
        if not packed:
            rows, chunks = statistics.median(times[name, False]), statistics.median(times[name, True])
            print(f"{name:48} {rows:8.2f} {chunks:8.2f} {rows / max(chunks, 1e-9):6.1f}")
    print(f"{'bytes an entry':48}")
    for name, packed in sizes:
        if not packed:
            print(f"{name:48} {sizes[name, False]:8.0f} {sizes[name, True]:8.0f} {sizes[name, False] / sizes[name, True]:6.1f}")


main()
