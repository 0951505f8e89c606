//! ECW-RMED: the forced exploration and the lists of pairs.

use dueling_bandits::{InFlight, Outcome};
use rand::RngExt;

use crate::arena::{answer, fold, matrix};
use crate::reference::ecw_rmed::ReferenceEcwRmed;
use crate::support::{ReferencePolicy, rng, start};

#[test]
fn is_the_reference_implementation() {
    let rankers = matrix("cyclic-4");
    for (text, literal) in [("ecw-rmed", false), ("ecw-rmed:literal=true", true)] {
        let mut rng = rng(63);
        let mut policy = start(text, 4, 1);
        let mut reference = ReferenceEcwRmed::new(4, literal);
        let mut unforced = 0;
        for step in 0..600 {
            let selection = policy.select(&InFlight::new(), &mut rng);
            assert_eq!(selection.duel, reference.select(&mut rng), "{text}, step {step}");
            let outcome = match rng.random_range(0..20) {
                0 => Outcome::Half,
                1 => Outcome::None,
                _ => answer(&rankers, selection.duel, &mut rng),
            };
            unforced += u32::from(!selection.duel.is_self() && selection.ticket == 0);
            reference.fold(selection.duel, outcome);
            fold(policy.as_mut(), selection, outcome);
        }
        assert!(unforced > 50, "{text}: {unforced} duels from the lists");
    }
}
