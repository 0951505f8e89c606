//! Conclusions from counts: known results, and properties that hold for all counts.

use dueling_bandits::evidence::balance::coin_evidence;
use dueling_bandits::evidence::history::CHECKPOINTS_MAX;
use dueling_bandits::evidence::{History, Posterior, Sequence, Sequences, Target, VerdictTracker};
use dueling_bandits::forecast::{Forecast, NoForecast, Present, forecast};
use dueling_bandits::math::mixture::evidence_against_half;
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::Run;
use dueling_bandits::win_probability::beta_above_half;
use dueling_bandits::{
    Bandit, Duel, InFlight, Outcome, Policy, PolicyRng, PolicySpec, Roster, Selection, Tally,
    step_rng,
};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};

/// A tally with these wins of (row, column).
fn tally(wins: &[&[u32]]) -> Tally {
    let mut tally = Tally::new(wins.len());
    for (i, row) in wins.iter().enumerate() {
        for (j, &count) in row.iter().enumerate() {
            tally.record_run(Duel::new(i, j), Outcome::First, count);
        }
    }
    tally
}

fn rng() -> PolicyRng {
    PolicyRng::seed_from_u64(5)
}

#[test]
fn evidence_and_intervals_have_their_known_values() {
    // B(2, 2) · 4 = 2/3, and B(11, 1) · 2^10 = 1024/11
    assert!((evidence_against_half(1.0, 1.0) - (2.0_f64 / 3.0).ln()).abs() < 1e-12);
    assert!((evidence_against_half(10.0, 0.0) - (1024.0_f64 / 11.0).ln()).abs() < 1e-12);
    let sequence = Sequence::of_level(0.05);
    assert_eq!(sequence.interval(0.0, 0.0), (0.0, 1.0));
    // 1/11 = 20 p^10
    let (low, high) = sequence.interval(10.0, 0.0);
    assert!((low - (1.0_f64 / 220.0).powf(0.1)).abs() < 1e-12 && high == 1.0, "{low} {high}");
    assert!(sequence.excludes_half(10.0, 0.0) && !sequence.excludes_half(5.0, 0.0));
    // one of 3 pairs at 1 - δ = 0.85 has α = 0.05
    assert!((Sequence::for_pairs(3, 0.85).threshold() - 20.0_f64.ln()).abs() < 1e-12);
}

/// `Σ_k Binomial(n, 1/2)(k) M_k(1/2) = 1`, so the sequence is a martingale.
#[test]
fn under_the_truth_the_evidence_is_a_martingale() {
    for plays in [1_u32, 2, 7, 40] {
        let mut binomial = 0.5_f64.powi(plays as i32);
        let mut mean = 0.0;
        for wins in 0..=plays {
            mean +=
                binomial * evidence_against_half(f64::from(wins), f64::from(plays - wins)).exp();
            binomial *= f64::from(plays - wins) / f64::from(wins + 1);
        }
        assert!((mean - 1.0).abs() < 1e-9, "{plays}: {mean}");
    }
}

/// The bound that pays for added rankers. For an even pair, the worst case, one side is decided
/// with probability at most α / (2 - α), regardless of how often the result is checked. The test is
/// exact, over all sequences of 600 duels.
#[test]
fn one_side_is_wrong_with_half_of_the_error() {
    for alpha in [0.4, 0.05, 0.005] {
        let sequence = Sequence::of_level(alpha);
        let mut open = vec![1.0];
        let mut wrong = 0.0;
        for plays in 1..=600_usize {
            let mut next = vec![0.0; plays + 1];
            for (wins, probability) in open.iter().enumerate() {
                next[wins] += probability / 2.0;
                next[wins + 1] += probability / 2.0;
            }
            for (wins, probability) in next.iter_mut().enumerate() {
                let losses = plays - wins;
                if sequence.excludes_half(wins as f64, losses as f64) {
                    wrong += if wins > losses { *probability } else { 0.0 };
                    *probability = 0.0;
                }
            }
            open = next;
        }
        let bound = alpha / (2.0 - alpha);
        assert!(wrong <= bound && wrong > bound / 4.0, "{alpha}: {wrong} of {bound}");
    }
}

