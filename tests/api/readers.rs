//! Every reader of external data, fed with corrupted input: valid input with bytes changed, cut
//! out, doubled, or noise inserted, from a fixed seed. The targets that `scripts/fuzz` runs for
//! longer state what must hold; this module also replays the inputs that are kept for them.

#[path = "../../fuzz/src/targets/mod.rs"]
mod targets;

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rankduel_engine::fold::Fold;
use targets::snapshot::{every_policy, experiment, restore_fold};

/// One way to corrupt bytes.
#[derive(Debug, Clone)]
enum Spoil {
    Change(prop::sample::Index, u8),
    Cut(prop::sample::Index, prop::sample::Index),
    Double(prop::sample::Index, prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
}

fn spoils() -> impl Strategy<Value = Vec<Spoil>> {
    let index = any::<prop::sample::Index>;
    let words = prop::sample::select(vec![
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "null",
        "-",
        "1e999",
        "\0",
        "\u{feff}",
        "NaN",
        "18446744073709551616",
        "é",
        "\n",
        "=",
    ]);
    let spoil = prop_oneof![
        (index(), any::<u8>()).prop_map(|(at, byte)| Spoil::Change(at, byte)),
        (index(), index()).prop_map(|(from, to)| Spoil::Cut(from, to)),
        (index(), index()).prop_map(|(from, to)| Spoil::Double(from, to)),
        (index(), words).prop_map(|(at, word)| Spoil::Insert(at, word.as_bytes().to_vec())),
        (index(), prop::collection::vec(any::<u8>(), 1..20))
            .prop_map(|(at, noise)| Spoil::Insert(at, noise)),
    ];
    prop::collection::vec(spoil, 0..6)
}

fn spoilt(good: &[u8], spoils: &[Spoil]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for spoil in spoils {
        let place = |index: &prop::sample::Index| index.index(bytes.len() + 1);
        let range = |from, to| {
            let (from, to) = (place(from), place(to));
            from.min(to)..from.max(to)
        };
        match spoil {
            Spoil::Change(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Spoil::Change(..) => {}
            Spoil::Cut(from, to) => drop(bytes.drain(range(from, to))),
            Spoil::Double(from, to) => {
                let part = bytes[range(from, to)].to_vec();
                bytes.extend(part);
            }
            Spoil::Insert(at, new) => {
                let at = place(at);
                bytes.splice(at..at, new.iter().copied());
            }
        }
    }
    bytes
}

/// Feed `read` with each of `good`, corrupted in `cases` ways.
fn feed(cases: u32, good: &[Vec<u8>], read: impl Fn(&[u8])) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let input = (0..good.len(), spoils()).prop_map(|(which, spoils)| spoilt(&good[which], &spoils));
    runner
        .run(&input, |bytes| {
            read(&bytes);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

fn texts(good: &[&str]) -> Vec<Vec<u8>> {
    good.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn with_first(first: u8, texts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| [&[first][..], text].concat()).collect()
}

/// Each file in the folders of `fuzz/corpus-seeds`.
#[test]
fn kept_inputs_pass() {
    for (name, target) in targets::TARGETS {
        let folder = format!("{}/fuzz/corpus-seeds/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut kept = 0;
        for file in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}")) {
            let path = file.expect("a file").path();
            let bytes = std::fs::read(&path).expect("a file");
            if std::panic::catch_unwind(|| target(&bytes)).is_err() {
                panic!("see above: {}", path.display());
            }
            kept += 1;
        }
        assert!(kept >= 3, "{folder} has {kept} files");
    }
}

/// The seeds of the snapshot target must be states; otherwise it fuzzes nothing.
/// `RANKDUEL_KEEP_STATES=1` writes those of the present formats.
#[test]
fn every_seed_of_the_snapshot_target_restores() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus-seeds/snapshot");
    for (name, seed) in targets::snapshot::seeds() {
        let kind = name.strip_prefix("fold-").unwrap_or(&name);
        assert!(targets::snapshot::restores(kind, &seed), "{name} does not restore");
        let path = folder.join(&name);
        if std::env::var_os("RANKDUEL_KEEP_STATES").is_some() {
            std::fs::write(&path, &seed).expect("a seed");
        }
        let kept = std::fs::read(&path).unwrap_or_default();
        assert!(kept == seed, "{name} is of another format: run again with RANKDUEL_KEEP_STATES=1");
    }
}

#[test]
fn no_token_can_be_made_from_another() {
    let known: Vec<_> = targets::token::known().into_iter().map(String::into_bytes).collect();
    let text = |bytes: &[u8]| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            targets::token::refused_or_signed(text);
        }
    };
    known.iter().for_each(|known| text(known));
    feed(5000, &known, text);
    // The content of a token, and of a page.
    let mut content = vec![1, 0, 1, 1, 1, 3, 9, 100];
    content.extend(
        postcard::to_stdvec(&(1_790_000_000_000_i64, 1_790_000_060_000_i64, 77_u128))
            .expect("numbers"),
    );
    feed(5000, &with_first(3, &[content]), targets::token::run);
}

