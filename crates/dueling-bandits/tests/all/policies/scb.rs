//! SCB against an independent reference implementation, and on matrices with and without a
//! Condorcet winner.

use std::collections::BTreeMap;

use dueling_bandits::{Duel, InFlight, Observation, Outcome, Policy, PolicyRng, step_rng};
use proptest::prelude::*;
use rand::RngExt;

use super::arena::{answer, fold, matrix, rng, start};

/// Algorithms 2, 3 and 4 without any derived state: intervals are sets of scores, tested one by
/// one.
struct Reference {
    k: usize,
    seed: u64,
    resolution: f64,
    steps: u64,
    number: u32,
    used: u64,
    /// Half wins of the lower and the higher ranker of each undecided pair in this round.
    evidence: BTreeMap<(usize, usize), (u32, u32)>,
    /// Reward of (row against column) in halves, for decided pairs.
    decided: BTreeMap<(usize, usize), u32>,
    left: Vec<usize>,
    opponents: Vec<usize>,
    rewards: Vec<Vec<u32>>,
    answer: Option<usize>,
}

impl Reference {
    fn new(k: usize, seed: u64, resolution: f64) -> Self {
        let number = if k > 256 { 4 } else { 3 };
        let mut reference = Reference {
            k,
            seed,
            resolution,
            steps: 0,
            number,
            used: 0,
            evidence: BTreeMap::new(),
            decided: BTreeMap::new(),
            left: Vec::new(),
            opponents: Vec::new(),
            rewards: Vec::new(),
            answer: None,
        };
        reference.begin();
        reference
    }

    fn begin(&mut self) {
        self.used = 0;
        self.evidence.clear();
        self.decided.clear();
        self.left = (0..self.k).collect();
        self.rewards = vec![Vec::new(); self.k];
        self.answer = None;
        let mut rng = step_rng(self.seed, self.steps);
        self.opponents = (0..self.k).map(|i| self.draw(i, &mut rng)).collect();
    }

    fn draw(&self, i: usize, rng: &mut PolicyRng) -> usize {
        let others: Vec<usize> = (0..self.k).filter(|&j| j != i).collect();
        others[rng.random_range(0..others.len())]
    }

    /// The next selections, one for each number of duels in flight.
    fn asked(&self) -> Vec<(usize, usize)> {
        if let Some(winner) = self.answer {
            return vec![(winner, winner); self.k];
        }
        let asking: Vec<usize> =
            self.left.iter().copied().filter(|&i| self.of(i).len() < self.k - 1).collect();
        (0..self.k)
            .map(|ahead| {
                let arm = asking[(self.used as usize + ahead) % asking.len()];
                (arm, self.opponents[arm])
            })
            .collect()
    }

    /// Rewards against the opponents against which `i` is decided.
    fn of(&self, i: usize) -> Vec<u32> {
        (0..self.k).filter_map(|j| self.decided.get(&(i, j)).copied()).collect()
    }

    fn log_failure(&self) -> f64 {
        let log_length = f64::from(2u32.pow(self.number)) * 2f64.ln();
        log_length - log_length.ln()
    }

    fn step(&mut self) {
        self.steps += 1;
        self.used += 1;
        if u128::from(self.used) == 1 << (1 << self.number) {
            self.number += 1;
            self.begin();
        }
    }

