//! Commands and servers with several databases.

use rankduel::http::ProblemKind;
use rankduel::store::{Database as _, ExperimentLog as _};
use serde_json::json;

use super::open;
use crate::support::client::{Client, eventually, steady};
use crate::support::server::{Process, outcome, rankduel};
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    a_server_and_the_commands_take_several_databases
    a_server_with_a_wrong_list_does_not_start
    an_experiment_moves_while_it_is_served
    an_experiment_that_no_database_has_is_imported
}

/// Run a command with these databases, one after the other in the variable.
fn run(databases: &[&TestDatabase], arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = rankduel(arguments);
    let urls: Vec<_> = databases.iter().map(|database| database.url.as_str()).collect();
    command.env("RANKDUEL_DATABASE_URL", urls.join("\n"));
    outcome(command)
}

/// A server with these databases, each in a flag of its own.
fn serve(databases: &[&TestDatabase]) -> Process {
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--log", "warn"];
    for database in databases {
        arguments.extend(["--database-url", &database.url]);
    }
    Process::start(rankduel(&arguments))
}

/// Request duels and answer them.
async fn answer_duels(client: &Client, name: &str, count: usize) {
    for _ in 0..count {
        let duel = client.next_duel(name).await;
        client.answer(name, &duel, "left").await;
    }
}

fn stop(process: Process) {
    process.signal("TERM");
    let (code, log) = process.wait();
    assert_eq!(code, Some(0), "{log}");
}

