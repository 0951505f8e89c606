//! Intervals of a pair from the evidence of the verdict: against the verdict, and their error.

use dueling_bandits::evidence::ladder::Ladder;
use dueling_bandits::evidence::{Target, VerdictTracker};
use dueling_bandits::{Duel, Outcome, Tally, step_rng};
use rand::RngExt;

const ACTIVE: [usize; 2] = [0, 1];

/// Play a pair that the first ranker wins with this probability, and look at it after each answer.
fn play(
    target: Target,
    wins: f64,
    answers: usize,
    seed: u64,
    mut look: impl FnMut(&VerdictTracker, &Tally),
) {
    let (mut tally, mut tracker) = (Tally::new(2), VerdictTracker::new(target, 2));
    let mut rng = step_rng(seed, 5);
    let duel = Duel::new(0, 1);
    for _ in 0..answers {
        let first = rng.random_bool(wins);
        tally.record(duel, if first { Outcome::First } else { Outcome::Second });
        tracker.observe(&tally, &ACTIVE, duel);
        look(&tracker, &tally);
    }
}

#[test]
fn with_two_rankers_the_lower_end_reaches_the_margin_at_the_verdict() {
    let ladder = Ladder::default();
    for (margin, seed) in [(0.0, 1), (0.01, 2), (0.013, 3), (0.05, 4)] {
        let target = Target { confidence: 0.95, margin };
        let mut decided = false;
        play(target, 0.64, 400, seed, |tracker, tally| {
            let standing = tracker.standing(tally, &ACTIVE, 0);
            let (_, (low, high)) = ladder.intervals(tracker, tally, &ACTIVE, &standing)[0];
            let won = tracker.verdict().is_some_and(|verdict| verdict.winner() == 0);
            assert_eq!(low >= 0.5 - margin, won, "{margin}: {low}");
            assert!(low <= high && (0.0..=1.0).contains(&low), "{low} {high}");
            decided |= won;
        });
        assert!(decided, "{margin}");
    }
}

#[test]
fn an_end_is_ever_wrong_in_at_most_the_error_of_the_verdict() {
    let ladder = Ladder::default();
    let target = Target { confidence: 0.8, margin: 0.01 };
    let runs = 300;
    for truth in [0.5, 0.58] {
        let (mut low_wrong, mut high_wrong) = (0, 0);
        for seed in 0..runs {
            let (mut too_high, mut too_low, mut answers) = (false, false, 0);
            play(target, truth, 200, 100 + seed, |tracker, tally| {
                answers += 1;
                if answers % 4 == 0 {
                    let standing = tracker.standing(tally, &ACTIVE, 0);
                    let (_, (low, high)) = ladder.intervals(tracker, tally, &ACTIVE, &standing)[0];
                    too_high |= low > truth;
                    too_low |= high < truth;
                }
            });
            low_wrong += u64::from(too_high);
            high_wrong += u64::from(too_low);
        }
        // 18 % before the roster changes, and three standard deviations
        for wrong in [low_wrong, high_wrong] {
            assert!(wrong <= 74, "{truth}: {low_wrong} and {high_wrong} of {runs}");
        }
        assert!(low_wrong + high_wrong > 0, "{truth}: no interval is ever wrong");
    }
}