    fn observe(&mut self, duel: Duel, outcome: Outcome) {
        let (i, j) = (duel.first.min(duel.second), duel.first.max(duel.second));
        if self.answer.is_none() && !self.decided.contains_key(&(i, j)) {
            let (first, second) = outcome.half_wins();
            let evidence = self.evidence.entry((i, j)).or_default();
            evidence.0 += if duel.first == i { first } else { second };
            evidence.1 += if duel.first == i { second } else { first };
            let (wins, losses) = *evidence;
            let wanted = ((self.k * self.k) as f64).ln() + self.log_failure();
            let against = |p: f64| ln_beta(wins + 2, losses + 2) - likelihood(p, wins, losses);
            let unequal = against(0.5) >= wanted;
            let equal =
                against(0.5 + self.resolution).min(against(0.5 - self.resolution)) >= wanted;
            if unequal || equal {
                let reward = if unequal { 2 * u32::from(wins > losses) } else { 1 };
                self.decided.insert((i, j), reward);
                self.decided.insert((j, i), 2 - reward);
                let mut rng = step_rng(self.seed, self.steps + 1);
                for (arm, other) in [(i, j), (j, i)] {
                    let collects = self.left.contains(&arm) && self.opponents[arm] == other;
                    while collects && self.decided.contains_key(&(arm, self.opponents[arm])) {
                        self.rewards[arm].push(self.decided[&(arm, self.opponents[arm])]);
                        if self.of(arm).len() == self.k - 1 {
                            break;
                        }
                        self.opponents[arm] = self.draw(arm, &mut rng);
                    }
                }
                let scores: BTreeMap<usize, (u32, u32)> =
                    self.left.iter().map(|&arm| (arm, self.interval(arm))).collect();
                let surest = scores.values().map(|score| score.0).max().unwrap();
                let best = scores.values().map(|score| score.1).max().unwrap();
                self.left.retain(|arm| scores[arm].1 >= surest);
                if surest == best || self.left.len() == 1 {
                    self.answer = self.left.iter().copied().find(|arm| scores[arm].0 == surest);
                }
            }
        }
        self.step();
    }

    /// The lowest and the highest score that `arm` can have, in halves.
    fn interval(&self, arm: usize) -> (u32, u32) {
        let known = self.of(arm);
        let sure: u32 = known.iter().sum();
        let possible = sure + 2 * (self.k - 1 - known.len()) as u32;
        let rewards = &self.rewards[arm];
        let t = rewards.len() as f64;
        if t < 2.0 {
            return (sure, possible);
        }
        let mean = rewards.iter().sum::<u32>() as f64 / (2.0 * t);
        let spread = if t == 2.0 { 0.0 } else { 2.0 * t.ln().ln() };
        let budget = (4.0 * t * self.k as f64).ln() + self.log_failure() + spread;
        let best = 2 * (self.k as u32 - 1);
        let grid = if self.resolution == 0.0 { 2 } else { 1 };
        let inside = |score: &u32| {
            let q = f64::from(*score) / f64::from(best);
            let part = |a: f64, b: f64| if a == 0.0 { 0.0 } else { a * (a / b).ln() };
            let neighbour = (q - mean).abs() * f64::from(best) < f64::from(grid) - 1e-9;
            neighbour || t * (part(mean, q) + part(1.0 - mean, 1.0 - q)) <= budget
        };
        let scores: Vec<u32> = (0..=best).step_by(grid as usize).filter(inside).collect();
        (scores[0].clamp(sure, possible), scores[scores.len() - 1].clamp(sure, possible))
    }
}

