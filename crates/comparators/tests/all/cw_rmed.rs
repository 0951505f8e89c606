//! CW-RMED and ECW-RMED: the forced exploration and the lists of pairs.

use dueling_bandits::{InFlight, Observation, Outcome, Selection};
use rand::RngExt;

use crate::arena::{answer, fold, matrix};
use crate::reference::cw_rmed::ReferenceCwRmed;
use crate::support::{ReferencePolicy, rng, start};

#[test]
fn every_pair_is_explored_and_close_pairs_are_repeated() {
    for kind in ["cw-rmed", "ecw-rmed"] {
        // from the start: the first pair until it has 3 sqrt(ln t) comparisons, then the next
        let mut policy = start(kind, 4, 1);
        let mut asked = Vec::new();
        for _ in 0..60 {
            let Selection { duel, ticket, batch } = policy.select(&InFlight::new(), &mut rng(1));
            let t = policy.tally().steps() as f64 + 1.0;
            let enough = |i: usize, j: usize| {
                let plays = policy.tally().plays(i, j);
                plays > 0.0 && plays >= 3.0 * t.ln().sqrt()
            };
            let mut all = (0..4).flat_map(|i| (0..i).map(move |j| (i, j)));
            let scarce = all.find(|&(i, j)| !enough(i, j));
            assert_eq!(ticket, u64::from(scarce.is_some()), "{kind} at {t}");
            if let Some(pair) = scarce {
                assert_eq!((duel.first, duel.second), pair);
                asked.push(pair);
            }
            // an even pair would be requested repeatedly
            let outcome = if duel.first < duel.second { Outcome::First } else { Outcome::Second };
            if duel.is_self() {
                policy.observe_self_duels(duel.first, 1);
            } else {
                policy.observe(&Observation { duel, outcome, batch, ticket });
            }
        }
        asked.dedup();
        assert!(asked.len() >= 6, "{asked:?}");
    }
}

#[test]
fn both_are_the_reference_implementation() {
    let rankers = matrix("cyclic-4");
    for (text, is_efficient, by_loop, literal) in [
        ("ecw-rmed", true, false, false),
        ("ecw-rmed:literal=true", true, false, true),
        ("ecw-rmed:evaluate=loop", true, true, false),
        ("cw-rmed", false, false, false),
    ] {
        let mut rng = rng(63);
        let mut policy = start(text, 4, 1);
        let mut reference = ReferenceCwRmed::new(4, is_efficient, by_loop, literal);
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

#[test]
fn concurrent_requests_spread() {
    let policy = start("ecw-rmed", 5, 1);
    let (mut rng, mut in_flight) = (rng(2), InFlight::new());
    let mut asked = Vec::new();
    for _ in 0..10 {
        let duel = policy.select(&in_flight, &mut rng).duel;
        in_flight.add(duel.first, duel.second, 1);
        asked.push((duel.first, duel.second));
    }
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), 10, "each pair once");
}