#[test]
fn the_error_of_all_pairs_including_later_ones_stays_within_the_confidence() {
    for (initial_rankers, rankers) in [(2, 2), (2, 3), (2, 300), (5, 8), (40, 1024)] {
        for confidence in [0.5, 0.95, 0.9999] {
            let sequences = Sequences::new(initial_rankers, rankers, confidence);
            let level = |i: usize, j: usize| (-sequences.of(i, j).threshold()).exp();
            let one_side = |alpha: f64| alpha / (2.0 - alpha);
            let total: f64 =
                (0..rankers).map(|j| (0..j).map(|i| one_side(level(i, j))).sum::<f64>()).sum();
            let error = 1.0 - confidence;
            assert!(
                total <= error * (1.0 + 1e-9),
                "{initial_rankers} then {rankers}: {total} of {error}"
            );
            // initial pairs have the same level as without added rankers
            assert_eq!(sequences.of(1, 0), Sequence::for_pairs(initial_rankers, confidence));
            assert_eq!(sequences, Sequences::new(initial_rankers, rankers, confidence));
            if rankers > initial_rankers {
                assert!(total > error / 2.0);
                assert_eq!(
                    sequences.of(0, initial_rankers),
                    sequences.of(initial_rankers, 1),
                    "in either order"
                );
                assert_eq!(
                    sequences.of(0, initial_rankers),
                    Sequences::new(initial_rankers, initial_rankers + 1, confidence)
                        .of(0, initial_rankers),
                    "independent of later rankers"
                );
            }
        }
    }
}

#[test]
fn a_retired_ranker_counts_in_no_score_and_cannot_win() {
    // 0 beats all, 1 beats 2 and 3, 2 beats 3; then 0 is retired
    let counts = tally(&[&[0, 90, 90, 90], &[0, 0, 90, 90], &[0, 0, 0, 90], &[0, 0, 0, 0]]);
    let mut roster = Roster::new(4);
    roster.retire(0).unwrap();
    let posterior = Posterior::among(&counts, &roster);
    let chances = posterior.winner_probabilities(500, &mut rng());
    assert_eq!(
        (&chances.copeland, &chances.condorcet),
        (&vec![0.0, 1.0, 0.0, 0.0], &vec![0.0, 1.0, 0.0, 0.0])
    );
    // shares of the active rankers that each ranker beats: 0 beats all of them, 1 both others, 2
    // one of two, 3 none
    let drawn = posterior.regret(&[&[8, 8, 8, 8]], 200, &mut rng());
    assert_eq!((drawn.copeland[0].low, drawn.copeland[0].high), (6.0, 6.0));
    assert_eq!(drawn.uniform_step.mean, 0.5, "a mean over 1, 2 and 3");
    // a ranker that loses to some active ones
    let mut roster = Roster::new(4);
    roster.retire(2).unwrap();
    let drawn = Posterior::among(&counts, &roster).regret(&[&[0, 0, 6, 0]], 200, &mut rng());
    assert!((drawn.copeland[0].mean - 3.0 * (1.0 - 1.0 / 3.0)).abs() < 1e-9, "{drawn:?}");
    let (condorcet, _) = drawn.condorcet.unwrap();
    assert!((condorcet.mean - 1.5).abs() < 0.1, "{condorcet:?}");
}

