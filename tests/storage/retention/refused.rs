//! Import, verify and loading share their checks: a file that would import an experiment that
//! verify reports is refused, and such an experiment in a database is reported and not served.

use rankduel::http::ProblemKind;
use rankduel_engine::loaded::{LoadedExperiment, Process};
use rankduel_engine::metrics::Metrics;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::{filled, run, succeed};
use crate::events::{folded, snapshot};
use crate::support::service::Server;
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    a_file_that_verify_would_report_is_refused
    a_record_that_verify_reports_is_not_served
    a_log_that_does_not_end_at_the_head_is_not_served
    a_record_that_was_read_before_an_append_is_served
}

/// The lines of an exported experiment: its head, its entries and its end.
#[derive(Clone)]
struct File(Vec<Value>);

impl File {
    fn read(text: &str) -> Self {
        Self(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
    }

    fn head(&mut self) -> &mut Value {
        &mut self.0[0]
    }

    /// The entry of the last change of the status.
    fn last_status(&mut self) -> &mut Value {
        let is_status = |line: &&mut Value| line["event"]["kind"] == "status";
        &mut self.0.iter_mut().rev().find(is_status).expect("a change of the status")["event"]
    }

    fn outcome(&mut self) -> &mut Value {
        let is_outcome = |line: &&mut Value| line["outcome"].is_object();
        self.0.iter_mut().find(is_outcome).expect("an outcome")
    }

    fn end(&mut self) -> &mut Value {
        self.0.last_mut().expect("a last line")
    }

    /// The file with the digest that its lines have now.
    fn text(&self) -> String {
        let (end, lines) = self.0.split_last().expect("a last line");
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let digest = Sha256::digest(text.as_bytes());
        let mut end = end.clone();
        end["sha256"] = json!(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        format!("{text}{end}\n")
    }
}

/// A change of a file, what it is, and a part of the error.
type Case = (&'static str, fn(&mut File), &'static str);

const CASES: [Case; 22] = [
    (
        "a winner that is no ranker",
        |file| {
            file.head()["winner"] = json!(60000);
            file.last_status()["winner"] = json!(60000);
        },
        "its winner is ranker 60000",
    ),
    (
        "a winner of the log that is no ranker",
        |file| file.last_status()["winner"] = json!(60000),
        "its winner is ranker 60000",
    ),
    (
        "another winner than in the log",
        |file| file.head()["winner"] = json!(0),
        "its log says Concluded with winner Some(1)",
    ),
    (
        "a version that nothing can follow",
        |file| file.head()["version"] = json!(i64::MAX as u64),
        "its version is 9223372036854775807",
    ),
    ("one version too many", |file| file.head()["version"] = json!(4), "its version is 4"),
    ("no version", |file| file.head()["version"] = json!(0), "its version is 0"),
    (
        "junk in `interleaving`",
        |file| file.head()["interleaving"] = json!("junk"),
        "does not know its interleaving method",
    ),
    (
        "a method that the log does not have",
        |file| {
            let spec = file.head()["spec"]["pages"]["interleaving"].clone();
            let method = json!({"version": 2, "method": spec}).to_string();
            file.head()["interleaving"] = json!(method);
        },
        "its record has version 2 of the interleaving method",
    ),
    (
        "concluded without a winner",
        |file| {
            file.head()["winner"] = Value::Null;
            file.last_status()["winner"] = Value::Null;
        },
        "concluded without a winner",
    ),
    (
        "running with a winner",
        |file| {
            file.head()["status"] = json!("running");
            file.last_status()["status"] = json!("running");
        },
        "has a winner and is not concluded",
    ),
    (
        "archived while running",
        |file| {
            for part in [1, 2] {
                let status = match part {
                    1 => file.head(),
                    _ => file.last_status(),
                };
                status["status"] = json!("running");
                status["winner"] = Value::Null;
            }
            file.head()["archived_at"] = json!(1_577_836_900_000_i64);
            file.last_status()["archived"] = json!(true);
        },
        "archived and not concluded",
    ),
    (
        "archived, and not in the log",
        |file| file.head()["archived_at"] = json!(1_577_836_900_000_i64),
        "with winner Some(1), archived, and its log says",
    ),
    ("another number of entries", |file| file.end()["entries"] = json!(5), "its last line says 5"),
    (
        "a policy that the log does not have",
        |file| {
            let policy = file.head()["spec"]["policy"].clone();
            file.head()["spec"]["former_policies"] = json!([policy]);
        },
        "its record has 1 changes of the policy",
    ),
    (
        "a change of the policy that the record does not have",
        |file| {
            let policy = file.head()["spec"]["policy"].clone();
            *file.last_status() = json!({"kind": "policy", "policy": policy});
            file.head()["status"] = json!("paused");
            file.head()["winner"] = Value::Null;
        },
        "its log has 1",
    ),
    (
        "two rankers of one id",
        |file| file.head()["spec"]["rankers"][1]["id"] = json!("a"),
        "is listed twice",
    ),
    (
        "a duel that lives forever",
        |file| file.head()["spec"]["duel_ttl_seconds"] = json!(u32::MAX),
        "/duel_ttl_seconds",
    ),
    (
        "a time that is none",
        |file| file.head()["created_at"] = json!(i64::MAX),
        "which is not a time",
    ),
    (
        "an entry at a time that is none",
        |file| file.outcome()["recorded_at"] = json!(i64::MIN),
        "it was recorded at -9223372036854775808",
    ),
    (
        "a duel that was issued at a time that is none",
        |file| file.outcome()["outcome"]["issued_at"] = json!(i64::MIN),
        "it was issued at -9223372036854775808",
    ),
    (
        "more self-duels than can be counted",
        |file| {
            let entry = file.outcome();
            entry.as_object_mut().expect("an entry").remove("outcome");
            entry["event"] = json!({"kind": "self_duels", "counts": [[0, u64::MAX], [1, 7]]});
        },
        "more than an experiment can have",
    ),
    (
        "a name that none can have",
        |file| file.head()["name"] = json!("../search"),
        "an experiment's name is",
    ),
];

async fn a_file_that_verify_would_report_is_refused(database: TestDatabase) {
    filled(&database).await;
    let file = File::read(&succeed(&database, &["export", "search"]));
    succeed(&database, &["prune", "search", "--yes"]);
    let pruned = File::read(&succeed(&database, &["export", "search"]));
    let empty = fresh_database(database.kind).await;
    succeed(&empty, &["migrate"]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("search.jsonl");
    let import = |file: &File| {
        std::fs::write(&path, file.text()).expect("to write");
        run(&empty, &["import", path.to_str().expect("a path")])
    };
    let early_head: Case = (
        "a pruned log with an early head",
        |file| file.head()["head"] = json!(5),
        "beyond its head 5",
    );
    let early: Case = (
        "a pruned log that ends before its snapshot",
        |file| {
            file.head()["pruned_to"] = json!(3);
            file.head()["head"] = json!(5);
        },
        "the snapshot is of position",
    );
    let late_head: Case = (
        "a pruned log that begins after its snapshot",
        |file| {
            file.head()["pruned_to"] = json!(1_u64 << 40);
            file.head()["head"] = json!(1_u64 << 41);
        },
        "the snapshot is of position",
    );
    let cases = CASES.iter().map(|case| (&file, case));
    for (whole, (what, change, says)) in
        cases.chain([(&pruned, &early_head), (&pruned, &early), (&pruned, &late_head)])
    {
        let mut changed = whole.clone();
        change(&mut changed);
        let (code, _, error) = import(&changed);
        assert_eq!(code, Some(1), "{what}: {error}");
        assert!(error.contains(says), "{what}: {error}");
        assert_eq!(empty.count("select count(*) from experiment").await, 0, "{what}");
        assert_eq!(empty.count("select count(*) from log").await, 0, "{what}");
    }
    // The same files without a change are imported.
    let (code, _, error) = import(&file);
    assert_eq!(code, Some(0), "{error}");
    let other = fresh_database(database.kind).await;
    succeed(&other, &["migrate"]);
    std::fs::write(&path, pruned.text()).expect("to write");
    succeed(&other, &["import", path.to_str().expect("a path")]);
    succeed(&other, &["verify"]);
}

async fn a_record_that_verify_reports_is_not_served(database: TestDatabase) {
    filled(&database).await;
    for (damage, undo, says) in [
        (
            "update experiment set winner = 60000 where name = 'search'",
            "update experiment set winner = 1 where name = 'search'",
            "its winner is ranker 60000",
        ),
        (
            "update experiment set winner = null where name = 'search'",
            "update experiment set winner = 1 where name = 'search'",
            "concluded without a winner",
        ),
        (
            "update experiment set version = 9223372036854775807 where name = 'search'",
            "update experiment set version = 3 where name = 'search'",
            "its version is 9223372036854775807",
        ),
        (
            "update experiment set interleaving = 'junk' where name = 'search'",
            "update experiment set interleaving = null where name = 'search'",
            "does not know its interleaving method",
        ),
        (
            "update experiment set archived_at_ms = 5, status = 'running', winner = null
                 where name = 'search'",
            "update experiment set archived_at_ms = null, status = 'concluded', winner = 1
                 where name = 'search'",
            "archived and not concluded",
        ),
    ] {
        database.execute(damage).await;
        let (code, printed, _) = run(&database, &["verify", "search"]);
        assert_eq!(code, Some(1), "{damage}: {printed}");
        assert!(printed.contains(says), "{damage}: {printed}");
        let server = Server::start(database.connect().await).await;
        for answer in [
            server.get("/v1/experiments/search").await,
            server.post("/v1/experiments/search/next-duel", &json!({})).await,
            server.get("/v1/experiments/search/standings").await,
            server.patch("search", &json!({"status": "running"})).await,
        ] {
            let problem = answer.problem(ProblemKind::ExperimentUnreadable);
            assert!(
                problem["detail"].as_str().is_some_and(|detail| detail.contains(says)),
                "{damage}: {problem}"
            );
        }
        // The list has the others, and names this one.
        let list = server.get("/v1/experiments").await.json(200);
        if !damage.contains("archived") {
            assert_eq!(list["unreadable"], json!(["search"]), "{damage}: {list}");
        }
        server.next_duel("young").await;
        server.stop().await;
        database.execute(undo).await;
    }
    succeed(&database, &["verify"]);
}

/// A damage of the experiment `young`, what undoes it, and what is said of it.
const WRONG_ENDS: [(&str, &str, &str); 3] = [
    (
        "update experiment set head = head + 1 where name = 'young'",
        "update experiment set head = head - 1 where name = 'young'",
        "its head is 2, and its log ends at 1",
    ),
    (
        "update experiment set head = head - 1 where name = 'young'",
        "update experiment set head = head + 1 where name = 'young'",
        "log entry 1 is beyond the head 0",
    ),
    (
        "create table lost as select * from log
             where experiment_id = (select id from experiment where name = 'young');
         delete from log where experiment_id = (select id from experiment where name = 'young')",
        "insert into log select * from lost; drop table lost",
        "its head is 1, and its log ends at 0",
    ),
];

async fn a_log_that_does_not_end_at_the_head_is_not_served(database: TestDatabase) {
    filled(&database).await;
    // The second time, there is a snapshot at the end of the log.
    for with_snapshot in [false, true] {
        if with_snapshot {
            let store = database.connect().await;
            let (record, fold) = folded(&store, "young", 10).await;
            let snapshot = snapshot(&record, &fold, 0);
            store.save_snapshot(&snapshot).await.expect("a snapshot");
            store.close().await;
        }
        for (damage, undo, says) in WRONG_ENDS {
            database.execute(damage).await;
            let (code, printed, _) = run(&database, &["verify", "young"]);
            assert_eq!(code, Some(1), "{damage}: {printed}");
            assert!(printed.contains(says), "{damage}: {printed}");
            for command in ["export", "pages", "segments", "matrix"] {
                let (code, _, error) = run(&database, &[command, "young"]);
                assert_eq!(code, Some(1), "{command}, {damage}: {error}");
                assert!(error.contains("see `rankduel verify young`"), "{command}: {error}");
            }
            let server = Server::start(database.connect().await).await;
            for answer in [
                server.post("/v1/experiments/young/next-duel", &json!({})).await,
                server.get("/v1/experiments/young/standings").await,
            ] {
                let problem = answer.problem(ProblemKind::ExperimentUnreadable);
                let detail = problem["detail"].as_str().expect("a detail");
                assert!(detail.contains(says), "{damage}: {problem}");
            }
            server.next_duel("search").await;
            server.stop().await;
            database.execute(undo).await;
        }
    }
    succeed(&database, &["verify"]);
    let server = Server::start(database.connect().await).await;
    let duel = server.pair("young").await;
    assert_eq!(server.answer("young", &duel, "left").await, 2);
    server.stop().await;
}

/// Another replica may append between reading the record and reading the log.
async fn a_record_that_was_read_before_an_append_is_served(database: TestDatabase) {
    filled(&database).await;
    let store = database.connect().await;
    let old = store.experiment("young").await.expect("a store").expect("an experiment");
    let server = Server::start(database.connect().await).await;
    let duel = server.pair("young").await;
    assert_eq!(server.answer("young", &duel, "left").await, old.head + 1);
    server.stop().await;
    let (process, metrics) = (Process { id: 1, since_ms: 0 }, Metrics::new());
    let (due, _) = mpsc::unbounded_channel();
    let opened = LoadedExperiment::open(&*store, old, process, &metrics, due, 0).await;
    let position = opened.expect("a sound experiment").fold().expect("a fold").position();
    assert_eq!(position, 2);
    store.close().await;
}

/// A server that has the experiment in memory learns of the damage when it reads the record again.
#[tokio::test(flavor = "multi_thread")]
async fn a_winner_that_appears_in_a_loaded_record_does_not_end_a_request() {
    let database = fresh_database(Kind::Sqlite).await;
    filled(&database).await;
    let server = Server::start(database.connect().await).await;
    let concluded = server.next_duel("search").await;
    assert_eq!((&concluded["left"], &concluded["self_duel"]), (&json!("b"), &json!(true)));
    database
        .execute(
            "update experiment set winner = 60000, version = version + 1 where name = 'search'",
        )
        .await;
    let followed = || async {
        let record = server.service.peek("search")?.record();
        (record.winner == Some(60000)).then_some(())
    };
    crate::support::client::eventually("the damaged record", followed).await;
    let duel = server.next_duel("search").await;
    assert!(["a", "b", "c"].contains(&duel["left"].as_str().expect("a ranker")), "{duel}");
    server.stop().await;
}
