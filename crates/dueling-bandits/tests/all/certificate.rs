//! The stopping rule against a reference implementation: the capital of every truth, written out.

use std::cmp::Ordering;

use dueling_bandits::evidence::certificate::{CopelandRule, PairEvidence};
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::refuters::Refuters;
use dueling_bandits::{Duel, Outcome, PolicyRng, Tally};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// One truth: `sides[x][y]`, `Less` where `x` is beaten by more than the margin.
pub type Truth = Vec<Vec<Ordering>>;

/// Every truth of so many rankers, where pairs are won, lost, or neither.
pub fn truths(rankers: usize) -> Vec<Truth> {
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

/// `o`, as documented.
fn share(rankers: usize, one_beats_all: bool, losses: usize, margin: bool) -> f64 {
    let further = |first: f64, nth: usize| first * 0.2_f64.powi(nth as i32);
    match (one_beats_all, losses) {
        _ if margin => 1.0 / (rankers - 1) as f64,
        (true, 1) => 0.9,
        (true, _) => further(0.04, losses - 2),
        (false, 2) => 0.24,
        (false, _) => further(0.016, losses - 3),
    }
}

/// `Φ` of a truth with `best` as `j*`, from `e[x][y] = E(x≻y)`, and the wrong rankers. `followed`
/// has `X(j)` of every ranker, where refuters are followed.
pub fn capital(
    truth: &Truth,
    best: usize,
    e: &[Vec<f64>],
    margin: bool,
    followed: Option<&[f64]>,
) -> (f64, Vec<usize>) {
    let rankers = truth.len();
    let n = (rankers - 1) as f64;
    let most = surely_beaten(truth, best);
    let one_beats_all = most == rankers - 1;
    let ([product, mean, single], followed) = match (one_beats_all, followed) {
        (true, _) if !margin => ([0.85, 0.15, 0.0], 0.0),
        (true, None) => ([0.7, 0.3, 0.0], 0.0),
        (true, Some(x)) => ([0.0, 0.1, 0.0], 0.9 * x[best]),
        (false, _) => ([0.38, 0.22, 0.4], 0.0),
    };
    let s: Vec<usize> = not_beaten_by(truth, best, margin);
    let mut phi = followed + mean / s.len() as f64 * s.iter().map(|&x| e[x][best]).sum::<f64>();
    let mut wrong = Vec::new();
    for a in others(rankers, best) {
        let losses = not_beaten(truth, a, margin);
        if rankers - 1 - losses.len() >= most {
            continue;
        }
        wrong.push(a);
        let o = share(rankers, one_beats_all, losses.len(), margin);
        let sum: f64 = losses.iter().map(|&y| e[a][y]).sum();
        phi += product * o * losses.iter().map(|&y| e[a][y]).product::<f64>()
            + single / n * sum / losses.len() as f64;
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
pub fn winners(truth: &Truth) -> Vec<usize> {
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

/// The same counts in a random order, with the refuters that they lead to.
fn followed(tally: &Tally, mixture: &LeadEvidence, rng: &mut PolicyRng) -> Refuters {
    let rankers = tally.rankers();
    let pairs = (0..rankers).flat_map(|x| others(rankers, x).map(move |y| (x, y)));
    let mut wins: Vec<(usize, usize)> =
        pairs.flat_map(|(x, y)| std::iter::repeat_n((x, y), tally.wins(x, y) as usize)).collect();
    wins.shuffle(rng);
    let all: Vec<usize> = (0..rankers).collect();
    let (mut so_far, mut refuters) = (Tally::new(rankers), Refuters::new(rankers));
    for (count, (x, y)) in (1..).zip(wins) {
        so_far.record(Duel::new(x, y), Outcome::First);
        if refuters.is_due(count) {
            refuters.choose(&PairEvidence::new(mixture, &so_far, &all), count);
        }
    }
    refuters
}

#[test]
fn the_bound_is_never_above_the_capital_of_any_truth() {
    let mut rng = PolicyRng::seed_from_u64(1);
    for (rankers, trials) in [(2, 40), (3, 300), (4, 120), (5, 4)] {
        let truths = truths(rankers);
        let margins_and_follows = [(0.0, false), (0.02, false), (0.02, true)]
            .into_iter()
            .filter(|&(_, follows)| rankers > 2 || !follows);
        for (margin, follows) in margins_and_follows {
            let rule = match follows {
                true => CopelandRule::with_refuters(rankers, 0.05),
                false => CopelandRule::new(rankers, 0.05, margin),
            };
            let mixture = LeadEvidence::over(margin);
            let all: Vec<usize> = (0..rankers).collect();
            for _ in 0..trials {
                let tally = counts(rankers, &mut rng);
                let refuters = follows.then(|| followed(&tally, &mixture, &mut rng));
                let evidence =
                    PairEvidence::new(&mixture, &tally, &all).with_refuters(refuters.as_ref());
                let capital_of =
                    |x: &Refuters| all.iter().map(|&j| x.capital(&evidence, j)).collect();
                let x: Option<Vec<f64>> = refuters.as_ref().map(capital_of);
                // what the rule cuts off at e^40 is far beyond its threshold
                let e: Vec<Vec<f64>> = (0..rankers)
                    .map(|x| (0..rankers).map(|y| evidence.ln(x, y).min(40.0).exp()).collect())
                    .collect();
                let mut least = vec![vec![f64::INFINITY; rankers]; rankers];
                for truth in &truths {
                    for best in winners(truth) {
                        let (phi, wrong) = capital(truth, best, &e, margin > 0.0, x.as_deref());
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

/// `Ψ` of a truth in which no ranker beats all others.
fn condorcet_capital(truth: &Truth, e: &[Vec<f64>], margin: bool) -> f64 {
    let weight = |losses: usize| match losses {
        _ if margin => 1.0 / truth.len() as f64,
        1 => 0.3,
        _ => 0.04 * 0.2_f64.powi(losses as i32 - 2),
    };
    (0..truth.len())
        .map(|a| (a, not_beaten(truth, a, margin)))
        .filter(|(_, losses)| !losses.is_empty())
        .map(|(a, losses)| weight(losses.len()) * losses.iter().map(|&y| e[a][y]).product::<f64>())
        .sum()
}

/// Whether `a` may be called a Condorcet winner under a truth.
fn beats_all(truth: &Truth, a: usize, margin: bool) -> bool {
    not_beaten(truth, a, margin).is_empty()
}

#[test]
fn a_condorcet_winner_is_certified_only_where_every_other_truth_is_refuted() {
    let mut rng = PolicyRng::seed_from_u64(3);
    for (rankers, trials) in [(3, 400), (4, 200)] {
        let truths = truths(rankers);
        let all: Vec<usize> = (0..rankers).collect();
        for margin in [0.0, 0.02] {
            let with_margin = margin > 0.0;
            let even = vec![vec![1.0; rankers]; rankers];
            let open = || {
                truths
                    .iter()
                    .filter(|truth| (0..rankers).all(|j| surely_beaten(truth, j) < rankers - 1))
            };
            for truth in open() {
                assert!(condorcet_capital(truth, &even, with_margin) <= 1.0 + 1e-12);
            }
            let (mixture, rule) =
                (LeadEvidence::over(margin), CopelandRule::new(rankers, 0.2, margin));
            let mut certified = 0;
            for _ in 0..trials {
                let mut tally = counts(rankers, &mut rng);
                // the first one is ahead more often than not
                for y in 1..rankers {
                    for _ in 0..rng.random_range(0..120) {
                        tally.record(Duel::new(0, y), Outcome::First);
                    }
                }
                let evidence = PairEvidence::new(&mixture, &tally, &all);
                let e: Vec<Vec<f64>> = (0..rankers)
                    .map(|x| (0..rankers).map(|y| evidence.ln(x, y).min(40.0).exp()).collect())
                    .collect();
                for a in (0..rankers).filter(|&a| rule.certifies_condorcet(&evidence, a)) {
                    certified += 1;
                    for truth in open().filter(|truth| !beats_all(truth, a, with_margin)) {
                        assert!(condorcet_capital(truth, &e, with_margin) >= 5.0 - 1e-9);
                    }
                    for truth in &truths {
                        for best in winners(truth) {
                            let (phi, wrong) = capital(truth, best, &e, with_margin, None);
                            assert!(!wrong.contains(&a) || phi >= 5.0 - 1e-9);
                        }
                    }
                }
            }
            assert!(certified > trials / 10, "{certified} of {trials}");
        }
    }
}

#[test]
fn every_truth_starts_with_a_capital_of_at_most_one() {
    for rankers in 3..=5 {
        let even = vec![vec![1.0; rankers]; rankers];
        let staked = vec![1.0; rankers];
        let margins = [false, true].into_iter();
        for (margin, followed) in margins.flat_map(|m| [(m, None), (m, Some(&staked[..]))]) {
            let largest = truths(rankers)
                .iter()
                .flat_map(|truth| {
                    winners(truth).into_iter().map(|best| (truth, best)).collect::<Vec<_>>()
                })
                .map(|(truth, best)| capital(truth, best, &even, margin, followed).0)
                .fold(0.0, f64::max);
            assert!(largest <= 1.0 + 1e-12, "{rankers} rankers, margin {margin}: {largest}");
        }
    }
}

/// The largest `Σ o` over the wrong rankers of any sequence of losses that Landau's inequalities
/// allow, by search over the ascending sequences.
fn largest_share(losses: &mut Vec<usize>, rankers: usize, largest: &mut f64) {
    let sum: usize = losses.iter().sum();
    if sum < losses.len() * losses.len().saturating_sub(1) / 2 {
        return;
    }
    if losses.len() == rankers {
        let wrong = losses.iter().filter(|&&count| count > losses[0]);
        let shares = wrong.map(|&count| share(rankers, losses[0] == 0, count, false));
        *largest = largest.max(shares.sum());
        return;
    }
    for next in losses.last().copied().unwrap_or(0)..rankers {
        losses.push(next);
        largest_share(losses, rankers, largest);
        losses.pop();
    }
}

#[test]
fn the_weights_of_wrong_rankers_sum_to_at_most_one() {
    for rankers in 3..=9 {
        let mut largest = 0.0;
        largest_share(&mut Vec::new(), rankers, &mut largest);
        assert!((0.9..=1.0 + 1e-12).contains(&largest), "{rankers} rankers: {largest}");
    }
}

#[test]
fn the_evidence_starts_at_one_and_is_a_supermartingale_at_the_null() {
    for margin in [-0.48, -0.1, 0.0, 0.01, 0.2, 0.49] {
        let evidence = LeadEvidence::over(margin);
        let null = 0.5 - margin;
        for (wins, losses) in [(1e6, 0.0), (0.0, 1e6), (5e5, 4.9e5)] {
            assert!(evidence.ln(wins, losses).is_finite(), "{margin}: {wins} {losses}");
        }
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
    let mixture = LeadEvidence::over(0.0);
    let mut duels = 0;
    while rule.blocks(&PairEvidence::new(&mixture, &tally, &[0, 1]), 0, None).is_some() {
        tally.record(Duel::new(0, 1), Outcome::First);
        duels += 1;
    }
    assert!(mixture.ln(tally.wins(0, 1), tally.wins(1, 0)) >= 20.0_f64.ln());
    assert!((5..=12).contains(&duels), "{duels} wins in a row");
}

/// The share of experiments with a wrong verdict of a uniform policy.
fn wrong_verdicts(probabilities: &[&[f64]], error: f64, duels: u32, experiments: u64) -> f64 {
    let rankers = probabilities.len();
    let score = |i: usize| others(rankers, i).filter(|&j| probabilities[i][j] > 0.5).count();
    let most = (0..rankers).map(score).max().unwrap_or(0);
    let rule = CopelandRule::new(rankers, error, 0.0);
    let (mixture, all) = (LeadEvidence::over(0.0), (0..rankers).collect::<Vec<_>>());
    let mut wrong = 0;
    for seed in 0..experiments {
        let mut rng = PolicyRng::seed_from_u64(seed);
        let mut tally = Tally::new(rankers);
        let mut blocking = vec![None; rankers];
        'duels: for _ in 0..duels {
            let first = rng.random_range(0..rankers);
            let second = (first + rng.random_range(1..rankers)) % rankers;
            let won = rng.random_bool(probabilities[first][second]);
            let outcome = if won { Outcome::First } else { Outcome::Second };
            tally.record(Duel::new(first, second), outcome);
            let evidence = PairEvidence::new(&mixture, &tally, &all);
            for (a, blocking) in blocking.iter_mut().enumerate() {
                *blocking = rule.blocks(&evidence, a, *blocking);
                if blocking.is_none() {
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
