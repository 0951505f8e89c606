//! The format of pins, and their comparison.

use std::fmt::Write;

use dueling_bandits::{Bandit, InFlight, Outcome, PolicySpec, step_rng};
use sha2::{Digest, Sha256};

/// Every kind with its defaults, and with `horizon` where the kind requires one.
pub fn every_policy(horizon: u64) -> Vec<PolicySpec> {
    let spec = |(kind, _): &(&str, _)| {
        PolicySpec::from_text_with(kind, &[("horizon", horizon.into())])
            .expect("a policy with its defaults")
    };
    PolicySpec::KINDS.iter().map(spec).collect()
}

/// A pin: the policy kind, the first 16 hexadecimal digits of the state's SHA-256, and the next
/// hundred selections of the policy, two digits each (rankers 0 to 9).
pub fn pin(kind: &str, state: &[u8], policy: Box<dyn Bandit>) -> String {
    let digest: String =
        Sha256::digest(state)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{kind} {digest} {}", selections(policy))
}

/// The next hundred selections of a policy with nothing in flight, each folded before the next: the
/// lower ranker wins two of three.
fn selections(mut policy: Box<dyn Bandit>) -> String {
    let mut text = String::new();
    for number in 0..100 {
        let selection = policy.select(&InFlight::new(), &mut step_rng(77, number));
        let duel = selection.duel;
        assert!(duel.first < 10 && duel.second < 10, "one digit per ranker");
        write!(text, "{}{}", duel.first, duel.second).expect("writing to a string");
        let first_wins = (duel.first < duel.second) == (number % 3 > 0);
        let outcome = if first_wins { Outcome::First } else { Outcome::Second };
        policy.observe_shown(selection, outcome);
    }
    text
}

/// Fail unless `found` has the lines of a file of pins, one for each kind, and print the file as it
/// is now.
pub fn assert_pinned(pinned: &str, found: &[String]) {
    let differs = |pin: &&String| !pinned.lines().any(|line| line == *pin);
    let kind = |pin: &String| pin.split(' ').next().map(str::to_owned);
    let changed: Vec<_> = found.iter().filter(differs).filter_map(kind).collect();
    let all = found.join("\n") + "\n";
    assert!(all == pinned, "the fold of {changed:?} has changed; the file as it is now:\n{all}");
}
