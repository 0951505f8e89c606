//! Random lists of operations, run on the real service over a failing store and jumping clocks, and
//! compared with a model.
//!
//! The selected pairs may differ from run to run, because each process draws its own randomness;
//! nothing here depends on them. A failing list is shrunk and printed. Lists kept in `found/` are
//! replayed by every run.
//!
//! ```text
//! # The short form: always the same lists.
//! scripts/test --test storage simulation
//! # More lists, drawn from another seed.
//! RANKDUEL_SIMULATION_SEED=7 RANKDUEL_SIMULATION_CASES=5000 \
//!     scripts/test --test storage simulation
//! ```

mod model;
mod op;
mod run;

use std::path::Path;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::support::failing_store::Mode;
use op::Op;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Run `cases` lists of this seed on a store that is [`Mode::Fine`] or has a defect. Returns the
/// shortest failing list and its error.
fn search(seed: u64, cases: u32, store: Mode) -> Option<(Vec<Op>, String)> {
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let found = runner.run(&op::lists(), |ops| run::run(&ops, store).map_err(TestCaseError::fail));
    match found {
        Ok(()) => None,
        Err(TestError::Fail(reason, ops)) => Some((ops, reason.message().to_owned())),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_service_matches_the_model() {
    let seed = number("RANKDUEL_SIMULATION_SEED", 1);
    let cases = number("RANKDUEL_SIMULATION_CASES", 60) as u32;
    if let Some((ops, reason)) = search(seed, cases, Mode::Fine) {
        panic!(
            "seed {seed}: {reason}\nkeep this as a file in tests/storage/simulation/found:\n{}",
            op::write(&ops)
        );
    }
}

/// The simulation detects a service that acknowledges before its commit.
#[test]
fn an_acknowledgement_before_the_commit_is_detected() {
    // The length of the list depends on the duels that the service draws.
    search(1, 100, Mode::AnswersTooSoon).expect("not found in 100 lists");
}

/// The simulation detects a service that counts a repeat.
#[test]
fn a_counted_repeat_is_detected() {
    search(1, 100, Mode::TakesRepeatsForNew).expect("not found in 100 lists");
}

#[test]
fn earlier_failures_do_not_recur() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/storage/simulation/found");
    let mut lists = 0;
    for entry in
        std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry"))
    {
        let text = std::fs::read_to_string(entry.path()).expect("a list");
        if let Err(reason) = run::run(&op::read(&text), Mode::Fine) {
            panic!("{}: {reason}", entry.path().display());
        }
        lists += 1;
    }
    assert!(lists > 0);
}
