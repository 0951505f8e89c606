//! How often the champion of a horizon that is used up is not the best ranker. Takes minutes:
//! `cargo test --release -p dueling-bandits --test all -- --ignored --nocapture champions`.

use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{PairCounts, PolicyRng};
use rand::{RngExt, SeedableRng};

use super::super::arena::start;
use super::no_tie;

/// What came of some runs.
#[derive(Default)]
struct Tally {
    runs: u32,
    wrong: u32,
    /// Runs that ended with more than one ranker.
    undecided: u32,
    /// Wrong champions that the best ranker has never met.
    strangers: u32,
    /// Runs that removed the best ranker.
    lost: u32,
    /// How much worse than the best ranker the wrong champions are: 1/2 less than how often the
    /// best one beats them.
    gaps: f64,
}

fn run(kind: &str, matrix: &PreferenceMatrix, best: usize, horizon: u64, seed: u64) -> Tally {
    let rankers = matrix.rankers();
    let text = format!("{kind}{}horizon={horizon}", if kind.contains(':') { "," } else { ":" });
    let mut policy = start(&text, rankers, seed);
    let mut rng = PolicyRng::seed_from_u64(seed ^ 0xba7c);
    let mut asked = 0;
    while let Some(batch) = policy.batch() {
        for pair in policy.batch_pairs() {
            let (needed, p) = (pair.needed, matrix.win_probability(pair.duel.first, pair.duel.second));
            asked += u64::from(needed);
            let first_wins = (0..needed).filter(|_| rng.random::<f64>() < p).count() as u32;
            let second_wins = needed - first_wins;
            let counts = PairCounts { duel: pair.duel, first_wins, second_wins, ties: 0 };
            policy.observe_counts(&counts, Some(batch), &mut no_tie);
        }
    }
    let champion = policy.champion();
    let wrong = champion != best;
    let undecided = asked == horizon;
    Tally {
        runs: 1,
        wrong: wrong.into(),
        undecided: undecided.into(),
        strangers: (wrong && policy.tally().half_plays(best, champion) == 0).into(),
        lost: (wrong && !undecided).into(),
        gaps: if wrong { matrix.win_probability(best, champion) - 0.5 } else { 0.0 },
    }
}

#[test]
#[ignore = "a measurement"]
fn champions_at_the_end_of_a_horizon() {
    let runs: u64 = std::env::var("RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    for (name, of) in [("sst", "sst:64"), ("btl", "btl:64"), ("hard", "hard:64")] {
        for kind in ["pcomp", "scomp", "scomp2", "scomp2:elimination=hoeffding"] {
            for horizon in [10_000, 100_000, 1_000_000] {
                let mut all = Tally::default();
                for seed in 1..=runs {
                    // another matrix in each run
                    let matrix = format!("{of}:{seed}");
                    let matrix = PreferenceMatrix::named(&matrix).expect("a built-in").expect("it");
                    let best = matrix.condorcet_winner().expect("a winner");
                    let one = run(kind, &matrix, best, horizon, seed);
                    all.runs += one.runs;
                    all.wrong += one.wrong;
                    all.undecided += one.undecided;
                    all.strangers += one.strangers;
                    all.lost += one.lost;
                    all.gaps += one.gaps;
                }
                println!(
                    "{name:5} {kind:28} {horizon:8}: {} runs, wrong {}, of these never met {}, lost \
                     {}; horizon used up {}; mean gap of the wrong {:.3}",
                    all.runs,
                    all.wrong,
                    all.strangers,
                    all.lost,
                    all.undecided,
                    all.gaps / f64::from(all.wrong.max(1))
                );
            }
        }
    }
}
