//! The stopping rule against a reference implementation: the capital of every truth, written out.

use std::cmp::Ordering;

use dueling_bandits::evidence::certificate::{CopelandRule, PairEvidence};
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::{Duel, Outcome, PolicyRng, Tally};
use rand::{RngExt, SeedableRng};

/// One truth: `sides[x][y]`, `Less` where `x` is beaten by more than the margin.
type Truth = Vec<Vec<Ordering>>;

/// Every truth of so many rankers, where pairs are won, lost, or neither.
fn truths(rankers: usize) -> Vec<Truth> {
    let pairs: Vec<_> = (0..rankers).flat_map(|y| (0..y).map(move |x| (x, y))).collect();
    let sides = [Ordering::Less, Ordering::Equal, Ordering::Greater];
    (0..3_usize.pow(pairs.len() as u32))
        .map(|mut number| {
            let mut truth = vec![vec![Ordering::Equal; rankers]; rankers];
            for &(x, y) in &pairs {
                truth[x][y] = sides[number % 3];
                truth[y][x] = truth[x][y].reverse();
                number /= 3;
            }
            truth
        })
        .collect()
}

fn others(rankers: usize, one: usize) -> impl Iterator<Item = usize> + Clone {
    (0..rankers).filter(move |&x| x != one)
}

/// `|N(a)|`: those that `a` does not beat. With a margin a pair within it goes either way, so only
/// those that beat `a` by more than the margin count.
fn not_beaten(truth: &Truth, a: usize, margin: bool) -> Vec<usize> {
    others(truth.len(), a)
        .filter(|&y| truth[a][y] == Ordering::Less || !margin && truth[a][y] == Ordering::Equal)
        .collect()
}

fn surely_beaten(truth: &Truth, j: usize) -> usize {
    others(truth.len(), j).filter(|&x| truth[j][x] == Ordering::Greater).count()
}

/// `o`, as it is documented.
fn wrong_weight(rankers: usize, one_beats_all: bool, losses: usize, margin: bool) -> f64 {
    if margin {
        return 1.0 / (rankers - 1) as f64;
    }
    match (one_beats_all, losses) {
        (true, 1) => 0.93,
        (true, 2) if rankers == 3 => 0.07,
        (true, 2) => 0.042,
        (true, _) => 0.028 * 2.0_f64.powi(2 - losses as i32),
        (false, 2) if rankers == 3 => 0.5,
        (false, 2) => 0.29,
        (false, _) => 0.08 * 2.0_f64.powi(3 - losses as i32),
    }
}

/// `Φ` of a truth with `best` as `j*`, from `e[x][y] = E(x≻y)`, and the wrong rankers.
fn capital(truth: &Truth, best: usize, e: &[Vec<f64>], margin: bool) -> (f64, Vec<usize>) {
    let rankers = truth.len();
    let n = (rankers - 1) as f64;
    let stake = (1.0 / n).min(0.5);
    let staked = |x: usize, y: usize| 1.0 - stake + stake * e[x][y];
    let most = surely_beaten(truth, best);
    let one_beats_all = most == rankers - 1;
    let b = if one_beats_all { [0.7, 0.15, 0.05, 0.06, 0.04] } else { [0.2, 0.3, 0.2, 0.2, 0.1] };
    let s: Vec<usize> = not_beaten_by(truth, best, margin);
    let rivals: f64 = s.iter().map(|&x| staked(x, best)).product();
    let mut phi = b[1] / n * s.iter().map(|&x| e[x][best]).sum::<f64>() + b[3] * rivals;
    let mut wrong = Vec::new();
    for a in others(rankers, best) {
        let losses = not_beaten(truth, a, margin);
        let score = rankers - 1 - losses.len();
        if score >= most {
            continue;
        }
        wrong.push(a);
        let c = losses.len() as f64;
        let near = if margin { n } else { n.min(2.0 * c) };
        let (g, h) = match (one_beats_all, score + 1 == most) {
            (true, _) => (1.0 / n, n),
            (false, true) => (0.8 / near, n.min(c)),
            (false, false) => (0.2 / n, n.min(c)),
        };
        let rest = || losses.iter().copied().filter(|&y| y != best);
        let weight = wrong_weight(rankers, one_beats_all, losses.len(), margin);
        phi += b[0] * weight * losses.iter().map(|&y| e[a][y]).product::<f64>()
            + b[2] * g / h * rest().map(|y| e[a][y]).sum::<f64>()
            + b[4] * g * rivals * rest().map(|y| staked(a, y)).product::<f64>();
    }
    (phi, wrong)
}

