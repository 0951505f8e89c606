//! Each policy alone: observations of every kind, batches, self-duels, roster changes.

use dueling_bandits::parameters::Setup;
use dueling_bandits::{
    Answer, Duel, InFlight, Observation, Outcome, PairCounts, Policy, PolicySpec, TieRule, step_rng,
};

use super::pin::{assert_pinned, every_policy, pin};
use super::script::Script;

pub const SETUP: Setup = Setup { rankers: 5, seed: 0x5eed };
const STEPS: u64 = 900;

/// The policy after the script.
pub fn played(spec: &PolicySpec) -> Box<dyn Policy> {
    let mut policy = spec.start(SETUP);
    let fixed = spec.description().fixed_rankers.is_some();
    let mut script = Script::new(1);
    for step in 0..STEPS {
        let rankers = policy.tally().rankers();
        if !fixed && step == 300 {
            policy.enlist().expect("capacity for one more ranker");
        }
        if !fixed && step == 500 {
            policy.retire(3).expect("other rankers remain");
        }
        match script.below(20) {
            0 => policy.observe_self_duels(script.below(rankers), 1 + script.below(9) as u64),
            1 => {
                // a pair that no selection returned, with an arbitrary ticket and batch
                let first = script.below(rankers);
                let second = (first + 1 + script.below(rankers - 1)) % rankers;
                let duel = Duel::new(first, second);
                observe(&mut *policy, duel, Outcome::First, Some(1), 12_345);
            }
            2 => counted_elsewhere(&mut *policy, &mut script),
            _ => {
                let selection = policy.select(&InFlight::new(), &mut step_rng(3, step));
                let duel = selection.duel;
                if duel.is_self() {
                    policy.observe_self_duels(duel.first, 1);
                    continue;
                }
                let outcome = match script.below(20) {
                    0 => Outcome::None,
                    1 => Outcome::Void,
                    2 => Outcome::Half,
                    _ if script.first_wins(duel.first, duel.second) => Outcome::First,
                    _ => Outcome::Second,
                };
                observe(&mut *policy, duel, outcome, selection.batch, selection.ticket);
            }
        }
    }
    policy
}

fn observe(policy: &mut dyn Policy, duel: Duel, outcome: Outcome, batch: Option<u32>, ticket: u64) {
    policy.observe(&Observation { duel, outcome, batch, ticket });
}

/// Fold counts of some pairs of the open batch, or of any pairs.
fn counted_elsewhere(policy: &mut dyn Policy, script: &mut Script) {
    let pairs = policy.batch_pairs();
    let duel =
        if pairs.is_empty() { Duel::new(0, 1) } else { pairs[script.below(pairs.len())].duel };
    let counts = PairCounts {
        duel,
        first_wins: script.below(4) as u32,
        second_wins: script.below(4) as u32,
        ties: script.below(2) as u32,
    };
    let batch = policy.batch();
    policy.observe_counts(&counts, batch, &mut |step| TieRule::Coin.resolve(Answer::Tie, 9, step));
}

#[test]
fn every_policy_folds_and_selects_as_pinned() {
    let found: Vec<_> = every_policy(2000)
        .iter()
        .map(|spec| {
            let policy = played(spec);
            pin(spec.kind(), &policy.save(), policy)
        })
        .collect();
    assert_pinned(include_str!("policies.txt"), &found);
}
