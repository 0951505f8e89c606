//! The capital that follows the leader.

use dueling_bandits::evidence::certificate::PairEvidence;
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::refuters::Refuters;
use dueling_bandits::{Duel, Outcome, PolicyRng, Tally};
use rand::{RngExt, SeedableRng};

const MARGIN: f64 = 0.05;
const ALL: [usize; 3] = [0, 1, 2];

/// `E[X(0)]` after so many more duels, over all their outcomes. Ranker 0 beats both others by
/// exactly the margin, and the next pair depends on all outcomes so far.
fn mean(mixture: &LeadEvidence, tally: &Tally, refuters: &Refuters, left: u32) -> f64 {
    let evidence = PairEvidence::new(mixture, tally, &ALL);
    if left == 0 {
        return refuters.capital(&evidence, 0);
    }
    // the pair of which the counts are most extreme, or now and then another one
    let lead = |x: usize| (tally.wins(x, 0) - tally.wins(0, x)).abs();
    let x = if (lead(1) < lead(2)) == left.is_multiple_of(3) { 1 } else { 2 };
    let after = |won: bool| {
        let (mut tally, mut refuters) = (tally.clone(), refuters.clone());
        tally.record(Duel::new(x, 0), if won { Outcome::First } else { Outcome::Second });
        let evidence = PairEvidence::new(mixture, &tally, &ALL);
        if refuters.is_due(tally.steps()) {
            let before = refuters.capital(&evidence, 0);
            refuters.choose(&evidence, tally.steps());
            let now = refuters.capital(&evidence, 0);
            assert!((now - before).abs() < 1e-12 * (1.0 + before), "{before} became {now}");
        }
        mean(mixture, &tally, &refuters, left - 1)
    };
    (0.5 - MARGIN) * after(true) + (0.5 + MARGIN) * after(false)
}

#[test]
fn the_capital_is_a_martingale_on_the_edge_of_the_null_hypothesis() {
    let mixture = LeadEvidence::over(MARGIN);
    let mut tally = Tally::new(3);
    let mean_of = |tally: &Tally| {
        let (mut refuters, mut so_far) = (Refuters::new(3), Tally::new(3));
        // a lead that is given up later, so that there is something to lose
        for _ in 0..tally.steps() {
            so_far.record(Duel::new(1, 0), Outcome::First);
            if refuters.is_due(so_far.steps()) {
                refuters.choose(&PairEvidence::new(&mixture, &so_far, &ALL), so_far.steps());
            }
        }
        let now = refuters.capital(&PairEvidence::new(&mixture, tally, &ALL), 0);
        mean(&mixture, tally, &refuters, 12) / now
    };
    for _ in 0..4 {
        let ratio = mean_of(&tally);
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio} after {} wins", tally.steps());
        tally.record_run(Duel::new(1, 0), Outcome::First, 4);
    }
}

/// Where `X` is used, the leader is followed: against a ranker that loses to it, `X` comes near to
/// its evidence.
#[test]
fn the_capital_follows_the_leader() {
    let mixture = LeadEvidence::over(MARGIN);
    let mut rng = PolicyRng::seed_from_u64(1);
    let (mut tally, mut refuters) = (Tally::new(3), Refuters::new(3));
    for step in 0..600 {
        let (x, y) = [(0, 1), (0, 2), (1, 2)][step % 3];
        let won = rng.random_bool(0.65);
        tally.record(Duel::new(x, y), if won { Outcome::First } else { Outcome::Second });
        if refuters.is_due(tally.steps()) {
            refuters.choose(&PairEvidence::new(&mixture, &tally, &ALL), tally.steps());
        }
    }
    let evidence = PairEvidence::new(&mixture, &tally, &ALL);
    for j in [1, 2] {
        let (x, e) = (refuters.capital(&evidence, j).ln(), evidence.ln(0, j));
        assert!(x > e - 3.0 && e > 6.0, "rival {j}: {x} of {e}");
    }
    // nobody beats the leader, so nothing speaks against it
    assert!(refuters.capital(&evidence, 0) < 2.0);
}
