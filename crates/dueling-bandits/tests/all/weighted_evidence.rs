//! Evidence from answers that decide only a part of a page.

use dueling_bandits::evidence::lead::{LeadEvidence, WeightedEvidence};
use dueling_bandits::step_rng;
use rand::RngExt;

#[test]
fn whole_answers_have_the_evidence_of_wins_and_losses() {
    for margin in [0.0, 0.01, 0.2] {
        let mixture = LeadEvidence::over(margin);
        let mut evidence = WeightedEvidence::new(&mixture);
        let (mut wins, mut losses) = (0.0, 0.0);
        for number in 0..300 {
            let is_win = number % 3 > 0;
            evidence.count(is_win, 1.0);
            *(if is_win { &mut wins } else { &mut losses }) += 1.0;
            let (weighted, plain) = (evidence.ln(), mixture.ln(wins, losses));
            assert!((weighted - plain).abs() < 1e-9, "{wins}:{losses}: {weighted} and {plain}");
        }
    }
}

/// The mean over all sequences of wins and losses with these weights, exactly.
fn mean(mixture: &LeadEvidence, win_probability: f64, weights: &[f64]) -> f64 {
    (0..1_u32 << weights.len())
        .map(|wins| {
            let mut evidence = WeightedEvidence::new(mixture);
            let mut probability = 1.0;
            for (at, &weight) in weights.iter().enumerate() {
                let is_win = wins >> at & 1 == 1;
                evidence.count(is_win, weight);
                probability *= if is_win { win_probability } else { 1.0 - win_probability };
            }
            probability * evidence.ln().exp()
        })
        .sum()
}

#[test]
fn the_mean_is_1_on_the_edge_of_the_null_hypothesis_and_below_it_inside() {
    let weights = [0.1, 1.0, 0.33, 0.7, 0.02, 0.5, 0.9, 0.25];
    for margin in [0.0, 0.01, 0.2] {
        let mixture = LeadEvidence::over(margin);
        let on_the_edge = mean(&mixture, 0.5 - margin, &weights);
        assert!((on_the_edge - 1.0).abs() < 1e-9, "margin {margin}: {on_the_edge}");
        assert!(mean(&mixture, 0.45 - margin, &weights) < 1.0);
        assert!(mean(&mixture, 0.55 - margin, &weights) > 1.0);
    }
}

#[test]
fn weights_give_more_evidence_than_coins_on_average() {
    let mixture = LeadEvidence::over(0.01);
    let mut rng = step_rng(1, 0);
    let (mut by_weight, mut by_coin) = (0.0, 0.0);
    for _ in 0..200 {
        let mut weighted = WeightedEvidence::new(&mixture);
        let (mut wins, mut losses) = (0.0, 0.0);
        for _ in 0..500 {
            let (is_win, weight) = (rng.random_bool(0.58), rng.random_range(0.05..0.6));
            weighted.count(is_win, weight);
            if rng.random_bool(weight) {
                *(if is_win { &mut wins } else { &mut losses }) += 1.0;
            }
        }
        by_weight += weighted.ln() / 200.0;
        by_coin += mixture.ln(wins, losses) / 200.0;
    }
    // seed fixed; a mean of 200 runs has a standard error of 0.3 or less
    assert!(by_weight > by_coin + 0.5, "{by_weight} against {by_coin}");
}
