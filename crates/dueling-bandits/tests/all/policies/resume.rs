//! Saving and restoring, for every policy kind.

use dueling_bandits::parameters::Setup;
use dueling_bandits::{InFlight, Outcome, Policy, PolicyRng, PolicySpec};
use rand::RngExt;

use super::arena::{assert_counts_every_step, fold, rng};
use crate::pins::every_policy;

/// Every kind with its defaults; batch policies also with their other tests and estimates.
fn specs() -> impl Iterator<Item = PolicySpec> {
    let others = [
        "pcomp:horizon=2000,batches=2,elimination=hoeffding,estimates=fresh",
        "scomp:horizon=2000,batches=2,elimination=kl-published,estimates=fresh",
        "scomp2:horizon=2000,batches=2,elimination=hoeffding,seed_exponent=1",
    ];
    let others = others.map(|text| PolicySpec::from_text(text).expect("a policy"));
    every_policy(2000).into_iter().chain(others)
}

/// Requests as a live service receives them, `steps` in all: some in flight at once, outcomes of
/// all kinds, late outcomes, and self-duels counted together.
fn live(policy: &mut dyn Policy, steps: usize, rng: &mut PolicyRng) {
    let mut in_flight = InFlight::new();
    let mut waiting = Vec::new();
    let mut shown_alone = vec![0; policy.tally().rankers()];
    for _ in 0..steps {
        let selection = policy.select(&in_flight, rng);
        let duel = selection.duel;
        if duel.is_self() {
            shown_alone[duel.first] += 1;
        } else {
            in_flight.add(duel.first, duel.second, 1);
            waiting.push(selection);
        }
        if rng.random_bool(0.05) {
            for (ranker, count) in
                shown_alone.iter_mut().enumerate().filter(|(_, count)| **count > 0)
            {
                policy.observe_self_duels(ranker, *count);
                *count = 0;
            }
        }
        while waiting.len() > 5 {
            let selection = waiting.swap_remove(rng.random_range(0..waiting.len()));
            in_flight.remove(selection.duel.first, selection.duel.second, 1);
            let outcome = match rng.random_range(0..10) {
                0 => Outcome::None,
                1 => Outcome::Void,
                2 => Outcome::Half,
                3 => Outcome::Second,
                4 => continue, // never answered
                _ => Outcome::First,
            };
            fold(policy, selection, outcome);
        }
    }
}

#[test]
fn a_restored_policy_continues_like_the_original() {
    for spec in specs() {
        for (rankers, seed) in [(2, 1), (5, 2), (9, 3)] {
            let setup = Setup { rankers, seed };
            let mut policy = spec.start(setup);
            let mut requests = rng(seed);
            for stretch in [0, 1, 40, 300, 1500] {
                live(&mut *policy, stretch, &mut requests);
                let bytes = policy.save();
                let restore = || spec.restore(setup, &bytes).expect("its own layout");
                let (mut restored, mut after) =
                    (restore(), format!("{} after {stretch}", spec.kind()));
                assert_eq!(restored.save(), bytes, "{after}");
                let mut same_requests = requests.clone();
                live(&mut *policy, 200, &mut requests);
                live(&mut *restored, 200, &mut same_requests);
                after += " and 200 steps";
                assert_eq!(restored.save(), policy.save(), "{after}");
                assert_eq!(restored.champion(), policy.champion(), "{after}");
                assert_eq!(restored.tally(), policy.tally(), "{after}");
            }
        }
    }
}

#[test]
fn a_damaged_state_is_refused_or_still_plays() {
    for spec in specs() {
        let setup = Setup { rankers: 4, seed: 8 };
        let mut policy = spec.start(setup);
        let mut requests = rng(8);
        live(&mut *policy, 150, &mut requests);
        let bytes = policy.save();
        let refused = |setup, bytes: &[u8], why: &str| {
            assert!(spec.restore(setup, bytes).is_none(), "{}: {why}", spec.kind());
        };
        refused(Setup { rankers: 5, seed: 8 }, &bytes, "5 rankers");
        (0..bytes.len()).for_each(|length| refused(setup, &bytes[..length], "cut"));
        refused(setup, &[&bytes[..], &[0]].concat(), "one byte more");
        for at in 0..bytes.len() {
            for flip in [1, 2, 4, 8, 0x10, 0x40, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                if let Some(mut survivor) = spec.restore(setup, &damaged) {
                    live(&mut *survivor, 12, &mut rng(u64::from(flip)));
                    survivor.champion();
                }
            }
        }
    }
}

#[test]
fn every_step_is_counted_whatever_its_outcome() {
    for spec in specs() {
        let mut policy = spec.start(Setup { rankers: 3, seed: 5 });
        assert_counts_every_step(&mut *policy, spec.kind());
    }
}
