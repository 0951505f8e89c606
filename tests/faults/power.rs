//! The power goes off under SQLite: which writes have reached the disk is up to chance, but for
//! those that were flushed. Each image of the files that may remain has every answer that was
//! acknowledged by then, once.

use std::path::Path;

use rankduel_engine::tokens::key_set::SigningKeySet;

use crate::load::Fate;
use crate::scene::{NAMES, Scene};
use crate::support::server::{outcome, rankduel_on};
use crate::support::{Kind, fresh_database};
use crate::verify::{log, open, verify};
use crate::{rounds, some_moment};

/// Bytes that a disk writes together.
const BLOCK: usize = 4096;
/// Bytes of the header of a write-ahead log. A log that starts again has another one.
const HEADER: usize = 32;

/// The database and its write-ahead log.
#[derive(Clone)]
struct Image {
    main: Vec<u8>,
    ahead: Vec<u8>,
}

/// Acknowledged answers: experiment, `duel_id` and position.
type Acknowledged = Vec<(String, String, u64)>;

impl Image {
    fn of(database: &Path) -> Self {
        let read = |ending| std::fs::read(format!("{}{ending}", database.display()));
        Self { main: read("").expect("the database"), ahead: read("-wal").expect("its log") }
    }

    /// Start from this image and check that it has these answers.
    async fn has(&self, acknowledged: &Acknowledged, what: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rankduel.db");
        std::fs::write(&path, &self.main).expect("to write");
        std::fs::write(folder.path().join("rankduel.db-wal"), &self.ahead).expect("to write");
        let url = format!("sqlite://{}", path.display());
        let (code, found, error) = outcome(rankduel_on(&url, &["verify"]));
        assert_eq!(code, Some(0), "{what}: {found}{error}");
        let store = open(&url).await;
        let keys = SigningKeySet::new(&store.signing_keys().await.expect("keys")).expect("a key");
        for name in NAMES {
            let log = log(&*store, name).await;
            for (_, duel, position) in acknowledged.iter().filter(|(of, ..)| of == name) {
                let nonce = keys.verify(duel).expect("a token of this service").nonce;
                let at: Vec<_> = log.iter().filter(|entry| entry.nonce == nonce).collect();
                let once = at.len() == 1 && at[0].position == *position;
                assert!(once, "{what}: {name} has not once, at {position}: {at:?}");
            }
        }
        store.close().await;
    }
}

/// Blocks of `new` by chance, the others of `old`; a block that `old` does not have is zero.
fn mixture(old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut mixed = old.to_vec();
    mixed.resize(old.len().max(new.len()), 0);
    for at in (0..new.len()).step_by(BLOCK) {
        if rankduel_store::entropy::number().expect("randomness").is_multiple_of(2) {
            let end = new.len().min(at + BLOCK);
            mixed[at..end].copy_from_slice(&new[at..end]);
        }
    }
    mixed
}

fn acknowledged(scene: &Scene) -> Acknowledged {
    scene.office.know(|memory| {
        let answers = memory.duels.iter().filter_map(|(id, sent)| match sent.fate {
            Fate::Acknowledged(position) => Some((sent.name.clone(), id.clone(), position)),
            _ => None,
        });
        answers.collect()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_power_goes_off_under_sqlite() {
    let times = rounds(6);
    let database = fresh_database(Kind::Sqlite).await;
    let mut scene = Scene::set(&database.url, 1).await;
    let mut tried = [0, 0];
    for round in 0..times {
        let starts_again = round % 2 == 0;
        works(&mut scene).await;
        // The next commit starts the write-ahead log again, over its old blocks.
        database.execute("pragma wal_checkpoint(passive)").await;
        if !starts_again {
            works(&mut scene).await;
        }
        // No caller waits: these are the files as of the last flush.
        let (flushed, before) = (Image::of(database.path()), acknowledged(&scene));
        scene.open();
        scene.acknowledges(20).await;
        some_moment(50).await;
        let by_then = acknowledged(&scene);
        scene.signal(0, "STOP");
        let latest = Image::of(database.path());
        scene.signal(0, "CONT");
        scene.close().await;

        flushed.has(&before, "as of the last flush").await;
        latest.has(&by_then, "the latest").await;
        if (flushed.ahead[..HEADER] != latest.ahead[..HEADER]) != starts_again {
            continue; // another checkpoint came in between, and has flushed more than is known here
        }
        tried[usize::from(starts_again)] += 1;
        for _ in 0..3 {
            // Writes to the log that were not flushed are there in part. The database is older: its
            // checkpoint is flushed before the log starts again.
            let mut ahead = mixture(&flushed.ahead, &latest.ahead);
            // SQLite flushes a new header before it writes anything behind it.
            ahead[..HEADER].copy_from_slice(&latest.ahead[..HEADER]);
            let torn = Image { main: flushed.main.clone(), ahead };
            torn.has(&before, "a torn write-ahead log").await;
            // A checkpoint that was cut short.
            if !starts_again {
                let main = mixture(&flushed.main, &checkpointed(&latest).await);
                Image { main, ahead: latest.ahead.clone() }.has(&by_then, "a torn database").await;
            }
        }
    }
    assert!(tried.iter().all(|times| *times > 0), "{tried:?}");
    scene.open();
    scene.acknowledges(20).await;
    verify(scene, &database.url, "power cut", times).await;
}

/// The callers work for a while.
async fn works(scene: &mut Scene) {
    scene.open();
    scene.acknowledges(20).await;
    scene.close().await;
}

/// The database after a checkpoint of this image.
async fn checkpointed(image: &Image) -> Vec<u8> {
    let database = fresh_database(Kind::Sqlite).await;
    std::fs::write(database.path(), &image.main).expect("to write");
    std::fs::write(format!("{}-wal", database.path().display()), &image.ahead).expect("to write");
    database.execute("pragma wal_checkpoint(passive)").await;
    std::fs::read(database.path()).expect("the database")
}
