//! Versatile Dueling Bandits: its tickets against weights found by bisection, and outcomes without
//! a ticket.

use dueling_bandits::{Duel, InFlight, Observation, Outcome, Selection};
use rand::RngExt;

use crate::arena::{matrix, rng, start};

/// The two probabilities of a selection.
fn probabilities(selection: &Selection) -> (f64, f64) {
    let single = |bits: u64| f64::from(f32::from_bits(bits as u32));
    (single(selection.ticket >> 32), single(selection.ticket & 0xffff_ffff))
}

/// Tsallis weights, with the normaliser found by bisection.
fn weights(losses: &[f64], rate: f64) -> Vec<f64> {
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let at =
        |x: f64| losses.iter().map(|loss| 4.0 / (rate * (loss - x)).powi(2)).collect::<Vec<_>>();
    let mut low = least - 2.0 * (losses.len() as f64).sqrt() / rate;
    let mut high = least - 2.0 / rate;
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if at(middle).iter().sum::<f64>() < 1.0 { low = middle } else { high = middle }
    }
    at(low)
}

struct Reference {
    t: f64,
    losses: [Vec<f64>; 2],
}

impl Reference {
    fn rate(&self) -> f64 {
        4.0 / self.t.sqrt()
    }

    /// Fold the losses of a duel that was drawn with these probabilities.
    fn fold(&mut self, duel: Duel, probabilities: (f64, f64), first_loss: f64) {
        let rate = self.rate();
        let draws = [
            (0, duel.first, probabilities.0, first_loss),
            (1, duel.second, probabilities.1, 1.0 - first_loss),
        ];
        for (losses, drawn, probability, loss) in draws {
            let losses = &mut self.losses[losses];
            let weights = weights(losses, rate);
            let mut baseline = vec![0.0; weights.len()];
            for (baseline, weight) in baseline.iter_mut().zip(&weights) {
                if *weight >= rate * rate {
                    *baseline = 0.5;
                }
            }
            for i in 0..losses.len() {
                losses[i] += baseline[i];
            }
            losses[drawn] += (loss - baseline[drawn]) / probability;
        }
        self.t += 1.0;
    }
}

#[test]
fn every_selection_is_drawn_with_the_weights_of_the_reference_implementation() {
    let k = 5;
    let matrix = matrix("btl:5:3");
    let mut requests = rng(5);
    let mut policy = start("vdb", k, 5);
    let mut reference = Reference { t: 1.0, losses: [vec![0.0; k], vec![0.0; k]] };
    for at in 0..1_500 {
        let selection = policy.select(&InFlight::new(), &mut requests);
        let duel = selection.duel;
        let (first, second) = probabilities(&selection);
        let wanted = (
            weights(&reference.losses[0], reference.rate())[duel.first],
            weights(&reference.losses[1], reference.rate())[duel.second],
        );
        let close = |got: f64, wanted: f64| (got / wanted - 1.0).abs() < 1e-6; // single precision
        assert!(
            close(first, wanted.0) && close(second, wanted.1),
            "step {at}: {first} {second} {wanted:?}"
        );
        if duel.is_self() {
            policy.observe_self_duels(duel.first, 1);
            // never less than half of a uniform share
            let least = 0.5 / k as f64;
            reference.fold(duel, (wanted.0.max(least), wanted.1.max(least)), 0.5);
            continue;
        }
        let won = requests.random_bool(matrix.win_probability(duel.first, duel.second));
        let (outcome, loss) = match (requests.random_range(0..10), won) {
            (0, _) => (Outcome::Half, Some(0.5)),
            (1, _) => (Outcome::None, None),
            (_, true) => (Outcome::First, Some(0.0)),
            (_, false) => (Outcome::Second, Some(1.0)),
        };
        policy.observe(&Observation { duel, outcome, batch: None, ticket: selection.ticket });
        if let Some(loss) = loss {
            reference.fold(duel, (first, second), loss);
        }
    }
    let total = |i: usize| reference.losses[0][i] + reference.losses[1][i];
    let best = (0..k).min_by(|&a, &b| total(a).total_cmp(&total(b))).unwrap();
    assert_eq!(policy.champion(), best);
}

#[test]
fn selections_follow_the_probabilities_on_their_tickets() {
    let mut policy = start("vdb", 4, 2);
    let mut requests = rng(2);
    for _ in 0..40 {
        let selection = policy.select(&InFlight::new(), &mut requests);
        let Selection { duel, batch, ticket } = selection;
        if !duel.is_self() {
            let outcome = if duel.first < duel.second { Outcome::First } else { Outcome::Second };
            policy.observe(&Observation { duel, outcome, batch, ticket });
        }
    }
    let mut counts = [[0.0; 4]; 2];
    let mut stated = [[0.0; 4]; 2];
    for _ in 0..10_000 {
        let selection = policy.select(&InFlight::new(), &mut requests);
        let (first, second) = probabilities(&selection);
        counts[0][selection.duel.first] += 1e-4;
        counts[1][selection.duel.second] += 1e-4;
        stated[0][selection.duel.first] = first;
        stated[1][selection.duel.second] = second;
    }
    for (counted, stated) in counts.iter().flatten().zip(stated.iter().flatten()) {
        // five standard deviations of a share of 10000
        assert!((counted - stated).abs() < 0.025, "{counts:?} for {stated:?}");
    }
}

#[test]
fn an_outcome_without_a_valid_ticket_uses_the_weights_at_folding() {
    let fold = |ticket: u64| -> String {
        let mut policy = start("vdb", 3, 2);
        for _ in 0..20 {
            let duel = Duel::new(0, 1);
            policy.observe(&Observation { duel, outcome: Outcome::First, batch: None, ticket });
        }
        format!("{policy:?}")
    };
    assert_eq!(fold(0), fold(12));
    let third = u64::from((1.0f32 / 3.0).to_bits());
    assert_ne!(fold(0), fold(third << 32 | third), "a valid ticket is used");
}

#[test]
fn late_self_duels_do_not_hide_the_best_ranker() {
    // Every outcome is 100 steps late, as in the note on self-duels. Without the floor, about half
    // of the runs recommended the best ranker; 18 or more of 20 would then have a probability of
    // one in five thousand.
    let matrix = matrix("arxiv-6");
    let recommended = (0..20).filter(|&seed| {
        let mut requests = rng(seed);
        let mut policy = start("vdb", 6, seed);
        let mut waiting = std::collections::VecDeque::new();
        for _ in 0..10_000 {
            waiting.push_back(policy.select(&InFlight::new(), &mut requests));
            if waiting.len() > 100 {
                let selection = waiting.pop_front().unwrap();
                let outcome = crate::arena::answer(&matrix, selection.duel, &mut requests);
                crate::arena::fold(&mut *policy, selection, outcome);
            }
        }
        policy.champion() == 0
    });
    let recommended = recommended.count();
    assert!(recommended >= 18, "{recommended} of 20");
}