proptest! {
    #[test]
    fn an_interval_holds_the_share_of_wins_and_agrees_with_the_decision(
        wins in 0..4000_u32, losses in 0..4000_u32, level in 1e-6..0.5_f64,
    ) {
        let sequence = Sequence::of_level(level);
        // half wins, as ties can give
        let (wins, losses) = (f64::from(wins) / 2.0, f64::from(losses) / 2.0);
        let (low, high) = sequence.interval(wins, losses);
        prop_assert!((0.0..=1.0).contains(&low) && (low..=1.0).contains(&high));
        if wins + losses > 0.0 {
            let share = wins / (wins + losses);
            prop_assert!((low..=high).contains(&share), "{share} is not in {low} to {high}");
        }
        prop_assert_eq!(sequence.excludes_half(wins, losses), low >= 0.5 || high <= 0.5);
        let (mirrored_low, mirrored_high) = sequence.interval(losses, wins);
        prop_assert!((mirrored_low - (1.0 - high)).abs() < 1e-9 && (mirrored_high - (1.0 - low)).abs() < 1e-9);
        let (wider_low, wider_high) = Sequence::of_level(level / 10.0).interval(wins, losses);
        prop_assert!(wider_low <= low && high <= wider_high);
    }

    /// For any steps, folded in portions of any size: a checkpoint has the totals at its position.
    #[test]
    fn checkpoints_are_bounded_and_right(
        entries in vec((0..4_usize, 0..4_usize, 1..40_u64), 1..700),
    ) {
        let mut history = History::new(4);
        let mut shown = vec![0_u64; 4];
        let mut moments = Vec::new();
        let mut steps = 0;
        for (at, &(i, j, count)) in entries.iter().enumerate() {
            if i == j {
                history.shown_alone(i, count);
            } else {
                history.compared(Duel::new(i, j), count);
            }
            shown[i] += count;
            shown[j] += count;
            steps += count;
            history.counted(at as u64 + 1, at as i64);
            moments.push((steps, shown.clone()));
        }
        let checkpoints = history.checkpoints();
        prop_assert!(checkpoints.len() < CHECKPOINTS_MAX && !checkpoints.is_empty());
        prop_assert!(history.is_sound(4) && !history.is_sound(5));
        for checkpoint in &checkpoints {
            let (steps, shown) = &moments[checkpoint.position as usize - 1];
            prop_assert_eq!((checkpoint.steps, &checkpoint.shown), (*steps, shown));
            prop_assert_eq!(checkpoint.recorded_at + 1, checkpoint.position as i64);
        }
        prop_assert_eq!(history.steps(), steps);
        let rates: f64 = (1..4).flat_map(|j| (0..j).map(move |i| (i, j))).map(|(i, j)| history.rate(i, j)).sum();
        prop_assert!((0.0..=1.0 + 1e-9).contains(&rates), "{rates}");
    }
}

#[test]
fn the_posterior_of_two_rankers_is_one_coin() {
    // Pr(Beta(4, 2) > 1/2) = 26/32
    let counts = tally(&[&[0, 3], &[1, 0]]);
    let posterior = Posterior::new(&counts);
    assert!((beta_above_half(counts.wins(0, 1), counts.wins(1, 0)) - 26.0 / 32.0).abs() < 1e-9);
    let draws = 4000;
    let error = 5.0 * (26.0 / 32.0 * 6.0 / 32.0 / f64::from(draws)).sqrt();
    let chances = posterior.winner_probabilities(draws as usize, &mut rng());
    assert!((chances.copeland[0] - 26.0 / 32.0).abs() < error, "{chances:?}");
    assert_eq!(chances.copeland, chances.condorcet, "of two rankers, one beats all others");
    let drawn = posterior.regret(&[&[3, 1], &[7, 1]], draws as usize, &mut rng());
    // each of the two places of a step costs 1 if its ranker is the worse one
    let expected = (7.0 * 6.0 + 1.0 * 26.0) / 32.0 / 2.0;
    assert!((drawn.copeland[1].mean - expected).abs() < 3.0 * error, "{drawn:?}");
    // if both are exactly even, no page costs anything
    assert_eq!((drawn.copeland[1].low, drawn.copeland[1].high), (0.0, 3.5));
    assert_eq!(drawn.uniform_step.low, 0.0);
    assert!((drawn.uniform_step.mean - 0.5).abs() < 1e-12);
    assert_eq!(drawn.condorcet_probability, 1.0);
}

#[test]
fn decided_pairs_have_no_spread() {
    let counts = tally(&[&[0, 900, 900], &[0, 0, 900], &[0, 0, 0]]);
    let drawn = Posterior::new(&counts).regret(&[&[10, 20, 30]], 200, &mut rng());
    // scores 2, 1, 0 of 2
    assert_eq!(
        (drawn.copeland[0].low, drawn.copeland[0].mean, drawn.copeland[0].high),
        (20.0, 20.0, 20.0)
    );
    // the winner's lead over both is nearly 1/2
    let (condorcet, _) = drawn.condorcet.unwrap();
    assert!((condorcet.mean - 12.5).abs() < 0.1, "{condorcet:?}");
}

