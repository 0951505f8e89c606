//! Every valid policy keeps working, whatever the outcomes are, and even if they are late or lost.

use dueling_bandits::{InFlight, Observation, Outcome, PairCounts, Policy, Selection, step_rng};
use dueling_bandits::{PolicySpec, Setup};

use super::bytes::Bytes;

/// Largest number of steps: the linear programs of some policies are slow.
const STEPS_MAX: u64 = 60;

/// The first line is a policy, in the form of the command line or as JSON. Then follow one byte for
/// the number of rankers, and one byte per step.
pub fn run(bytes: &[u8]) {
    let (line, rest) = match bytes.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    let Ok(text) = std::str::from_utf8(line) else { return };
    let of_text = PolicySpec::from_text(text).ok();
    let of_json = serde_json::from_str::<PolicySpec>(text).ok();
    for spec in of_text.iter().chain(&of_json) {
        play(spec, Bytes(rest));
    }
}

fn play(spec: &PolicySpec, mut bytes: Bytes<'_>) {
    let rankers = 2 + bytes.below(7);
    let again = serde_json::to_string(spec).expect("JSON");
    assert_eq!(serde_json::from_str::<PolicySpec>(&again).expect("the written policy"), *spec);
    if spec.validate(rankers).is_err() {
        return;
    }
    let setup = Setup { rankers, seed: 1 };
    let mut policy = spec.start(setup);
    let mut open: Vec<Selection> = Vec::new();
    let mut in_flight = InFlight::new();
    for step in 0..STEPS_MAX {
        if bytes.is_empty() && step >= 4 {
            break;
        }
        let selection = policy.select(&in_flight, &mut step_rng(1, step));
        let duel = selection.duel;
        assert!(duel.first < rankers && duel.second < rankers, "{spec:?}: {selection:?}");
        let action = bytes.byte();
        if duel.is_self() {
            policy.observe_self_duels(duel.first, u64::from(action) + 1);
        } else {
            in_flight.add(duel.first, duel.second, 1);
            open.push(selection);
        }
        match action % 8 {
            // the newest or an older duel is answered
            0..4 if !open.is_empty() => {
                let selection = open.remove(open.len() - 1 - usize::from(action >> 4) % open.len());
                in_flight.remove(selection.duel.first, selection.duel.second, 1);
                observe(&mut *policy, selection, action);
            }
            // open duels are never answered
            4 => {
                open.clear();
                in_flight.clear();
            }
            // comparisons that were counted elsewhere
            5 if !duel.is_self() => {
                let [first_wins, second_wins, ties] =
                    [action >> 3, action >> 5, action >> 6].map(u32::from);
                let counts = PairCounts { duel, first_wins, second_wins, ties };
                policy.observe_counts(&counts, selection.batch, &mut |_| Outcome::First);
            }
            // another process continues from the saved state
            6 => {
                let saved = policy.save();
                let restored = spec.restore(setup, &saved).expect("the saved state");
                assert_eq!(restored.save(), saved, "{spec:?}");
                policy = restored;
            }
            _ => {}
        }
        assert!(policy.champion() < rankers, "{spec:?}");
        for row in policy.batch_pairs() {
            assert!(
                row.answered <= row.needed && row.duel.first < rankers && row.duel.second < rankers
            );
        }
    }
}

/// Pass the outcome of a selection to `policy`. `how` selects the outcome.
pub fn observe(policy: &mut dyn Policy, selection: Selection, how: u8) {
    let Selection { duel, batch, ticket } = selection;
    let outcome = [Outcome::First, Outcome::Second, Outcome::Half, Outcome::Void, Outcome::None]
        [usize::from(how >> 3) % 5];
    policy.observe(&Observation { duel, outcome, batch, ticket });
}
