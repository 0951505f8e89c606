//! Import, verify and loading share their checks: a file that would import an experiment that
//! verify reports is refused, and such an experiment in a database is reported and not served.

use rankduel::http::ProblemKind;
use rankduel_engine::loaded::{LoadedExperiment, Process};
use rankduel_engine::metrics::Metrics;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::{filled, keep, restore, run, succeed};
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

    /// Change members: `PART/MEMBER/… = JSON` for each. A part is the line of the head, of the last
    /// change of the status, of the first outcome, or of the end.
    fn change(&mut self, changes: &[&str]) {
        for change in changes {
            let (place, value) = change.split_once(" = ").expect("a place and a value");
            let (part, pointer) = place.split_once('/').expect("a part and a member");
            let (parent, member) = pointer.rsplit_once('/').unwrap_or(("", pointer));
            let lines = &mut self.0;
            let line = match part {
                "head" => lines.first_mut(),
                "status" => lines.iter_mut().rev().find(|line| line["event"]["kind"] == "changed"),
                "outcome" => lines.iter_mut().find(|line| line["outcome"].is_object()),
                _ => lines.last_mut(),
            };
            let parent = if parent.is_empty() { parent.to_owned() } else { format!("/{parent}") };
            let object = line.expect("the part").pointer_mut(&parent).expect("the object");
            object[member] = serde_json::from_str(value).expect("JSON");
        }
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

/// Changes of a file, and a part of the error.
type Case = (&'static [&'static str], &'static str);

const CASES: [Case; 21] = [
    (&["head/winner = 60000"], "its winner is ranker 60000"),
    (&[r#"status/event/patch/winner = "nobody""#], "has no ranker `nobody`"),
    (&["head/winner = 0"], "and its log says"),
    (&["head/version = 9223372036854775807"], "its version is 9223372036854775807"),
    (&["head/version = 4"], "its version is 4"),
    (&["head/version = 0"], "its version is 0"),
    (&["head/spec/pages/interleaving_version = 2"], "they differ in pages"),
    (&["head/winner = null"], "concluded without a winner"),
    (&[r#"head/status = "running""#], "has a winner and is not concluded"),
    (&[r#"head/status = "running""#, "head/winner = null"], "and its log says"),
    (
        &[r#"head/status = "running""#, "head/winner = null", "head/archived_at = 1577836900000"],
        "archived and not concluded",
    ),
    (&["head/archived_at = 1577836900000"], "and its log says"),
    (&["end/entries = 5"], "its last line says 5"),
    (&[r#"head/spec/owner = "x""#], "they differ in owner"),
    (&[r#"head/spec/rankers/1/id = "a""#], "is listed twice"),
    (&["head/spec/duel_ttl_seconds = 4294967295"], "/duel_ttl_seconds"),
    (&["head/created_at = 9223372036854775807"], "which is not a time"),
    (&["outcome/recorded_at = -9223372036854775808"], "it was recorded at -9223372036854775808"),
    (
        &["outcome/outcome/issued_at = -9223372036854775808"],
        "it was issued at -9223372036854775808",
    ),
    (
        &[
            r#"outcome/event = {"kind":"self_duels","counts":[[0,18446744073709551615],[1,7]]}"#,
            "outcome/outcome = null",
        ],
        "more than an experiment can have",
    ),
    (&[r#"head/name = "../search""#], "an experiment's name is"),
];

/// Changes of a file of a pruned log.
const PRUNED_CASES: [Case; 3] = [
    (&["head/head = 5"], "beyond its head 5"),
    (&["head/pruned_to = 3", "head/head = 5"], "the snapshot is of position"),
    (
        &["head/pruned_to = 1099511627776", "head/head = 2199023255552"],
        "the snapshot is of position",
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
    let cases = CASES.iter().map(|case| (&file, case));
    let pruned_cases = PRUNED_CASES.iter().map(|case| (&pruned, case));
    for (whole, (changes, says)) in cases.chain(pruned_cases) {
        let mut changed = whole.clone();
        changed.change(changes);
        let (code, _, error) = import(&changed);
        assert_eq!(code, Some(1), "{changes:?}: {error}");
        assert!(error.contains(says), "{changes:?}: {error}");
        assert_eq!(empty.count("select count(*) from experiment").await, 0, "{changes:?}");
        assert_eq!(empty.count("select count(*) from log").await, 0, "{changes:?}");
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
    for (change, says) in [
        ("winner = 60000", "its winner is ranker 60000"),
        ("winner = null", "concluded without a winner"),
        ("version = 9223372036854775807", "its version is 9223372036854775807"),
        ("status = 'paused', winner = null", "and its log says"),
        ("archived_at_ms = 5, status = 'running', winner = null", "archived and not concluded"),
    ] {
        keep(&database).await;
        let damage = format!("update experiment set {change} where name = 'search'");
        database.execute_text(damage.clone()).await;
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
            answer.problem_saying(ProblemKind::ExperimentUnreadable, says);
        }
        // The list has the others, and names this one, unless only its log tells.
        let list = server.get("/v1/experiments").await.json(200);
        if !change.contains("status") {
            assert_eq!(list["unreadable"], json!(["search"]), "{damage}: {list}");
        }
        server.next_duel("young").await;
        server.stop().await;
        restore(&database).await;
    }
    succeed(&database, &["verify"]);
}

/// A damage of the experiment `young`, and what is said of it.
const WRONG_ENDS: [(&str, &str); 3] = [
    (
        "update experiment set head = head + 1 where name = 'young'",
        "its head is 3, and its log ends at 2",
    ),
    (
        "update experiment set head = head - 1 where name = 'young'",
        "log entry 2 is beyond the head 1",
    ),
    (
        "delete from log where experiment_id = (select id from experiment where name = 'young')",
        "its head is 2, and its log ends at ",
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
        for (damage, says) in WRONG_ENDS {
            keep(&database).await;
            database.execute(damage).await;
            let (code, printed, _) = run(&database, &["verify", "young"]);
            assert_eq!(code, Some(1), "{damage}: {printed}");
            assert!(printed.contains(says), "{damage}: {printed}");
            for command in ["export", "pages"] {
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
            restore(&database).await;
        }
    }
    succeed(&database, &["verify"]);
    let server = Server::start(database.connect().await).await;
    let duel = server.pair("young").await;
    assert_eq!(server.answer("young", &duel, "left").await, 3);
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
    let opened = LoadedExperiment::open(&*store, old, process, &metrics, due, 0, None).await;
    let position = opened.expect("a sound experiment").fold().expect("a fold").state().position;
    assert_eq!(position, 3);
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
