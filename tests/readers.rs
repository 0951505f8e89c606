//! Everything that reads what others wrote, fed with what nobody would write: valid input with bytes changed, cut out,
//! doubled, and noise put in. The same seed each time.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rankduel::experiment::ExperimentSpec;
use rankduel::experiment::fold::Fold;
use rankduel::experiment::token::{DuelToken, Keyring};
use rankduel::letor::Reader;
use rankduel::policy::spec::{PolicySpec, Setup};
use rankduel::policy::{InFlight, Observation, Outcome, fold_chance};
use rankduel::preference::csv;
use rankduel::store::SigningKey;
use sha2::{Digest, Sha256};

/// One way to spoil bytes.
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
        (index(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, noise)| Spoil::Insert(at, noise)),
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

/// Feed `read` with each of `good`, spoilt in `cases` ways.
fn feed(cases: u32, good: &[Vec<u8>], read: impl Fn(&[u8])) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
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

#[test]
fn no_token_is_made_of_another() {
    let keys =
        Keyring::new(&[SigningKey { id: 7, secret: [1; 32], created_at: 0, active_from: 0 }]).expect("a key");
    let token = DuelToken {
        experiment: 1,
        first: 0,
        second: 1,
        first_left: true,
        batch: Some(3),
        ticket: 9,
        chosen_at: 100,
        issued_at: 1_790_000_000_000,
        expires_at: 1_790_000_060_000,
        nonce: 77,
    };
    let text = keys.sign(&token);
    feed(5000, &texts(&[&text, ""]), |bytes| {
        if let Ok(spoilt) = std::str::from_utf8(bytes)
            && let Ok(read) = keys.verify(spoilt)
        {
            assert_eq!((spoilt, read), (text.as_str(), token));
        }
    });
    let body = postcard_of(&token);
    feed(5000, &[body], |bytes| {
        if let Ok(token) = postcard::from_bytes::<DuelToken>(bytes) {
            assert_eq!(keys.verify(&keys.sign(&token)), Ok(token));
        }
    });
}

fn postcard_of(token: &DuelToken) -> Vec<u8> {
    postcard::to_stdvec(token).expect("plain numbers")
}

#[test]
fn a_matrix_that_is_read_reads_back_as_itself() {
    let good =
        texts(&["0.5,0.7,0.6\n0.3,0.5,0.55\n0.4,0.45,0.5\n", "# a comment\n\n 0.5 , 1e0\r\n0,.5", "0.5"]);
    feed(5000, &good, |bytes| {
        if let Ok(matrix) = csv::read(bytes) {
            let mut written = Vec::new();
            csv::write(&matrix, &mut written).expect("memory");
            assert_eq!(csv::read(&written[..]).expect("what was written"), matrix);
        }
    });
}

#[test]
fn a_letor_file_is_read_query_by_query_to_its_end_or_to_what_is_wrong() {
    let good = texts(&[
        "2 qid:1 1:0.5 2:0 46:1e-3 #docid = G1\n0 qid:1 1:1\n1 qid:2 3:-4.25\n",
        "# a comment\n\n4 qid:a 1:NaN\r\n",
        "0 qid:10002 1:0.000000\n0 qid:10003\n",
    ]);
    feed(5000, &good, |bytes| {
        let mut reader = Reader::new(bytes);
        let mut seen = std::collections::HashSet::new();
        while let Some(read) = reader.next() {
            match read {
                Ok(query) => {
                    assert!(!query.documents.is_empty(), "a query without a document");
                    assert!(seen.insert(query.id), "a query twice");
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    assert!(reader.next().is_none(), "it goes on after an error");
                }
            }
        }
    });
}

fn every_policy() -> Vec<PolicySpec> {
    let spec = |(kind, _): &(&str, _)| {
        PolicySpec::from_text_with(kind, &[("horizon", 1000.into())]).expect("a policy of its defaults")
    };
    PolicySpec::KINDS.iter().map(spec).collect()
}

fn play(spec: &PolicySpec, rankers: usize) {
    if spec.validate(rankers).is_err() {
        return;
    }
    let mut policy = spec.start(Setup { rankers, seed: 1 });
    for step in 0..10 {
        let selection = policy.select(&InFlight::new(), &mut fold_chance(1, step));
        assert!(selection.duel.first < rankers && selection.duel.second < rankers, "{spec:?}");
        if selection.duel.is_self() {
            policy.observe_self_duels(selection.duel.first, 1);
        } else {
            policy.observe(&Observation {
                duel: selection.duel,
                outcome: if step % 3 == 0 { Outcome::Second } else { Outcome::First },
                batch: selection.batch,
                ticket: selection.ticket,
            });
        }
    }
}

#[test]
fn a_policy_that_is_accepted_plays() {
    let mut good = texts(&[
        "scomp2:horizon=1000",
        "d-ts-plus:alpha=0.6",
        "rucb: alpha = 0.51 ",
        "pcomp:horizon=1e3,batches=2",
    ]);
    good.extend(every_policy().iter().map(|spec| serde_json::to_vec(spec).expect("JSON")));
    feed(4000, &good, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        if let Ok(spec) = PolicySpec::from_text(text) {
            play(&spec, 4);
        }
        if let Ok(spec) = serde_json::from_str::<PolicySpec>(text) {
            play(&spec, 4);
        }
    });
}

fn spec_of(policy: &PolicySpec) -> ExperimentSpec {
    let rankers = ["a", "b", "c"].map(|id| serde_json::json!({"id": id}));
    let spec =
        serde_json::json!({"rankers": rankers, "policy": policy, "ties": "coin", "duel_ttl_seconds": 60});
    serde_json::from_value(spec).expect("a spec")
}

/// Even with a digest that fits: a program of another version may have written it.
#[test]
fn a_snapshot_that_is_restored_goes_on() {
    for policy in every_policy() {
        let spec = spec_of(&policy);
        let saved = Fold::start(&spec, 7, 0).save();
        let content = saved[..saved.len() - 16].to_vec();
        feed(300, &[content], |bytes| {
            let mut state = bytes.to_vec();
            state.extend_from_slice(&Sha256::digest(bytes)[..16]);
            if let Some(fold) = Fold::restore(&spec, 7, &state) {
                let selection = fold.policy().select(&InFlight::new(), &mut fold_chance(1, 1));
                assert!(selection.duel.first < 3 && selection.duel.second < 3, "{}", policy.kind());
                let again = Fold::restore(&spec, 7, &fold.save()).map(|fold| fold.save());
                assert_eq!(again, Some(fold.save()), "{}", policy.kind());
            }
        });
    }
}
