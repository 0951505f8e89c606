//! The cheapest proof, against all choices of wins and losses.

use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::plan::{Claim, Plan};
use dueling_bandits::evidence::{Target, VerdictTracker};
use dueling_bandits::{Duel, Outcome, PolicyRng, Tally};
use rand::RngExt;

use super::super::support::rng;
/// Estimated comparisons that each "x beats y" lacks to an evidence, by `[x][y]`.
struct Field {
    rankers: usize,
    /// `ln E` and the expected evidence of a comparison.
    pairs: Vec<Vec<(f64, f64)>>,
    /// Of how many rankers each one is ahead, with pairs within the margin counted for both.
    scores: Vec<usize>,
    fewest_wins: usize,
    caution: f64,
}

impl Field {
    fn of(tally: &Tally, margin: f64) -> Self {
        let rankers = tally.rankers();
        let (mixture, null) = (LeadEvidence::over(margin), 0.5 - margin);
        let pair = |x: usize, y: usize| {
            let (won, lost) = (tally.wins(x, y), tally.wins(y, x));
            let (a, b) = (won + 1.0, lost + 1.0);
            let (mean, deviation) =
                (a / (a + b), (a * b / ((a + b).powi(2) * (a + b + 1.0))).sqrt());
            let (lead, z) = (mean - null, (mean - null) / deviation);
            let above = 0.5 * libm::erfc(-z / 2.0_f64.sqrt());
            let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let squared =
                (lead * lead + deviation * deviation) * above + lead * deviation * density;
            let evidence = if won + lost > 0.0 { mixture.ln(won, lost) } else { 0.0 };
            (evidence, (2.0 * squared).max(1e-9))
        };
        let others = |x: usize| (0..rankers).filter(move |&y| y != x);
        let is_ahead =
            |x: usize, y: usize| tally.wins(x, y) * (1.0 - null) > tally.wins(y, x) * null;
        let has_won = |x: usize, y: usize| {
            let lead = tally.wins(x, y) - tally.wins(y, x);
            lead > 0.0 || lead == 0.0 && (x + y).is_multiple_of(2) == (x > y)
        };
        let best = (0..rankers).map(|x| others(x).filter(|&y| has_won(x, y)).count()).max();
        Self {
            rankers,
            pairs: (0..rankers).map(|x| (0..rankers).map(|y| pair(x, y)).collect()).collect(),
            scores: (0..rankers).map(|x| others(x).filter(|&y| is_ahead(x, y)).count()).collect(),
            fewest_wins: best.unwrap_or(0).saturating_sub(1).max(1),
            caution: 1.0 + 10.0 / (1.0 + tally.steps() as f64 / 10_000.0),
        }
    }

    fn missing(&self, x: usize, y: usize, target: f64) -> f64 {
        let (evidence, rate) = self.pairs[x][y];
        (target - evidence).max(0.0) / rate
    }

    fn candidates(&self) -> impl Iterator<Item = usize> {
        let most = self.scores.iter().copied().max().unwrap_or(0);
        (0..self.rankers).filter(move |&x| self.scores[x] == most)
    }
}

/// The evidence that a win of a leader over all others, of another leader, and a loss need.
fn targets(rankers: usize, margin: f64) -> [f64; 3] {
    let (threshold, n) = (-(0.05_f64 * 0.9).ln(), (rankers - 1) as f64);
    let alone = if margin > 0.0 { 0.7 / n } else { 0.85 * 0.9 };
    match rankers {
        2 => [threshold; 3],
        _ => [alone, 0.4 / n, 0.22 / n].map(|weight| threshold - weight.ln()),
    }
}

/// The subsets of `of` with so many members.
fn subsets(of: &[usize], size: usize) -> Vec<Vec<usize>> {
    (0..1_usize << of.len())
        .map(|set| (0..of.len()).filter(|at| set >> at & 1 == 1).map(|at| of[at]).collect())
        .filter(|members: &Vec<usize>| members.len() == size)
        .collect()
}

/// The price of the cheapest proof for `a`: every set of its wins, and for every other ranker every
/// set of rankers that it loses to. A loss to `a` is one of its wins, which are paid for already.
fn cheapest(field: &Field, [alone, win, loss]: [f64; 3], a: usize) -> f64 {
    let k = field.rankers;
    let mut least = f64::INFINITY;
    let others: Vec<usize> = (0..k).filter(|&j| j != a).collect();
    for l in field.fewest_wins..k {
        let d = k - 1 - l;
        let (win, caution) = if d == 0 { (alone, 1.0) } else { (win, field.caution) };
        for won in subsets(&others, l) {
            let losses = |&j: &usize| -> f64 {
                let winners: Vec<usize> = (0..k).filter(|&x| x != j).collect();
                let price = |winners: &Vec<usize>| -> f64 {
                    let paid = winners.iter().filter(|&&x| x != a);
                    paid.map(|&x| field.missing(x, j, loss)).sum()
                };
                subsets(&winners, d)
                    .iter()
                    .filter(|winners| won.contains(&j) || !winners.contains(&a))
                    .map(price)
                    .fold(f64::INFINITY, f64::min)
            };
            let price = won.iter().map(|&j| field.missing(a, j, win)).sum::<f64>()
                + others.iter().map(losses).sum::<f64>();
            least = least.min(price * caution);
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
        let (field, targets) = (Field::of(&tally, target.margin), targets(rankers, target.margin));
        let price_of = |a| cheapest(&field, targets, a);
        let least = field.candidates().map(price_of).fold(f64::INFINITY, f64::min);
        // a proof that is complete already is made of other claims
        if least < 1.0 {
            continue;
        }
        compared += 1;
        let tracker = VerdictTracker::of_counts(target, &tally, &active);
        let plan = Plan::make(&tracker, &tally, &active);
        let leader = plan.leader().expect("there is always a proof");
        // sums with a hopeless claim, of some 1e10 duels, lose that much
        let most = least * (1.0 + 1e-9) + 1e-3;
        assert!(price_of(leader) <= most, "trial {trial}: {leader} for {}", price_of(leader));
        let [alone, win, loss] = targets;
        let needs_losses = plan.claims().iter().any(|claim| claim.winner != leader);
        let price = |claim: &Claim| {
            let target = match claim.winner == leader {
                true if needs_losses => win,
                true => alone,
                false => loss,
            };
            field.missing(claim.winner, claim.loser, target)
        };
        let paid: f64 = plan.claims().iter().map(price).sum();
        let paid = paid * if needs_losses { field.caution } else { 1.0 };
        assert!(paid <= most, "trial {trial}: {paid} and {least}");
        with_losses += u32::from(needs_losses);
    }
    assert!(compared > 200 && with_losses > 50, "{compared} plans, {with_losses} with losses");
}
