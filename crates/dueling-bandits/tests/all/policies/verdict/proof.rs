//! The cheapest proof, against all choices of wins and losses.

use dueling_bandits::evidence::plan::{Claim, Plan};
use dueling_bandits::evidence::{Target, VerdictTracker};
use dueling_bandits::{Duel, Outcome, PolicyRng, Tally};
use rand::RngExt;

use super::super::support::rng;
use crate::reference::verdict::field::Field;
use crate::reference::verdict::plan::Prices;
use crate::reference::verdict::refuters::Refuters;
use crate::reference::verdict::rule::Rule;

/// The subsets of `of` with so many members.
fn subsets(of: &[usize], size: usize) -> Vec<Vec<usize>> {
    (0..1_usize << of.len())
        .map(|set| (0..of.len()).filter(|at| set >> at & 1 == 1).map(|at| of[at]).collect())
        .filter(|members: &Vec<usize>| members.len() == size)
        .collect()
}

/// The price of the cheapest proof: every candidate, every set of its wins, and for every other
/// ranker every set of rankers that it loses to. A loss to the candidate is one of its wins, which
/// are paid for already.
fn cheapest(prices: &Prices, rule: &Rule) -> f64 {
    let k = prices.field.rankers;
    let of_losses = prices.table(rule.plain_targets(0).1);
    let of_wins_with = [0, 1].map(|losses| prices.table(rule.plain_targets(losses).0));
    let mut least = f64::INFINITY;
    for a in prices.candidates() {
        let others: Vec<usize> = (0..k).filter(|&j| j != a).collect();
        for l in prices.fewest_wins().max(1)..k {
            let d = k - 1 - l;
            let of_wins = &of_wins_with[d.min(1)];
            for won in subsets(&others, l) {
                let losses = |&j: &usize| -> f64 {
                    let winners: Vec<usize> = (0..k).filter(|&x| x != j).collect();
                    let price = |winners: &Vec<usize>| -> f64 {
                        winners.iter().filter(|&&x| x != a).map(|&x| of_losses[x][j]).sum()
                    };
                    subsets(&winners, d)
                        .iter()
                        .filter(|winners| won.contains(&j) || !winners.contains(&a))
                        .map(price)
                        .fold(f64::INFINITY, f64::min)
                };
                let price = won.iter().map(|&j| of_wins[a][j]).sum::<f64>()
                    + others.iter().map(losses).sum::<f64>();
                least = least.min(price * prices.factor(a, d));
            }
        }
    }
    least
}

fn counts(rankers: usize, rng: &mut PolicyRng) -> Tally {
    let mut tally = Tally::new(rankers);
    for y in 0..rankers {
        for x in 0..y {
            let p = rng.random_range(0.2..0.8);
            for _ in 0..rng.random_range(0..60) {
                let outcome = if rng.random_bool(p) { Outcome::First } else { Outcome::Second };
                tally.record(Duel::new(x, y), outcome);
            }
        }
    }
    tally
}

#[test]
fn the_plan_is_the_cheapest_proof_of_all() {
    let mut rng = rng(7);
    let (mut compared, mut with_losses) = (0, 0);
    for trial in 0..400 {
        let rankers = 2 + trial % 4;
        let target = Target { confidence: 0.95, margin: [0.0, 0.02][trial / 4 % 2] };
        let tally = counts(rankers, &mut rng);
        let active: Vec<usize> = (0..rankers).collect();
        let wins =
            active.iter().map(|&i| active.iter().map(|&j| tally.wins(i, j)).collect()).collect();
        let field = Field::of(wins, target.margin);
        let before = (trial % 3 > 0).then_some(trial % rankers);
        let prices = Prices { field: &field, margin: target.margin, steps: tally.steps(), before };
        // counts alone have no refuters
        let follows = rankers > 2 && trial / 8 % 2 == 0;
        let refuters = follows.then(|| Refuters::new(rankers));
        let (error, margin, refuters) = (0.05 * 0.9, target.margin, refuters.as_ref());
        let rule = Rule { rankers, error, margin, refuters };
        let least = cheapest(&prices, &rule);
        // a proof that is complete already is made of other claims
        if least < 1.0 {
            continue;
        }
        compared += 1;
        // sums with a hopeless claim, of some 1e10 duels, lose that much
        let near = |price: f64| (price - least).abs() <= 1e-9 * least + 1e-3;
        let proof = prices.cheapest(&rule, 0.0).expect("there is always a proof");
        assert!(near(proof.price), "trial {trial}: {} and {least}", proof.price);
        let tracker = match follows {
            true => VerdictTracker::new(target, rankers),
            false => VerdictTracker::of_counts(target, &tally, &active),
        };
        let plan = Plan::make(&tracker, &tally, &active, before);
        let leader = plan.leader().expect("there is always a proof");
        assert_eq!(leader, proof.leader, "trial {trial}");
        // with refuters, claims have other targets than those by which proofs are compared
        if refuters.is_none() {
            let price = |claim: &Claim| claim.missing * (1.0 + 10.0 * claim.regret);
            let paid: f64 = plan.claims().iter().map(price).sum();
            let paid = paid * prices.factor(leader, usize::from(plan.needs_losses()));
            assert!(near(paid), "trial {trial}: {paid} and {least}");
        }
        with_losses += u32::from(plan.needs_losses());
    }
    assert!(compared > 200 && with_losses > 50, "{compared} plans, {with_losses} with losses");
}
