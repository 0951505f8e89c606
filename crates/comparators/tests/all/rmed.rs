//! RMED1, RMED2 and RMED2FH against a reference implementation.

use dueling_bandits::{Duel, InFlight, Observation, Outcome, Selection};
use rand::RngExt;

use crate::arena::fold;
use crate::reference::rmed::{ReferenceRmed, Version};
use crate::support::{ReferencePolicy, rng, start};

#[test]
fn the_initial_phase_of_a_fixed_horizon_plays_every_pair_in_rounds() {
    // T = 3 to 15: ln ln T is below 1, so L = 3 with α = 3
    let mut policy = start("rmed2-fh:horizon=15", 4, 1);
    let wins = [[0, 3, 3, 0], [0, 0, 3, 2], [0, 0, 0, 2], [3, 1, 1, 0]];
    let mut seen = [[0; 4]; 4];
    for step in 0..18 {
        let Selection { duel, ticket, batch } = policy.select(&InFlight::new(), &mut rng(3));
        let Duel { first, second } = duel;
        assert!(first < second, "the initial phase selects {duel:?} at step {step}");
        assert_eq!(seen[first][second], step / 6, "in rounds");
        let is_win = seen[first][second] < wins[first][second];
        let outcome = if is_win { Outcome::First } else { Outcome::Second };
        seen[first][second] += 1;
        policy.observe(&Observation { duel, outcome, batch, ticket });
    }
    // i* = 3 (it loses 1 of 3 to 1 and to 2: I = 2·3 d(1/3); 0 loses all 3 to it: 3 ln 2)
    assert_eq!(policy.champion(), 3);
}

#[test]
fn concurrent_requests_spread_over_the_initial_phase() {
    let policy = start("rmed1", 6, 1);
    let (mut rng, mut in_flight) = (rng(5), InFlight::new());
    let mut asked: Vec<_> = (0..15)
        .map(|_| {
            let duel = policy.select(&in_flight, &mut rng).duel;
            in_flight.add(duel.first, duel.second, 1);
            (duel.first, duel.second)
        })
        .collect();
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), 15, "each pair once");
}

#[test]
fn each_version_is_the_reference_implementation() {
    for (text, version) in [
        ("rmed1", Version::One),
        ("rmed2", Version::Two(3.0)),
        ("rmed2:alpha=0.01", Version::Two(0.01)),
        ("rmed2-fh:horizon=1000", Version::FixedHorizon(3.0, 1000.0)),
    ] {
        for seed in 0..12 {
            let k = 3 + seed as usize % 4;
            let mut policy = start(text, k, 1);
            let mut reference = ReferenceRmed::new(k, version);
            let mut rng = rng(60 + seed);
            for step in 0..800 {
                let selection = policy.select(&InFlight::new(), &mut rng);
                let duel = selection.duel;
                assert_eq!(duel, reference.select(&mut rng), "{text}, seed {seed}, step {step}");
                let outcome = match rng.random_range(0..20) {
                    0 => Outcome::Half,
                    1 => Outcome::Void,
                    2 => Outcome::None,
                    n if (n < 12) == (duel.first < duel.second) => Outcome::First,
                    _ => Outcome::Second,
                };
                reference.fold(duel, outcome);
                fold(policy.as_mut(), selection, outcome);
            }
        }
    }
}
