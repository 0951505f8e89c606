//! The format of pins, and their comparison.

use std::fmt::Write;

use dueling_bandits::{InFlight, Outcome, Policy, PolicySpec, step_rng};
use sha2::{Digest, Sha256};

/// One pinned state: the policy kind, the first 16 hexadecimal digits of the state's SHA-256, and
/// its next hundred selections, two digits each (rankers 0 to 9), without white space.
pub struct Pin {
    pub kind: &'static str,
    pub state: &'static str,
    pub selections: &'static str,
}

/// Every kind with its defaults, and with `horizon` where the kind requires one.
pub fn every_policy(horizon: u64) -> Vec<PolicySpec> {
    let spec = |(kind, _): &(&str, _)| {
        PolicySpec::from_text_with(kind, &[("horizon", horizon.into())])
            .expect("a policy with its defaults")
    };
    PolicySpec::KINDS.iter().map(spec).collect()
}

pub fn digest(state: &[u8]) -> String {
    Sha256::digest(state)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The next hundred selections of a policy with nothing in flight, each folded before the next: the
/// lower ranker wins two of three.
pub fn selections(mut policy: Box<dyn Policy>) -> String {
    let mut text = String::new();
    for number in 0..100 {
        let selection = policy.select(&InFlight::new(), &mut step_rng(77, number));
        let duel = selection.duel;
        assert!(duel.first < 10 && duel.second < 10, "one digit per ranker");
        write!(text, "{}{}", duel.first, duel.second).expect("writing to a string");
        let first_wins = (duel.first < duel.second) == (number % 3 > 0);
        let outcome = if first_wins { Outcome::First } else { Outcome::Second };
        match duel.is_self() {
            true => policy.observe_self_duels(duel.first, 1),
            false => policy.observe(&selection.observed(outcome)),
        }
    }
    text
}

/// Fail unless `found` (kind, state, selections) equals `pins` for every kind, and print the table
/// as it is now.
pub fn assert_pinned(pins: &[Pin], found: &[(String, String, String)]) {
    let same = |pin: &Pin, (kind, state, selections): &(String, String, String)| {
        let pinned: String = pin.selections.split_whitespace().collect();
        (pin.kind, pin.state, &pinned) == (kind, state, selections)
    };
    let changed: Vec<_> = found
        .iter()
        .filter(|found| !pins.iter().any(|pin| same(pin, found)))
        .map(|(kind, _, _)| kind.as_str())
        .collect();
    let gone: Vec<_> = pins
        .iter()
        .map(|pin| pin.kind)
        .filter(|kind| found.iter().all(|found| found.0 != *kind))
        .collect();
    assert!(
        changed.is_empty() && gone.is_empty(),
        "the fold of {changed:?} has changed, and the kinds {gone:?} are missing; the table as it \
         is now:\n{}",
        table(found)
    );
}

fn table(found: &[(String, String, String)]) -> String {
    let mut text = String::new();
    for (kind, state, selections) in found {
        writeln!(text, "    Pin {{\n        kind: \"{kind}\",\n        state: \"{state}\",")
            .expect("writing to a string");
        let lines: Vec<_> = selections
            .as_bytes()
            .chunks(80)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        let lines = lines.join("\\\n                     ");
        writeln!(text, "        selections: \"{lines}\",\n    }},").expect("writing to a string");
    }
    text
}
