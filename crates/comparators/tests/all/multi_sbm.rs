//! MultiSBM: its machines against explicitly computed indices, and the choice of the machine.

use dueling_bandits::{Duel, InFlight, Observation, Outcome};
use rand::RngExt;

use crate::arena::{rng, start};

#[test]
fn the_first_rankers_own_machine_proposes_the_second() {
    let k = 4;
    let mut requests = rng(3);
    let mut policy = start("multi-sbm", k, 3);
    // (first, second, reward of the second)
    let mut history: Vec<(usize, usize, f64)> = Vec::new();
    let mut first = policy.select(&InFlight::new(), &mut requests).duel.first;
    for at in 0..800 {
        let selected = policy.select(&InFlight::new(), &mut requests).duel;
        assert_eq!(selected.first, first, "step {at}");
        let own: Vec<(usize, f64)> = history
            .iter()
            .filter(|(x, ..)| *x == first)
            .map(|&(_, y, reward)| (y, reward))
            .collect();
        let log_timer = (1.0 + own.len() as f64).ln(); // the timer of this machine
        let index = |arm: usize| {
            let rewards: Vec<f64> =
                own.iter().filter(|(y, _)| *y == arm).map(|(_, reward)| *reward).collect();
            let n = rewards.len() as f64;
            if n == 0.0 {
                f64::INFINITY
            } else {
                rewards.iter().sum::<f64>() / n + (2.5 * log_timer / n).sqrt()
            }
        };
        for arm in 0..k {
            assert!(
                index(selected.second) >= index(arm) - 1e-12,
                "step {at}: arm {arm} has a larger index than {selected:?}"
            );
        }
        // any pair may be folded, late or not; a self-duel is excluded because this test does not
        // see its coin
        let late = requests.random_bool(0.2);
        let x = if late { requests.random_range(0..k) } else { selected.first };
        let y = if late || selected.is_self() {
            (x + requests.random_range(1..k)) % k
        } else {
            selected.second
        };
        let (outcome, reward) = match requests.random_range(0..5) {
            0 => (Outcome::Half, Some(0.5)),
            1 => (Outcome::None, None),
            2 => (Outcome::Void, None),
            3 => (Outcome::First, Some(0.0)),
            _ => (Outcome::Second, Some(1.0)),
        };
        policy.observe(&Observation { duel: Duel::new(x, y), outcome, batch: None, ticket: 0 });
        if let Some(reward) = reward {
            history.push((x, y, reward));
            first = y;
        }
    }
}
