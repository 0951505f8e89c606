//! The selections that the Python module must repeat, bit for bit: its test reads the same file.

use std::fmt::Write;

use comparators::{Comparator, Spec};
use dueling_bandits::{InFlight, Outcome, PolicySpec, Setup, step_rng};
use sha2::{Digest, Sha256};

/// Rankers, seed and steps of each line.
const SETUP: Setup = Setup { rankers: 5, seed: 1 };
const STEPS: usize = 1000;

#[test]
fn every_kind_selects_what_the_python_module_selects() {
    let served = PolicySpec::KINDS.iter().map(|(kind, _)| *kind);
    let mut found = String::new();
    for kind in served.chain(Comparator::KINDS.iter().copied()) {
        let valid = |text: &str| {
            let spec = Spec::from_text(text).ok()?;
            spec.validate(SETUP.rankers).is_ok().then_some(spec)
        };
        let text = match valid(kind) {
            Some(_) => kind.to_owned(),
            None => format!("{kind}:horizon={STEPS}"),
        };
        let spec = valid(&text).expect("defaults, and a horizon where it needs one");
        writeln!(found, "{text} {}", digest(&spec)).expect("writing to a string");
    }
    let pinned = include_str!("../../../python/tests/selections.txt");
    assert!(found == pinned, "crates/python/tests/selections.txt is now\n{found}");
}

/// A digest of the selected pairs and the champion. The lower ranker wins two of three.
fn digest(spec: &Spec) -> String {
    let mut policy = spec.start(SETUP);
    let mut rng = step_rng(SETUP.seed, 0);
    let mut bytes = Vec::with_capacity(2 * STEPS + 1);
    for step in 0..STEPS {
        let selection = policy.select(&InFlight::new(), &mut rng);
        let duel = selection.duel;
        bytes.extend([duel.first as u8, duel.second as u8]);
        let first_wins = (duel.first < duel.second) == (step % 3 > 0);
        match duel.is_self() {
            true => policy.observe_self_duels(duel.first, 1),
            false if first_wins => policy.observe(&selection.observed(Outcome::First)),
            false => policy.observe(&selection.observed(Outcome::Second)),
        }
    }
    bytes.push(policy.champion() as u8);
    Sha256::digest(bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