async fn a_server_and_the_commands_take_several_databases(first: TestDatabase) {
    let second = fresh_database(first.kind).await;
    let both = [&first, &second];
    let (code, printed, error) = run(&both, &["migrate"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(printed.contains("Each of the 2 databases now has"), "{printed}");
    let (_, printed, _) = run(&both, &["migrate"]);
    assert!(printed.contains("already has"), "{printed}");

    let process = serve(&both);
    let client = Client::new(&process.url);
    let names: Vec<_> = (0..8).map(|number| format!("experiment-{number}")).collect();
    for name in &names {
        client.create(&steady(name, &["a", "b"])).await;
        answer_duels(&client, name, 3).await;
    }
    let listed = client.get("/v1/experiments?limit=5").await.json(200);
    assert_eq!(listed["experiments"].as_array().map(Vec::len), Some(5));
    let ready = client.get("/readyz").await.json(200);
    assert_eq!(ready["checks"]["databases_down"], json!([]));
    stop(process);

    let (code, printed, error) = run(&both, &["verify"]);
    assert_eq!(code, Some(0), "{printed}{error}");
    assert!(names.iter().all(|name| printed.contains(&format!("{name}: "))), "{printed}");
    let (code, exported, error) = run(&both, &["export", &names[3]]);
    assert_eq!(code, Some(0), "{error}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("export.jsonl");
    std::fs::write(&file, exported).expect("a file");
    let file = file.to_str().expect("a path");
    let (code, _, error) = run(&both, &["import", file, "--as", "copy"]);
    assert_eq!((code, error.contains("imported")), (Some(0), true), "{error}");
    let (code, _, error) = run(&both, &["import", file]);
    assert_eq!((code, error.contains("the same")), (Some(0), true), "{error}");
    let (code, _, error) = run(&both, &["keys", "create", "ci", "--scope", "read"]);
    assert_eq!(code, Some(0), "{error}");
    let (_, printed, _) = run(&[&second, &first], &["keys", "list"]);
    assert!(printed.contains("ci"), "{printed}");
}

async fn a_server_with_a_wrong_list_does_not_start(first: TestDatabase) {
    let (second, _) = super::with_second(&first).await;
    let third = fresh_database(first.kind).await;
    third.store().await.close().await;
    let refused = |databases: &[&TestDatabase], advice: &str| {
        let (code, _, error) =
            run(databases, &["serve", "--listen", "127.0.0.1:0", "--log", "error"]);
        assert_eq!(code, Some(1), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(advice), "{error}");
    };
    refused(&[&first], "give all of them with --database-url");
    refused(&[&second], "give all of them with --database-url");
    refused(&[&first, &third], "is not in the list: add it");
    refused(&[&first, &first, &second], "the same database");
    for (arguments, advice) in [
        (&["move", "some", "--to", "3"][..], "a position from 1 to 2"),
        (&["move", "some", "--to", "0"], "a position from 1 to 2"),
        (&["move", "some"], "--to"),
        (&["move", "some", "--to", "1", "--abort"], "--abort"),
    ] {
        let (code, _, error) = run(&[&first, &second], arguments);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(advice), "{error}");
    }
    let (code, _, error) = run(&[&third], &["move", "some", "--to", "1"]);
    assert_eq!((code, error.contains("give all databases")), (Some(2), true), "{error}");
    let (code, _, error) = run(&[&first, &second], &["move", "some", "--to", &second.url]);
    assert_eq!((code, error.contains("no experiment `some`")), (Some(1), true), "{error}");
    let (code, _, error) = run(&[&first, &second], &["move", "some", "--abort"]);
    assert_eq!((code, error.contains("no experiment `some`")), (Some(1), true), "{error}");
}

async fn an_experiment_moves_while_it_is_served(first: TestDatabase) {
    let second = fresh_database(first.kind).await;
    let both = [&first, &second];
    let process = serve(&both);
    let client = Client::new(&process.url);
    client.create(&steady("moving", &["a", "b"])).await;
    answer_duels(&client, "moving", 5).await;
    let before = client.standings("moving").await;
    let open_duel = client.post("/v1/experiments/moving/next-duel", &json!({})).await.json(200);
    let set = open(&both).await;
    set.experiment("moving").await.expect("a store");
    let home = set.database_of(rankduel::store::experiment_id("moving"));
    let to = ["2", "1"][home];
    let (code, printed, error) = run(&both, &["move", "moving", "--to", to]);
    assert_eq!(code, Some(0), "{error}");
    assert!(printed.contains("moved `moving`") && printed.contains("waited for"), "{printed}");
    assert_eq!(client.standings("moving").await, before);

    let body = json!({"duel_id": open_duel["duel_id"], "outcome": "left"});
    let receipt = client.post("/v1/experiments/moving/feedback", &body).await.json(200);
    assert_eq!((&receipt["status"], &receipt["position"]), (&json!("recorded"), &json!(6)));
    let again = client.post("/v1/experiments/moving/feedback", &body).await.json(200);
    assert_eq!(again["status"], "duplicate");
    answer_duels(&client, "moving", 2).await;
    let audit = client.get("/v1/audit?experiment=moving").await.json(200);
    let whats: Vec<_> = audit["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| entry["what"].as_str().expect("an action"))
        .collect();
    assert_eq!(whats, ["experiment-moved", "experiment-created"]);
    let (_, printed, _) = run(&both, &["move", "moving", "--to", to]);
    assert!(printed.contains("already"), "{printed}");
    stop(process);
    let (code, printed, error) = run(&both, &["verify"]);
    assert_eq!(code, Some(0), "{printed}{error}");
}

/// One of two databases is down: the experiments of the other are served, and probes say which.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_database_down_serves_the_others() {
    let first = fresh_database(Kind::Postgres).await;
    let second = fresh_database(Kind::Postgres).await;
    let process = serve(&[&first, &second]);
    let client = Client::new(&process.url);
    let set = open(&[&first, &second]).await;
    let mut of_each = [None, None];
    for number in 0..40 {
        let name = format!("experiment-{number}");
        client.create(&steady(&name, &["a", "b"])).await;
        answer_duels(&client, &name, 1).await;
        set.experiment(&name).await.expect("a store");
        let database = set.database_of(rankduel::store::experiment_id(&name));
        of_each[database] = Some(name);
        if of_each.iter().all(Option::is_some) {
            break;
        }
    }
    let [Some(here), Some(there)] = of_each else { panic!("one database has nothing") };
    let duel =
        client.post(&format!("/v1/experiments/{there}/next-duel"), &json!({})).await.json(200);
    set.close().await;
    let down = super::take_down(&first, &second).await;

    eventually("the probe names the database", async || {
        let ready = client.get("/readyz").await.json(200);
        (ready["checks"]["databases_down"] == json!([2])).then_some(())
    })
    .await;
    answer_duels(&client, &here, 3).await;
    let answer = json!({"duel_id": duel["duel_id"], "outcome": "left"});
    let path = format!("/v1/experiments/{there}/feedback");
    client.post(&path, &answer).await.problem(rankduel::http::ProblemKind::Unavailable);
    answer_duels(&client, &here, 3).await;
    let metrics = client.get("/metrics").await;
    assert!(metrics.text().contains("rankduel_databases_down 1"), "{}", metrics.text());

    super::bring_back(&first, &down).await;
    let receipt = eventually("the database is back", async || {
        let answer = client.post(&path, &answer).await;
        (answer.status == 200).then(|| answer.json(200))
    })
    .await;
    assert!(["recorded", "duplicate"].contains(&receipt["status"].as_str().expect("a status")));
    stop(process);
}

/// A database that had an experiment is restored from a backup that was made before the experiment
/// moved there: one knows that it is gone, and none has it.
async fn an_experiment_that_no_database_has_is_imported(first: TestDatabase) {
    let second = fresh_database(first.kind).await;
    let both = [&first, &second];
    let process = serve(&both);
    let client = Client::new(&process.url);
    client.create(&steady("lost", &["a", "b"])).await;
    answer_duels(&client, "lost", 5).await;
    stop(process);
    let (code, exported, error) = run(&both, &["export", "lost"]);
    assert_eq!(code, Some(0), "{error}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("export.jsonl");
    std::fs::write(&file, exported).expect("a file");
    let file = file.to_str().expect("a path");
    let set = open(&both).await;
    set.experiment("lost").await.expect("a store");
    let home = set.database_of(rankduel::store::experiment_id("lost"));
    set.close().await;

    // It is lost in the other database, then at home.
    for lost_in in [1 - home, home] {
        let moves = if lost_in == home { vec![1 - home, home] } else { vec![lost_in] };
        for to in moves {
            let (code, _, error) = run(&both, &["move", "lost", "--to", ["1", "2"][to]]);
            assert_eq!(code, Some(0), "{error}");
        }
        both[lost_in]
            .execute("delete from log; delete from snapshot; delete from experiment;")
            .await;
        let says = "`lost` is in none of the databases";
        let (code, printed, _) = run(&both, &["verify"]);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains(says) && printed.contains("import it"), "{printed}");
        let process = serve(&both);
        let client = Client::new(&process.url);
        let path = "/v1/experiments/lost/next-duel";
        let problem = client.post(path, &json!({})).await;
        let problem = problem.problem(ProblemKind::Unavailable);
        assert!(problem["detail"].as_str().is_some_and(|it| it.contains(says)), "{problem}");
        let created = client.post("/v1/experiments", &steady("lost", &["a", "b"])).await;
        assert_eq!(created.status, 503, "{}", created.text());

        let (code, _, error) = run(&both, &["import", file]);
        assert_eq!(code, Some(0), "{error}");
        eventually("the imported experiment", async || {
            (client.post(path, &json!({})).await.status == 200).then_some(())
        })
        .await;
        assert_eq!(client.position("lost").await, 5);
        answer_duels(&client, "lost", 1).await;
        stop(process);
        let (code, printed, error) = run(&both, &["verify"]);
        assert_eq!(code, Some(0), "{printed}{error}");
    }
}
