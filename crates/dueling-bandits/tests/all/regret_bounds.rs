//! The bounds of regret, against every way in which the unsettled pairs can turn out.

use dueling_bandits::evidence::Sequences;
use dueling_bandits::evidence::regret_bounds::regret_bounds;
use dueling_bandits::preference::Regret;
use dueling_bandits::{Duel, Outcome, Tally, step_rng};
use rand::RngExt;

/// A tally whose pairs are settled or not, at random, and the winner of each settled pair.
fn tally(rankers: usize, rng: &mut impl rand::Rng) -> (Tally, Vec<(usize, usize, Option<usize>)>) {
    let mut tally = Tally::new(rankers);
    let mut pairs = Vec::new();
    for i in 1..rankers {
        for j in 0..i {
            let settled = rng.random_bool(0.5);
            let (winner, loser) = if rng.random() { (i, j) } else { (j, i) };
            tally.record_run(
                Duel::new(winner, loser),
                Outcome::First,
                if settled { 60 } else { 3 },
            );
            pairs.push((i, j, settled.then_some(winner)));
        }
    }
    (tally, pairs)
}

#[test]
fn no_way_is_outside_and_the_most_is_reached() {
    let rng = &mut step_rng(5, 5);
    let mut reached = 0;
    for round in 0..300 {
        let rankers = 2 + round % 3;
        let (tally, pairs) = tally(rankers, rng);
        let shown: Vec<u64> = (0..rankers).map(|_| 2 * rng.random_range(0..500)).collect();
        let bounds = regret_bounds(&tally, &Sequences::new(rankers, rankers, 0.95), &shown);
        let open = pairs.iter().filter(|(.., winner)| winner.is_none()).count();
        assert_eq!(bounds.unsettled, open);
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for way in 0..3_usize.pow(open as u32) {
            let (mut scores, mut rest) = (vec![0; rankers], way);
            for &(i, j, winner) in &pairs {
                match winner {
                    Some(winner) => scores[winner] += 1,
                    None => {
                        match rest % 3 {
                            0 => scores[i] += 1,
                            1 => scores[j] += 1,
                            _ => {}
                        }
                        rest /= 3;
                    }
                }
            }
            let regret = Regret::from_copeland_scores(&scores).of_appearances(&shown);
            (low, high) = (low.min(regret), high.max(regret));
        }
        assert!((bounds.high - high).abs() < 1e-9, "{bounds:?}, {high}");
        assert!(bounds.low <= low + 1e-9, "{bounds:?}, {low}");
        reached += usize::from(bounds.low > low - 1e-9);
    }
    assert!(reached > 200, "the least was reached in {reached} of 300");
}