/// The policy of uniform pairs after these whole wins.
fn uniform_after(counts: &Tally) -> Box<dyn Policy> {
    let rankers = counts.rankers();
    let mut policy = PolicySpec::Uniform(Default::default()).start(Setup { rankers, seed: 0 });
    for (i, j) in (0..rankers).flat_map(|i| (0..rankers).map(move |j| (i, j))) {
        let won = Selection::of(i, j).observed(Outcome::First);
        policy.observe_run(&won, counts.half_wins(i, j) / 2);
    }
    policy
}

#[test]
fn forecasts_of_clear_cases() {
    let target = Target { confidence: 0.95, margin: 0.0 };
    let ask = |counts: &Tally, budget: u64| {
        let roster = Roster::new(counts.rankers());
        let tracker = VerdictTracker::of_counts(target, counts, roster.active());
        let present = Present { tally: counts, roster: &roster, tracker: &tracker };
        forecast(present, || Some(uniform_after(counts)), budget, &mut rng())
    };
    let too_few = |comparisons, least| Err(NoForecast::TooFew { comparisons, least });
    assert_eq!(ask(&Tally::new(3), 1000), too_few(0, 120));
    assert_eq!(ask(&tally(&[&[0, 45], &[34, 0]]), 1000), too_few(79, 80));

    let decided = tally(&[&[0, 90], &[0, 0]]);
    assert_eq!(ask(&decided, 1000).unwrap().estimate, 0.0);

    // 60 of 100 has an evidence of about 3; some 40 to 200 more such duels give what is missing
    let close = tally(&[&[0, 60], &[40, 0]]);
    let found = ask(&close, 1_000_000).unwrap();
    assert!(found.low < found.estimate && (20.0..400.0).contains(&found.estimate), "{found:?}");

    // two rankers that are as good as even: no draw of a small budget ends
    let even = tally(&[&[0, 500_000], &[500_000, 0]]);
    assert!(matches!(ask(&even, 40_000), Err(NoForecast::Beyond(_))), "{:?}", ask(&even, 40_000));
}

