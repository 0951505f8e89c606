//! Experiments move between two databases under load, while the mover and servers are killed.

use std::time::Duration;

use rankduel::store::connect;

use crate::scene::{NAMES, Scene};
use crate::support::server::{outcome, rankduel};
use crate::support::{Kind, fresh_database};
use crate::verify::{open, verify};
use crate::{rounds, some_moment};

/// The longest time until a kill: about what a move takes here.
const MOVE_MS: u64 = 400;

#[tokio::test(flavor = "multi_thread")]
async fn experiments_move_between_postgres_databases() {
    experiments_move(Kind::Postgres, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn experiments_move_between_sqlite_databases() {
    experiments_move(Kind::Sqlite, 1).await;
}

/// The command that moves an experiment. It is killed if this is dropped.
struct Mover(std::process::Child);

impl Mover {
    fn start(urls: &str, name: &str, to: &str) -> Self {
        let mut command = rankduel(&["move", name, "--to", to]);
        Self(command.env("RANKDUEL_DATABASE_URL", urls).spawn().expect("the program"))
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Run a command to its end. Returns its standard output, or its error.
async fn run(urls: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = rankduel(arguments);
    command.env("RANKDUEL_DATABASE_URL", urls);
    let ended = tokio::task::spawn_blocking(|| outcome(command)).await.expect("the command");
    match ended {
        (Some(0), printed, _) => Ok(printed),
        (_, _, error) => Err(error),
    }
}

async fn experiments_move(kind: Kind, servers: usize) {
    let times = rounds(9);
    let databases = [fresh_database(kind).await, fresh_database(kind).await];
    let urls = databases.each_ref().map(|database| database.url.clone()).join(" ");
    let mut scene = Scene::set(&urls, servers).await;
    scene.open();
    scene.acknowledges(20).await;
    let mut pauses = Vec::new();
    for round in 0..times {
        let name = NAMES[round as usize % NAMES.len()];
        let to = ["2", "1"][place(&urls, name).await];
        match round % 3 {
            // the mover is killed
            0 => {
                let mover = Mover::start(&urls, name, to);
                some_moment(MOVE_MS).await;
                drop(mover);
            }
            // a server is killed
            1 => {
                let _mover = Mover::start(&urls, name, to);
                some_moment(MOVE_MS).await;
                scene.kill(round as usize % servers);
                scene.start(round as usize % servers);
            }
            _ => {}
        }
        accepting(&databases, &urls, name).await;
        if round % 2 == 0 {
            pauses.extend(finish(&urls, name, to).await);
        } else {
            undo_or_finish(&urls, name, to).await;
        }
        let accepting = accepting(&databases, &urls, name).await;
        assert_eq!(accepting, 1, "{name} is in one database after round {round}");
        scene.acknowledges(20).await;
    }
    println!("pauses in ms: {pauses:?}");
    verify(scene, &urls, "kill -9 while an experiment moves", times).await;
    let (code, printed, error) = {
        let mut command = rankduel(&["verify"]);
        command.env("RANKDUEL_DATABASE_URL", &urls);
        outcome(command)
    };
    assert_eq!(code, Some(0), "{printed}{error}");
}

/// The index of the database that has the experiment.
async fn place(urls: &str, name: &str) -> usize {
    let store = open(urls).await;
    let record = store.experiment(name).await.expect("a store").expect("an experiment");
    store.heads(&[record.id]).await.expect("a store");
    let place = store.database_of(record.id);
    store.close().await;
    place
}

/// How many databases accept events of the experiment, each asked directly; never more than one.
async fn accepting(databases: &[crate::support::TestDatabase; 2], urls: &str, name: &str) -> usize {
    let store = open(urls).await;
    let id = store.experiment(name).await.expect("a store").expect("an experiment").id;
    store.close().await;
    let mut accepting = 0;
    for database in databases {
        let store = connect(&database.url).await.expect("a store");
        let heads = store.heads(&[id]).await.expect("a store");
        accepting += heads.iter().filter(|head| !head.frozen).count();
        store.close().await;
    }
    assert!(accepting < 2, "{name} is in two databases");
    accepting
}

/// Run the move to its end. Returns the pause, if it switched.
async fn finish(urls: &str, name: &str, to: &str) -> Option<u64> {
    for _ in 0..20 {
        match run(urls, &["move", name, "--to", to]).await {
            Ok(printed) => {
                let pause = printed.split("waited for ").nth(1)?;
                return pause.split(' ').next()?.parse().ok();
            }
            // a mover that was killed is still known to its database, or holds a lock there
            Err(error) => assert!(!error.contains("panicked"), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the move of {name} does not end");
}

/// Undo the move, or finish it if it has arrived.
async fn undo_or_finish(urls: &str, name: &str, to: &str) {
    match run(urls, &["move", name, "--abort"]).await {
        Ok(_) => {}
        Err(error) => {
            assert!(error.contains("has arrived") || error.contains("another command"), "{error}");
            finish(urls, name, to).await;
        }
    }
}
