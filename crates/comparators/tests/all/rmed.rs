//! RMED1 against a reference implementation.

use dueling_bandits::{InFlight, Outcome};
use rand::RngExt;

use crate::arena::fold;
use crate::reference::rmed::ReferenceRmed;
use crate::support::{ReferencePolicy, rng, start};

#[test]
fn is_the_reference_implementation() {
    for seed in 0..12 {
        let k = 3 + seed as usize % 4;
        let mut policy = start("rmed1", k, 1);
        let mut reference = ReferenceRmed::new(k);
        let mut rng = rng(60 + seed);
        for step in 0..800 {
            let selection = policy.select(&InFlight::new(), &mut rng);
            let duel = selection.duel;
            assert_eq!(duel, reference.select(&mut rng), "seed {seed}, step {step}");
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