/// The simulations that have ended within the budget predict the others, as far as they are enough
/// for that.
#[test]
fn a_forecast_on_a_small_budget_is_near_the_whole_one() {
    let target = Target { confidence: 0.95, margin: 0.0 };
    let counts = tally(&[&[0, 52, 60], &[48, 0, 62], &[40, 38, 0]]);
    let roster = Roster::new(3);
    let tracker = VerdictTracker::of_counts(target, &counts, roster.active());
    let present = Present { tally: &counts, roster: &roster, tracker: &tracker };
    let copy = || Some(uniform_after(&counts));
    let ask = |budget: u64| forecast(present, copy, budget, &mut rng());
    let whole = ask(10_000_000).unwrap();
    let (mut predicted, mut with_high) = (0, 0);
    for budget in (10_000..200_000).step_by(10_000) {
        match ask(budget) {
            Ok(part) => {
                predicted += 1;
                assert_eq!(part.low, whole.low, "three of the shortest simulations have ended");
                let ratio = part.estimate / whole.estimate;
                assert!((0.6..1.7).contains(&ratio), "{budget}: {part:?} {whole:?}");
                if let Some(high) = part.high {
                    with_high += 1;
                    assert!(high > 2.0 * part.estimate && high < 2.0 * whole.high.unwrap());
                }
            }
            Err(NoForecast::Beyond(reached)) => {
                assert!((reached as f64) < whole.estimate, "{budget}: {reached} {whole:?}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!((1..19).contains(&predicted) && (1..predicted).contains(&with_high));
}

/// Many rankers in an order, whose draws are too close to each other: few verdicts come before the
/// range of their forecast.
#[test]
fn a_verdict_hardly_ever_comes_before_the_range_of_its_forecast() {
    let rankers = 20;
    let spec = PolicySpec::from_text("d-ts-verdict").expect("a policy");
    let first_wins = |duel: Duel| {
        let step = 20.0 / 400.0;
        1.0 / (1.0 + 10_f64.powf(step * (duel.first as f64 - duel.second as f64)))
    };
    let step = |run: &mut Run, rng: &mut PolicyRng| {
        let selection = run.select(&InFlight::new(), rng);
        let wins = rng.random_bool(first_wins(selection.duel));
        let outcome = if wins { Outcome::First } else { Outcome::Second };
        run.observe_shown(selection, outcome);
    };
    let (mut before, mut forecasts) = (0, 0);
    for seed in 0..24 {
        let (setup, rng) = (Setup { rankers, seed }, &mut step_rng(seed, 0));
        let mut run = Run::of(spec.start(setup));
        for _ in 0..1000 {
            step(&mut run, rng);
        }
        let (tally, state) = (run.tally(), run.policy().save());
        let present = Present { tally, roster: run.roster(), tracker: run.verdict() };
        let found = forecast(present, || spec.restore(setup, &state), 100_000, rng);
        let Some(Forecast { low, .. }) = found.ok().filter(|it| it.estimate > 0.0) else {
            continue;
        };
        let mut took = 0;
        while run.verdict().verdict().is_none() {
            step(&mut run, rng);
            took += 1;
        }
        forecasts += 1;
        before += u32::from(f64::from(took) < low);
    }
    assert!(forecasts >= 20 && before * 8 <= forecasts, "{before} of {forecasts}");
}

/// If preferences follow an order, the compared pairs predict those that were not compared. If they
/// form a cycle, they do not.
#[test]
fn an_order_among_the_pairs_is_detected_but_not_in_a_cycle() {
    let rankers = 6;
    let chances = |win: &dyn Fn(usize, usize) -> bool| {
        let mut counts = Tally::new(rankers);
        for j in 1..rankers {
            for i in 0..j {
                // the first and the last were never compared
                let plays = if (i, j) == (0, rankers - 1) { 0 } else { 12 };
                let (better, worse) = if win(i, j) { (i, j) } else { (j, i) };
                counts.record_run(Duel::new(better, worse), Outcome::First, plays * 3 / 4);
                counts.record_run(Duel::new(worse, better), Outcome::First, plays / 4);
            }
        }
        Posterior::new(&counts).winner_probabilities(4000, &mut rng()).condorcet[0]
    };
    let ordered = chances(&|_, _| true);
    let circle = chances(&|i, j| (j - i) % 2 == 1);
    // alone, each of four pairs is won with Pr(Beta(10, 4) > 1/2) = 0.954 and the fifth is a coin:
    // 0.41
    assert!(ordered > 0.6, "{ordered}");
    assert!(circle < 0.1, "{circle}");
}

/// An added ranker is equivalent to one that was never shown, no matter when it is added.
#[test]
fn adding_a_ranker_to_a_history_changes_nothing_else() {
    let (mut early, mut late) = (History::new(3), History::new(2));
    early.compared(Duel::new(0, 1), 1);
    late.compared(Duel::new(0, 1), 1);
    for position in 0..400 {
        for history in [&mut early, &mut late] {
            history.compared(Duel::new(0, 1), 2);
            history.counted(position, position as i64);
        }
    }
    late.enlist();
    assert_eq!(late, early);
    assert!(late.is_sound(3));
    late.compared(Duel::new(2, 0), 5);
    assert!(late.rate(0, 2) > 0.0);
}

#[test]
fn coin_evidence_is_a_martingale_of_fair_coins() {
    for (heads, tails) in [(0, 0), (3, 1), (40, 60), (5000, 5100)] {
        let now = coin_evidence(heads, tails);
        let next = f64::midpoint(coin_evidence(heads + 1, tails), coin_evidence(heads, tails + 1));
        assert!((next / now - 1.0).abs() < 1e-7, "{heads}, {tails}: {now} then {next}");
    }
    assert!((coin_evidence(0, 0) - 1.0).abs() < 1e-12);
    assert!(coin_evidence(60, 40) < 1000.0 && coin_evidence(90, 30) > 1000.0);
    assert!(coin_evidence(1_000_000, 0).is_finite());
}