#[test]
fn a_parsed_matrix_round_trips() {
    let good = texts(&[
        "0.5,0.7,0.6\n0.3,0.5,0.55\n0.4,0.45,0.5\n",
        "# a comment\n\n 0.5 , 1e0\r\n0,.5",
        "0.5",
    ]);
    feed(5000, &good, targets::csv::run);
}

#[test]
fn an_accepted_policy_plays() {
    let mut good = texts(&[
        "scomp2:horizon=1000",
        "d-ts-plus:alpha=0.6",
        "ccb: alpha = 0.51 ",
        "pcomp:horizon=1e3,batches=2",
    ]);
    good.extend(every_policy().iter().map(|spec| serde_json::to_vec(spec).expect("JSON")));
    let played = good
        .iter()
        .map(|text| [&text[..], b"\n\x02", b"\x00\x08\x30\x07\x06\x05\x10\x03"].concat());
    feed(4000, &played.collect::<Vec<_>>(), targets::policy::run);
}

/// This also holds with a valid digest: a program of another version may have written the state.
#[test]
fn a_restored_snapshot_continues() {
    for policy in every_policy() {
        let spec = experiment(&policy);
        let saved = Fold::start(&spec, 7, 0).save();
        let content = saved[..saved.len() - 16].to_vec();
        feed(300, &[content], |bytes| restore_fold(&spec, bytes));
    }
}

#[test]
fn an_interleaved_page_keeps_its_invariants() {
    let good: Vec<_> = (0..14)
        .map(|method| {
            [&[method, 7, 1, 6, 4][..], b"abcd", &[5], b"cbaef", &[1, b'x', 0], &[0x21, 0x42, 0x20]]
                .concat()
        })
        .collect();
    feed(5000, &good, targets::interleave::run);
}

/// The seeds of the import target must be importable; otherwise it fuzzes nothing.
#[test]
fn every_kept_export_is_imported() {
    for name in ["outcomes", "pages", "batches", "archived", "pruned"] {
        let file = format!("{}/fuzz/corpus-seeds/import/{name}", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(file).expect("a file");
        assert!(targets::import::imports(&bytes), "{name} is not imported");
    }
}

/// Kept exports with values changed: what is imported verifies, and every endpoint serves it.
#[test]
fn what_is_imported_verifies_and_is_served() {
    let changes = (0..5u8, prop::collection::vec(any::<u8>(), 0..16));
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    runner
        .run(&changes, |(file, changes)| {
            targets::import::run(&[&[file][..], &changes].concat());
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_request_gets_a_documented_response() {
    let good: Vec<_> =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus-seeds/api"))
            .expect("the kept inputs")
            .map(|file| std::fs::read(file.expect("a file").path()).expect("a file"))
            .collect();
    feed(2000, &good, targets::api::run);
}
