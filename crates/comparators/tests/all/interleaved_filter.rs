//! Interleaved Filter 2 against explicitly computed rounds, and with concurrent requests.

use dueling_bandits::{Duel, InFlight, Outcome};
use rand::RngExt;

use crate::arena::{fold, rng, start};
use crate::support::answer;

#[test]
fn one_duel_at_a_time_it_runs_in_whole_round_robins() {
    let (k, horizon) = (6, 4_000.0f64);
    let (mut rejected, mut taken_over, mut pruned) = (0, 0, 0);
    for seed in 0..8 {
        let mut requests = rng(seed);
        let strengths: Vec<f64> = (0..k).map(|_| requests.random()).collect();
        let mut policy = start(&format!("interleaved-filter:horizon={horizon},scale=0.5"), k, seed);
        let mut candidate = policy.select(&InFlight::new(), &mut requests).duel.first;
        let mut left: Vec<usize> = (0..k).filter(|&b| b != candidate).collect();
        let mut wins = vec![0.0; k];
        let mut rounds = 0.0;
        while !left.is_empty() && policy.tally().steps() < 4_000 {
            for &b in &left {
                loop {
                    let selection = policy.select(&InFlight::new(), &mut requests);
                    assert_eq!(selection.duel, Duel::new(candidate, b));
                    let silent = requests.random_bool(0.1);
                    let odds = 0.5 + (strengths[candidate] - strengths[b]) / 2.0;
                    let won = requests.random_bool(odds);
                    let outcome = match (silent, won) {
                        (true, _) => Outcome::None,
                        (false, true) => Outcome::First,
                        (false, false) => Outcome::Second,
                    };
                    fold(&mut *policy, selection, outcome);
                    if !silent {
                        wins[b] += f64::from(u8::from(won));
                        break;
                    }
                }
            }
            rounds += 1.0;
            let radius = (0.5 * (horizon * (k * k) as f64).ln() / rounds).sqrt();
            let mean: Vec<f64> = wins.iter().map(|won| won / rounds).collect();
            let before = left.len();
            left.retain(|&b| mean[b] - radius <= 0.5);
            rejected += before - left.len();
            let mut better: Vec<usize> =
                left.iter().copied().filter(|&b| mean[b] + radius < 0.5).collect();
            better.sort_by(|&a, &b| mean[a].total_cmp(&mean[b]));
            if let Some(&next) = better.first() {
                let before = left.len();
                left.retain(|&b| b != next && mean[b] <= 0.5);
                pruned += before - 1 - left.len();
                taken_over += 1;
                candidate = next;
                wins.fill(0.0);
                rounds = 0.0;
            }
        }
        if left.is_empty() {
            let duel = policy.select(&InFlight::new(), &mut requests).duel;
            assert_eq!(duel, Duel::new(candidate, candidate));
        }
        assert_eq!(policy.champion(), candidate);
    }
    assert!(rejected > 0 && taken_over > 0 && pruned > 0, "{rejected} {taken_over} {pruned}");
}

#[test]
fn concurrent_requests_get_the_rest_of_the_round_robin_and_the_next_ones() {
    let policy = start("interleaved-filter:horizon=1000", 5, 4);
    let mut in_flight = InFlight::new();
    let mut seconds = Vec::new();
    for _ in 0..8 {
        let duel = policy.select(&in_flight, &mut rng(0)).duel;
        in_flight.add(duel.first, duel.second, 1);
        seconds.push(duel.second);
    }
    assert_eq!(seconds[..4], seconds[4..]);
    seconds.truncate(4);
    seconds.sort_unstable();
    assert_eq!(seconds, (0..5).filter(|&b| b != policy.champion()).collect::<Vec<_>>());
}

#[test]
fn only_duels_of_the_candidate_with_a_ranker_left_are_used() {
    let text = "interleaved-filter:horizon=10,scale=0.01";
    let mut policy = start(text, 3, 4);
    let candidate = policy.champion();
    let [a, b] = [(candidate + 1) % 3, (candidate + 2) % 3];
    let mut observe = |first, second, outcome| {
        policy.observe(&answer(first, second, outcome));
    };
    // a duel without the candidate has no effect, however often it occurs
    for _ in 0..50 {
        observe(a, b, Outcome::First);
    }
    // in the other order, a win of the second is the candidate's: after one round-robin, a and b
    // are rejected
    observe(a, candidate, Outcome::Second);
    observe(candidate, b, Outcome::First);
    assert_eq!(policy.champion(), candidate);
    let duel = policy.select(&InFlight::new(), &mut rng(0)).duel;
    assert_eq!(duel, Duel::new(candidate, candidate));
}