/// `S`: those that do not beat `best`, with a margin those that it beats by more than that.
fn not_beaten_by(truth: &Truth, best: usize, margin: bool) -> Vec<usize> {
    others(truth.len(), best)
        .filter(|&x| {
            truth[x][best] == Ordering::Less || !margin && truth[x][best] == Ordering::Equal
        })
        .collect()
}

/// Every ranker that can be `j*` under a truth.
fn winners(truth: &Truth) -> Vec<usize> {
    let scores: Vec<_> = (0..truth.len()).map(|j| surely_beaten(truth, j)).collect();
    let most = scores.iter().max().copied().unwrap_or(0);
    (0..truth.len()).filter(|&j| scores[j] == most).collect()
}

/// Counts under which pairs are anything from undecided to clear, not all of them consistent.
fn counts(rankers: usize, rng: &mut PolicyRng) -> Tally {
    let mut tally = Tally::new(rankers);
    for y in 0..rankers {
        for x in 0..y {
            let clear = rng.random_bool(0.6);
            let duels = rng.random_range(0..if clear { 400 } else { 30 });
            let wins = rng.random_range(0..=duels);
            for number in 0..duels {
                let outcome = if number < wins { Outcome::First } else { Outcome::Second };
                tally.record(Duel::new(x, y), outcome);
            }
        }
    }
    tally
}

