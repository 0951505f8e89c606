//! Checks for a verdict that look at the changed pair alone find what checks of all pairs find.

use dueling_bandits::evidence::{PairChecks, Target, Verdict, VerdictTracker};
use dueling_bandits::{Duel, Outcome, PolicyRng, Roster, Tally};
use rand::{RngExt, SeedableRng};

/// Above the number of rankers that are checked after every comparison.
const RANKERS: usize = 26;

/// The probability that the lower one of two rankers wins.
type Preference = fn(usize, usize) -> f64;

/// Ranker 1 beats all others that take part.
const LINEAR: Preference = |_, _| 0.75;
/// Ranker 1 wins, and loses to ranker 2.
const ONE_LOSS: Preference = |low, high| if (low, high) == (1, 2) { 0.2 } else { 0.75 };
/// Rankers 1, 2 and 3 beat each other in turn.
const CYCLE: Preference = |low, high| if (low, high) == (1, 3) { 0.2 } else { 0.75 };
/// Rankers 1 and 2 are nearly even, and beat all others.
const NEARLY_EVEN: Preference = |low, high| if (low, high) == (1, 2) { 0.51 } else { 0.8 };
const EVEN: Preference = |_, _| 0.5;

/// The results of several batches under both ways to check, which must agree after every pair.
/// Returns the verdict after the last one.
fn batches(preference: Preference, target: Target, most: u32, seed: u64) -> Option<Verdict> {
    let mut rng = PolicyRng::seed_from_u64(seed);
    let mut tally = Tally::new(RANKERS);
    let mut roster = Roster::new(RANKERS);
    roster.retire(0).expect("others are left");
    let active = roster.active();
    let mut all = VerdictTracker::new(target, active.len());
    let mut single = all.clone();
    for batch in 0..8 {
        let mut checks = PairChecks::default();
        for low in 0..RANKERS {
            for high in low + 1..RANKERS {
                let duel = if rng.random() { Duel::new(low, high) } else { Duel::new(high, low) };
                let count = rng.random_range(0..=most);
                for _ in 0..count {
                    let wins = rng.random_bool(preference(low, high)) == (duel.first == low);
                    tally.record(duel, if wins { Outcome::First } else { Outcome::Second });
                }
                all.observe_several(&tally, active, count.into());
                single.observe_pair(&tally, active, (duel, count.into()), &mut checks);
                assert_eq!(all.state(), single.state(), "batch {batch}, {duel:?}, seed {seed}");
            }
        }
        // between batches anything can change
        let duel = Duel::new(1, 2 + batch);
        for tracker in [&mut all, &mut single] {
            tally.record(duel, Outcome::Second);
            tracker.leave_out(&tally, duel, Outcome::Second);
        }
    }
    all.verdict().cloned()
}

#[test]
fn checks_of_one_pair_find_what_checks_of_all_pairs_find() {
    let (mut condorcet, mut copeland, mut open) = (0, 0, 0);
    for (seed, preference) in (0..).zip([LINEAR, ONE_LOSS, CYCLE, NEARLY_EVEN, EVEN]) {
        for (margin, most) in [(0.0, 3), (0.0, 60), (0.02, 12), (0.02, 60)] {
            let target = Target { confidence: 0.95, margin };
            match batches(preference, target, most, seed) {
                Some(verdict) if verdict.condorcet_steps.is_some() => condorcet += 1,
                Some(_) => copeland += 1,
                None => open += 1,
            }
        }
    }
    let cases = [condorcet, copeland, open];
    assert!(cases.iter().all(|&count| count > 0), "{cases:?}: verdicts of each kind, and none");
}
