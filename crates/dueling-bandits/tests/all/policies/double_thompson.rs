//! D-TS and D-TS+ against their reference implementation, which follows the paper.

use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Outcome, Policy, PolicyRng};

use super::arena::step;
use super::support::{
    A, B, C, D, Reference, ReferencePolicy, answer, assert_same_distribution, feed, frequencies,
    rng, selections, start,
};
use crate::reference::double_thompson::ReferenceDoubleThompson;

fn assert_selects_like_reference(
    policy: &dyn Policy,
    reference: &Reference,
    plus: bool,
    what: &str,
) {
    const DRAWS: usize = 12_000;
    let k = reference.wins.len();
    let mut rng = rng(21);
    let form = ReferenceDoubleThompson { reference: reference.clone(), plus };
    let expected = frequencies(k, DRAWS, || form.select(&mut rng));
    assert_same_distribution(&expected, &selections(policy, DRAWS, 22), what);
}

const KINDS: [(&str, bool); 2] = [("d-ts", false), ("d-ts-plus", true)];

/// A cycle with decided pairs, so that some rankers are not candidates, ties are common, and one
/// sign is rare.
const CYCLE_WITH_OUTSIDERS: (&[&[u32]], u64) = (
    &[
        &[0, 40, 8, 25, 40],
        &[8, 0, 40, 28, 41],
        &[40, 8, 0, 22, 45],
        &[5, 4, 6, 0, 9],
        &[1, 2, 1, 7, 0],
    ],
    0,
);

#[test]
fn selects_like_the_reference_implementation() {
    let nothing: (&[&[u32]], u64) = (&[&[0; 5], &[0; 5], &[0; 5], &[0; 5], &[0; 5]], 0);
    let of = [A, B, C, D, nothing, CYCLE_WITH_OUTSIDERS];
    for (kind, plus) in KINDS {
        for (counts, self_duels) in of {
            let mut policy = start(kind, counts.len(), 1);
            feed(policy.as_mut(), counts, self_duels);
            let reference = Reference::of(policy.tally(), 0.51);
            let name = format!("{kind} on {counts:?}");
            assert_selects_like_reference(policy.as_ref(), &reference, plus, &name);
        }
    }
}

#[test]
fn selects_like_the_reference_implementation_with_half_wins_and_a_retired_ranker() {
    for (kind, plus) in KINDS {
        let mut policy = start(&format!("{kind}:alpha=0.7"), 5, 1);
        let (counts, self_duels) = D;
        feed(policy.as_mut(), counts, self_duels);
        for (i, j) in [(0, 1), (0, 4), (4, 2), (3, 4), (4, 3), (0, 4), (0, 2)] {
            policy.observe(&answer(i, j, Outcome::Half));
            policy.observe(&answer(j, i, Outcome::Void));
        }
        policy.retire(2).unwrap();
        let mut reference = Reference::of(policy.tally(), 0.7);
        reference.retired[2] = true;
        assert_selects_like_reference(policy.as_ref(), &reference, plus, kind);
    }
}

/// D-TS+ is not D-TS: where the two reference implementations differ, the test above can
/// distinguish them.
#[test]
#[should_panic(expected = "chi-square")]
fn the_comparison_distinguishes_the_two_policies() {
    let (counts, self_duels) = D;
    let mut policy = start("d-ts", counts.len(), 1);
    feed(policy.as_mut(), counts, self_duels);
    let reference = Reference::of(policy.tally(), 0.51);
    assert_selects_like_reference(policy.as_ref(), &reference, true, "D-TS against D-TS+");
}

/// How often the confidence bounds of D-TS changed a choice that the samples alone would have made.
#[derive(Default)]
struct Eliminations {
    steps: usize,
    /// Some ranker was no candidate.
    fewer_candidates: usize,
    /// No candidate was among the best by the samples.
    first_changed: usize,
    /// The best opponent by the samples had surely lost to the first.
    second_changed: usize,
}

impl Eliminations {
    fn count(&mut self, reference: &Reference, rng: &mut PolicyRng) {
        let arms = reference.active();
        let bounds = reference.bounds();
        let optimistic =
            |i: usize| arms.iter().filter(|&&j| j != i && bounds.upper(i, j) > 0.5).count();
        let candidates = Reference::best(&arms, optimistic);
        let mut wins = vec![0; arms.len()];
        for &i in &arms {
            for &j in arms.iter().filter(|&&j| j > i) {
                wins[if reference.theta(i, j, rng) > 0.5 { i } else { j }] += 1;
            }
        }
        let first = Reference::best(&candidates, |i| wins[i])[0];
        let phi: Vec<f64> = arms
            .iter()
            .map(|&i| if i == first { 0.5 } else { reference.theta(i, first, rng) })
            .collect();
        let second = Reference::best(&arms, |i| phi[i])[0];
        self.steps += 1;
        self.fewer_candidates += usize::from(candidates.len() < arms.len());
        self.first_changed += usize::from(wins[first] < wins.iter().copied().max().unwrap_or(0));
        self.second_changed += usize::from(bounds.lower(second, first) > 0.5);
    }
}

/// Prints how often "RUCB-based elimination" occurs, which the paper says it seldom does.
/// `RANKDUEL_MATRICES` names further matrices, separated by spaces.
#[test]
#[ignore = "a table for crates/lab/notes/papers.md: the command is there"]
fn eliminations_counted() {
    const RUNS: u64 = 10;
    let more = std::env::var("RANKDUEL_MATRICES").unwrap_or_default();
    println!("matrix | steps | fewer candidates | first choice changed | second choice changed");
    for name in ["arxiv-6", "cyclic-4", "arithmetic-8"].into_iter().chain(more.split_whitespace()) {
        let matrix = PreferenceMatrix::load(name).expect("a matrix");
        let mut periods: [Eliminations; 3] = Default::default();
        for seed in 0..RUNS {
            let mut policy = start("d-ts", matrix.rankers(), seed);
            let (mut playing, mut counting) = (rng(seed), rng(seed + 1000));
            for played in 0..100_000_usize {
                // a tenth of the late steps is enough
                if played < 1000 || played % 10 == 0 {
                    let period = &mut periods[[1000, 10_000].partition_point(|&end| end <= played)];
                    period.count(&Reference::of(policy.tally(), 0.51), &mut counting);
                }
                step(policy.as_mut(), &matrix, &mut playing);
            }
        }
        for (steps, of) in ["to 1000", "to 10,000", "to 100,000"].iter().zip(&periods) {
            let share = |count: usize| format!("{:.2} %", 100.0 * count as f64 / of.steps as f64);
            println!(
                "{name} | {steps} | {} | {} | {}",
                share(of.fewer_candidates),
                share(of.first_changed),
                share(of.second_changed)
            );
        }
    }
}