#[test]
fn the_bound_is_never_above_the_capital_of_any_truth() {
    let mut rng = PolicyRng::seed_from_u64(1);
    for (rankers, trials) in [(2, 40), (3, 300), (4, 120), (5, 4)] {
        let truths = truths(rankers);
        for margin in [0.0, 0.02] {
            let rule = CopelandRule::new(rankers, 0.05, margin);
            for _ in 0..trials {
                let evidence = PairEvidence::new(&counts(rankers, &mut rng), margin);
                // what the rule cuts off at e^40 is far beyond its threshold
                let e: Vec<Vec<f64>> = (0..rankers)
                    .map(|x| (0..rankers).map(|y| evidence.ln(x, y).min(40.0).exp()).collect())
                    .collect();
                let mut least = vec![vec![f64::INFINITY; rankers]; rankers];
                for truth in &truths {
                    for best in winners(truth) {
                        let (phi, wrong) = capital(truth, best, &e, margin > 0.0);
                        for a in wrong {
                            least[a][best] = least[a][best].min(phi);
                        }
                    }
                }
                for (a, row) in least.iter().enumerate() {
                    for j in others(rankers, a) {
                        let bound = rule.ln_capital(&evidence, a, j);
                        let exact = if rankers == 2 { e[a][j].ln() } else { row[j].ln() };
                        assert!(
                            bound <= exact + 1e-9,
                            "{rankers} rankers, margin {margin}, {a} against {j}: {bound} > {exact}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn every_truth_starts_with_a_capital_of_at_most_one() {
    for rankers in 3..=5 {
        let even = vec![vec![1.0; rankers]; rankers];
        for margin in [false, true] {
            let largest = truths(rankers)
                .iter()
                .flat_map(|truth| {
                    winners(truth).into_iter().map(|best| (truth, best)).collect::<Vec<_>>()
                })
                .map(|(truth, best)| capital(truth, best, &even, margin).0)
                .fold(0.0, f64::max);
            assert!(largest <= 1.0 + 1e-12, "{rankers} rankers, margin {margin}: {largest}");
        }
    }
}

/// The largest `Σ o` over all sequences of losses that Landau's inequalities allow, by dynamic
/// programming: rankers in the order of their losses, with the sum so far.
///
/// With `most_losses` beyond `rankers - 1` it bounds what the first `rankers` of a longer sequence
/// have.
fn largest_weight(rankers: usize, one_beats_all: bool, most_losses: usize) -> f64 {
    let least_sum = |count: usize| count * count.saturating_sub(1) / 2;
    let most_sum = rankers * rankers;
    let mut largest = 0.0_f64;
    // the smallest number of losses is the winners'; those with more are wrong
    let fewest = if one_beats_all { 0..=0 } else { 1..=(rankers - 1).min(rankers / 2 + 1) };
    for winners_losses in fewest {
        let winners = if one_beats_all { 1..=1 } else { 1..=rankers };
        for winners in winners {
            let sum = winners * winners_losses;
            if sum < least_sum(winners) {
                continue;
            }
            // best[sum]: largest weight so far; sums beyond what is ever required are one
            let required = least_sum(rankers).min(most_sum);
            let mut best = vec![f64::NEG_INFINITY; required + 1];
            best[sum.min(required)] = 0.0;
            // in the order of losses: any number of rankers with each
            let mut states = vec![best];
            states.resize(rankers - winners + 1, vec![f64::NEG_INFINITY; required + 1]);
            for losses in winners_losses + 1..=most_losses {
                let weight = wrong_weight(rankers, one_beats_all, losses, false);
                for placed in 0..rankers - winners {
                    for sum in 0..=required {
                        let so_far = states[placed][sum];
                        let next = (sum + losses).min(required);
                        if so_far > f64::NEG_INFINITY
                            && next >= least_sum(winners + placed + 1).min(required)
                        {
                            let cell = &mut states[placed + 1][next];
                            *cell = cell.max(so_far + weight);
                        }
                    }
                }
            }
            largest = states[rankers - winners].iter().copied().fold(largest, f64::max);
        }
    }
    largest
}

#[test]
fn the_weights_of_wrong_rankers_sum_to_at_most_one() {
    for rankers in [3, 4, 5, 6, 8, 12] {
        let one = largest_weight(rankers, true, rankers - 1);
        assert!(one <= 1.0 + 1e-12 && one > 0.9, "{rankers} rankers, type I: {one}");
        let two = largest_weight(rankers, false, rankers - 1);
        assert!(two <= 1.0 && two > 0.8, "{rankers} rankers, type II: {two}");
    }
    // however many there are: the i-th has (i - 1) / 2 losses or more
    let first = largest_weight(20, false, 40);
    let rest: f64 = (20..200).map(|before| wrong_weight(200, false, before / 2, false)).sum();
    assert!(first + rest < 0.995, "type II: {first} + {rest}");
}

#[test]
fn the_evidence_starts_at_one_and_is_a_supermartingale_at_the_null() {
    for margin in [0.0, 0.01, 0.2, 0.49] {
        let evidence = LeadEvidence::over(margin);
        let null = 0.5 - margin;
        assert!(evidence.ln(0.0, 0.0).abs() < 1e-12);
        for (wins, losses) in [(0.0, 0.0), (3.0, 5.5), (40.0, 20.0), (1000.0, 990.0)] {
            let now = evidence.ln(wins, losses);
            let gain = |won: f64| (evidence.ln(wins + won, losses + 1.0 - won) - now).exp();
            let mean = null * gain(1.0) + (1.0 - null) * gain(0.0);
            assert!((mean - 1.0).abs() < 1e-9, "margin {margin}, {wins} : {losses}: {mean}");
            // a half win is worth at most its share of a win and of a loss
            assert!(gain(0.5) <= 0.5 * gain(1.0) + 0.5 * gain(0.0) + 1e-12);
        }
    }
}

/// Two rankers, exactly even: the share of wrong verdicts against the level, which Ville allows.
#[test]
fn two_rankers_need_evidence_of_one_over_delta() {
    let rule = CopelandRule::new(2, 0.05, 0.0);
    let mut tally = Tally::new(2);
    let mut evidence = PairEvidence::new(&tally, 0.0);
    let mut blocking = usize::MAX;
    let mut duels = 0;
    while !rule.certifies(&evidence, 0, &mut blocking) {
        tally.record(Duel::new(0, 1), Outcome::First);
        evidence.update(&tally, 0, 1);
        duels += 1;
    }
    assert!(evidence.ln(0, 1) >= 20.0_f64.ln());
    assert!((5..=12).contains(&duels), "{duels} wins in a row");
}

/// The share of experiments with a wrong verdict of a uniform policy.
fn wrong_verdicts(probabilities: &[&[f64]], error: f64, duels: u32, experiments: u64) -> f64 {
    let rankers = probabilities.len();
    let score = |i: usize| others(rankers, i).filter(|&j| probabilities[i][j] > 0.5).count();
    let most = (0..rankers).map(score).max().unwrap_or(0);
    let rule = CopelandRule::new(rankers, error, 0.0);
    let mut wrong = 0;
    for seed in 0..experiments {
        let mut rng = PolicyRng::seed_from_u64(seed);
        let mut tally = Tally::new(rankers);
        let mut evidence = PairEvidence::new(&tally, 0.0);
        let mut blocking = vec![usize::MAX; rankers];
        'duels: for _ in 0..duels {
            let first = rng.random_range(0..rankers);
            let second = (first + rng.random_range(1..rankers)) % rankers;
            let won = rng.random_bool(probabilities[first][second]);
            let outcome = if won { Outcome::First } else { Outcome::Second };
            tally.record(Duel::new(first, second), outcome);
            evidence.update(&tally, first, second);
            for (a, blocking) in blocking.iter_mut().enumerate() {
                if rule.certifies(&evidence, a, blocking) {
                    wrong += u64::from(score(a) < most);
                    break 'duels;
                }
            }
        }
    }
    wrong as f64 / experiments as f64
}

/// Instances next to the boundary, at an error of one half: more than that would be a defect, by
/// more than five standard errors of 200 experiments.
#[test]
fn wrong_verdicts_stay_below_the_error_next_to_the_boundary() {
    let h = 0.5005;
    let l = 1.0 - h;
    let even = [&[0.5, h][..], &[l, 0.5]];
    let flat = [&[0.5, h, h][..], &[l, 0.5, h], &[l, l, 0.5]];
    // the first beats the second by a hair, and both beat the third clearly
    let pair = [&[0.5, h, 0.8][..], &[l, 0.5, 0.8], &[0.2, 0.2, 0.5]];
    for (name, matrix) in [("even", &even[..]), ("flat", &flat), ("pair", &pair)] {
        let share = wrong_verdicts(matrix, 0.5, 1000, 200);
        assert!(share <= 0.5 + 5.0 * 0.036, "{name}: {share}");
    }
}

#[test]
fn a_clear_winner_is_certified_and_nobody_else_is() {
    let rankers = 6;
    let mut tally = Tally::new(rankers);
    for _ in 0..200 {
        for y in 0..rankers {
            for x in 0..y {
                tally.record(Duel::new(x, y), Outcome::First);
            }
        }
    }
    for margin in [0.0, 0.05] {
        let evidence = PairEvidence::new(&tally, margin);
        let rule = CopelandRule::new(rankers, 0.05, margin);
        assert_eq!(rule.weakest_rival(&evidence, 0), None);
        for a in 1..rankers {
            assert!(rule.weakest_rival(&evidence, a).is_some(), "{a}");
        }
    }
}
