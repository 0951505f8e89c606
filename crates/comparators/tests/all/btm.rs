//! Beat the Mean: its choices against explicitly computed sums, and the outcomes used after a
//! removal.

use dueling_bandits::{Duel, InFlight, Outcome};
use rand::RngExt;

use crate::arena::{fold, rng, start};
use crate::support::answer;

/// Comparisons and rewards of each ranker as first against each as second.
struct Counts {
    plays: Vec<Vec<f64>>,
    rewards: Vec<Vec<f64>>,
}

impl Counts {
    /// Comparisons and mean of `b` against those in `left`.
    fn against_mean(&self, left: &[usize], b: usize) -> (f64, f64) {
        let sum = |of: &[Vec<f64>]| -> f64 { left.iter().map(|&other| of[b][other]).sum() };
        let n = sum(&self.plays);
        (n, if n == 0.0 { 0.5 } else { sum(&self.rewards) / n })
    }
}

#[test]
fn the_incremental_form_plays_and_removes_as_the_reference_implementation() {
    let (k, horizon, gamma, kappa) = (5, 3_000.0f64, 1.2f64, 0.28);
    let mut removed = 0;
    for seed in 0..6 {
        let mut requests = rng(seed);
        let strengths: Vec<f64> = (0..k).map(|_| requests.random()).collect();
        // without self-pairs, because this test does not see their coins
        let text = format!("btm:horizon={horizon},gamma={gamma},kappa={kappa},self_pairs=false");
        let mut policy = start(&text, k, seed);
        let mut counts = Counts { plays: vec![vec![0.0; k]; k], rewards: vec![vec![0.0; k]; k] };
        let mut left: Vec<usize> = (0..k).collect();
        for _ in 0..1_500 {
            let selection = policy.select(&InFlight::new(), &mut requests);
            let duel = selection.duel;
            if let [winner] = left[..] {
                assert_eq!(duel, Duel::new(winner, winner));
                break;
            }
            let plays: Vec<f64> = left.iter().map(|&b| counts.against_mean(&left, b).0).collect();
            let fewest = plays.iter().copied().fold(f64::INFINITY, f64::min);
            let at = left.iter().position(|&b| b == duel.first).expect("first is active");
            assert_eq!(plays[at], fewest);
            assert!(left.contains(&duel.second) && !duel.is_self());

            let reward = match requests.random_range(0..12) {
                0 => None,
                1 => Some(0.5),
                _ => {
                    let odds = 0.5 + (strengths[duel.first] - strengths[duel.second]) / 2.0;
                    Some(f64::from(u8::from(requests.random_bool(odds))))
                }
            };
            let outcome = match reward {
                None => Outcome::None,
                Some(0.5) => Outcome::Half,
                Some(1.0) => Outcome::First,
                Some(_) => Outcome::Second,
            };
            fold(&mut *policy, selection, outcome);
            let Some(reward) = reward else { continue };
            counts.plays[duel.first][duel.second] += 1.0;
            counts.rewards[duel.first][duel.second] += reward;
            let standings: Vec<(f64, f64)> =
                left.iter().map(|&b| counts.against_mean(&left, b)).collect();
            let fewest = standings.iter().map(|s| s.0).fold(f64::INFINITY, f64::min);
            let radius = if fewest == 0.0 {
                1.0
            } else {
                kappa * gamma * gamma * ((2.0 * horizon * k as f64).ln() / fewest).sqrt()
            };
            let worst = standings.iter().map(|s| s.1).fold(f64::INFINITY, f64::min);
            let best = standings.iter().map(|s| s.1).fold(0.0, f64::max);
            if worst + radius <= best - radius {
                let tied: Vec<usize> =
                    (0..left.len()).filter(|&at| standings[at].1 == worst).collect();
                if tied.len() > 1 {
                    break; // the removal is random, and this test does not see the draw
                }
                left.remove(tied[0]);
                removed += 1;
            }
        }
    }
    assert!(removed >= 12, "{removed} removals");
}

#[test]
fn outcomes_with_a_removed_ranker_count_in_the_tally_only() {
    let text = "btm:horizon=100,gamma=1,kappa=0.3";
    let mut policy = start(text, 3, 1);
    let mut requests = rng(1);
    // ranker 2 always loses; 0 and 1 are even
    let mut even = false;
    let mut selected_2 = 0;
    for _ in 0..400 {
        let selection = policy.select(&InFlight::new(), &mut requests);
        selected_2 = if [selection.duel.first, selection.duel.second].contains(&2) {
            0
        } else {
            selected_2 + 1
        };
        if selected_2 == 60 {
            break;
        }
        let outcome = if selection.duel.first == 2 {
            Outcome::Second
        } else if selection.duel.second == 2 {
            Outcome::First
        } else {
            Outcome::Half
        };
        even |= outcome == Outcome::Half;
        fold(&mut *policy, selection, outcome);
    }
    assert!(even && selected_2 == 60, "ranker 2 is removed");
    let before = policy.champion();
    for _ in 0..500 {
        policy.observe(&answer(2, 1 - before, Outcome::Second));
        policy.observe(&answer(1 - before, 2, Outcome::First));
    }
    assert_eq!(policy.champion(), before);
    assert!(policy.tally().half_wins(1 - before, 2) >= 2_000);
}