/// `ln B(a/2, b/2)` by recurrence.
fn ln_beta(a: u32, b: u32) -> f64 {
    // Γ(x + 1) = x Γ(x), Γ(1) = 1, Γ(1/2) = sqrt(π)
    let ln_gamma = |twice: u32| -> f64 {
        let start = if twice.is_multiple_of(2) { 0.0 } else { std::f64::consts::PI.sqrt().ln() };
        start
            + (1..twice)
                .filter(|x| x % 2 == twice % 2)
                .map(|x| (f64::from(x) / 2.0).ln())
                .sum::<f64>()
    };
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// `ln(p^W (1 - p)^L)`, with wins and losses in halves.
fn likelihood(p: f64, wins: u32, losses: u32) -> f64 {
    (f64::from(wins) * p.ln() + f64::from(losses) * (1.0 - p).ln()) / 2.0
}

fn selections(policy: &dyn Policy, count: usize) -> Vec<(usize, usize)> {
    let mut in_flight = InFlight::new();
    (0..count)
        .map(|_| {
            let duel = policy.select(&in_flight, &mut rng(0)).duel;
            in_flight.add(0, 1, 1);
            (duel.first, duel.second)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_incremental_form_selects_like_the_reference_implementation(
        k in 2usize..8,
        seed in any::<u64>(),
        coarse in prop::sample::select(vec![0.0, 0.05, 0.15, 0.3]),
        strength in 0.6f64..1.0,
        ahead in 1usize..4,
    ) {
        let mut rng = rng(seed);
        let mut policy = start(&format!("scb:resolution={coarse}"), k, seed);
        let mut reference = Reference::new(k, seed, coarse);
        let lucky: Vec<bool> = (0..k * k).map(|_| rng.random()).collect();
        for at in 0..3000 {
            let asked = reference.asked();
            prop_assert_eq!(selections(&*policy, k), asked.clone(), "before step {}", at);
            let (i, j) = if rng.random_bool(0.1) {
                (rng.random_range(0..k), rng.random_range(0..k)) // late, or counted elsewhere
            } else {
                asked[ahead % k]
            };
            if i == j {
                policy.observe_self_duels(i, 1);
                reference.step();
                continue;
            }
            let (low, high) = (i.min(j), i.max(j));
            let low_wins = rng.random_bool(strength) == lucky[low * k + high];
            let outcome = match rng.random_range(0..20) {
                0 => Outcome::None,
                1 => Outcome::Void,
                2 => Outcome::Half,
                _ if low_wins == (i == low) => Outcome::First,
                _ => Outcome::Second,
            };
            let duel = Duel::new(i, j);
            policy.observe(&Observation { duel, outcome, batch: None, ticket: 0 });
            reference.observe(duel, outcome);
        }
        prop_assert_eq!(policy.tally().steps(), reference.steps);
    }
}

#[test]
fn the_winner_is_shown_alone_until_the_round_is_over() {
    // ranker 1 always wins. The first round has 2^8 steps, the second 2^16. Only a winner that is
    // shown alone for the rest of a round is selected repeatedly; in the next round, pairs are
    // compared from scratch.
    let mut policy = start("scb", 3, 7);
    let mut requests = rng(7);
    let mut alone = 0;
    for _ in 0..256 {
        let selection = policy.select(&InFlight::new(), &mut requests);
        let duel = selection.duel;
        alone += usize::from(duel.is_self());
        assert!(alone == 0 || (duel.is_self() && duel.first == 1));
        let outcome =
            if duel.first == 1 || duel.second == 2 { Outcome::First } else { Outcome::Second };
        fold(&mut *policy, selection, outcome);
    }
    assert!(alone > 0, "one-sided pairs are decided within 256 steps");
    assert_eq!(policy.champion(), 1);
    assert!(!policy.select(&InFlight::new(), &mut requests).duel.is_self(), "a new round begins");
    assert_eq!(policy.champion(), 1, "the last answer remains until there is a new one");
}

#[test]
fn equal_rankers_are_a_tie_within_the_resolution_and_never_under_the_papers_rule() {
    // two equal rankers: known to be within 0.1 of each other after about 700 comparisons
    let alternate = |text: &str| {
        let mut policy = start(text, 2, 9);
        for at in 0..6_000u64 {
            let duel = policy.select(&InFlight::new(), &mut rng(at)).duel;
            if duel.is_self() {
                return true;
            }
            let winner = at as usize % 2;
            let outcome = if duel.first == winner { Outcome::First } else { Outcome::Second };
            policy.observe(&Observation { duel, outcome, batch: None, ticket: 0 });
        }
        false
    };
    assert!(alternate("scb:resolution=0.1"));
    assert!(!alternate("scb:resolution=0"));
}

#[test]
fn the_answer_is_a_copeland_winner() {
    // gaps of 0.1 to 0.4 are decided within 5000 comparisons per pair, so 2^16 steps suffice for
    // the ten pairs of five rankers. A round of that length errs with probability at most
    // ln(2^16)/2^16 = 1.7e-4.
    for (name, seed) in [("cyclic-4", 1), ("cyclic-4", 2), ("cycle:5:3", 3), ("cycle:5:4", 4)] {
        let matrix = matrix(name);
        let mut requests = rng(seed);
        let mut policy = start("scb", matrix.rankers(), seed);
        for _ in 0..60_000 {
            let selection = policy.select(&InFlight::new(), &mut requests);
            let outcome = answer(&matrix, selection.duel, &mut requests);
            fold(&mut *policy, selection, outcome);
        }
        let duel = policy.select(&InFlight::new(), &mut requests).duel;
        assert!(duel.is_self(), "{name}");
        assert!(matrix.copeland_winners().contains(&duel.first), "{name}");
        assert_eq!(policy.champion(), duel.first);
    }
}
