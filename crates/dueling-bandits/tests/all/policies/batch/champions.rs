//! How often the champion of a horizon that is used up is not the best ranker. Takes half a
//! minute: `cargo test -p dueling-bandits --test all -- --ignored --nocapture champions`.

use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Policy, PolicyRng, Tally};
use rand::{RngExt, SeedableRng};

use super::super::arena::start;
use super::answer_batch;

/// The results of some runs.
#[derive(Default)]
struct Counts {
    runs: u32,
    /// Runs whose champion is not the best ranker.
    wrong: u32,
    /// Those of them in which the two have never met.
    strangers: u32,
    /// How much more than half of its comparisons the best ranker wins against these champions.
    gaps: f64,
    /// Runs in which the likeliest ranker by the same comparisons is not the best.
    unlikely: u32,
    /// Runs that used up the horizon.
    used_up: u32,
}

impl Counts {
    fn add(&mut self, policy: &dyn Policy, matrix: &PreferenceMatrix, used_up: bool) {
        let best = matrix.condorcet_winner().expect("a winner");
        let (champion, tally) = (policy.champion(), policy.tally());
        self.runs += 1;
        self.used_up += u32::from(used_up);
        self.unlikely += u32::from(likeliest(tally) != best);
        if champion != best {
            self.wrong += 1;
            self.strangers += u32::from(tally.half_plays(best, champion) == 0);
            self.gaps += matrix.margin(best, champion);
        }
    }
}

/// The strongest ranker by the likeliest Bradley-Terry strengths: what could be learnt from the
/// same comparisons if the rankers are in an order.
fn likeliest(tally: &Tally) -> usize {
    let rankers = tally.rankers();
    let mut strengths = vec![1.0; rankers];
    for _ in 0..200 {
        let next = |i: usize| {
            let against = |j: usize| tally.plays(i, j) / (strengths[i] + strengths[j]);
            let others = || (0..rankers).filter(|&j| j != i);
            // half a win and half a loss against a ranker of strength 1
            let wins: f64 = others().map(|j| tally.wins(i, j)).sum();
            (0.5 + wins) / (1.0 / (1.0 + strengths[i]) + others().map(against).sum::<f64>())
        };
        strengths = (0..rankers).map(next).collect();
    }
    (0..rankers).max_by(|&i, &j| strengths[i].total_cmp(&strengths[j])).expect("a ranker")
}

/// Run all batches. Returns the policy, and whether they used up the horizon.
fn run(text: &str, matrix: &PreferenceMatrix, horizon: u64, seed: u64) -> (Box<dyn Policy>, bool) {
    let mut policy = start(text, matrix.rankers(), seed);
    let mut rng = PolicyRng::seed_from_u64(seed ^ 0xba7c);
    let mut asked = 0;
    while policy.batch().is_some() {
        answer_batch(policy.as_mut(), |pair| {
            asked += u64::from(pair.needed);
            let p = matrix.win_probability(pair.duel.first, pair.duel.second);
            (0..pair.needed).filter(|_| rng.random::<f64>() < p).count() as u32
        });
    }
    (policy, asked == horizon)
}

#[test]
#[ignore = "a measurement"]
fn champions_at_the_end_of_a_horizon() {
    for matrices in ["sst:64", "btl:64", "hard:64"] {
        for kind in ["pcomp", "scomp", "scomp2"] {
            for horizon in [10_000, 100_000, 1_000_000] {
                let mut all = Counts::default();
                for seed in 1..=100 {
                    // another matrix in each run
                    let matrix = PreferenceMatrix::named(&format!("{matrices}:{seed}"));
                    let matrix = matrix.expect("a built-in").expect("a valid one");
                    let text = format!("{kind}:horizon={horizon}");
                    let (policy, used_up) = run(&text, &matrix, horizon, seed);
                    all.add(policy.as_ref(), &matrix, used_up);
                }
                let Counts { runs, wrong, strangers, unlikely, used_up, .. } = all;
                let gap = all.gaps / f64::from(wrong.max(1));
                println!(
                    "{matrices:8} {kind:6} {horizon:8}: wrong {wrong} of {runs}, by {gap:.3}; never \
                     met {strangers}; the likeliest is wrong {unlikely}; used up {used_up}"
                );
            }
        }
    }
}
