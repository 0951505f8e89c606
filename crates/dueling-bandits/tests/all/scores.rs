//! Answers that the verdict counts by their score: how much of a page decided.

use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::scores::{Levels, WEIGHTS};
use dueling_bandits::evidence::{Score, Target, TimedAnswer, VerdictTracker};
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::Run;
use dueling_bandits::{
    Bandit, Duel, InFlight, Outcome, PolicyRng, PolicySpec, Roster, Tally, step_rng,
};
use rand::RngExt;

const TARGET: Target = Target { confidence: 0.95, margin: 0.01 };

/// A score whose weight is rounded with coins of this generator, and whether it is drawn too.
fn score(is_first: bool, weight: f64, rng: &mut PolicyRng) -> Score {
    let weight = (weight * f64::from(Score::ONE)) as u32;
    let mut happens = |numerator: u32| rng.random_range(0..Score::ONE) < numerator;
    let is_drawn = happens(weight);
    Score::rounded(is_first, weight, is_drawn, happens)
}

#[test]
fn a_rounded_weight_has_the_weight_as_its_mean_exactly() {
    let steps = (0..=4096).map(|step| step * (Score::ONE / 4096));
    for weight in steps.chain([1, 77_777, 1_048_577, Score::ONE - 1]) {
        let mut up = 0;
        let below = Score::rounded(true, weight, false, |numerator| {
            up = numerator;
            false
        });
        let above = Score::rounded(true, weight, false, |_| true);
        let up = f64::from(up) / f64::from(Score::ONE);
        let mean = up * above.weight() + (1.0 - up) * below.weight();
        assert_eq!(mean, f64::from(weight) / f64::from(Score::ONE));
        assert!(WEIGHTS.contains(&below.weight()) && WEIGHTS.contains(&above.weight()));
    }
}

/// Two rankers that meet again and again, with a verdict that counts scores.
struct Pair {
    tally: Tally,
    tracker: VerdictTracker,
}

impl Pair {
    fn new() -> Self {
        Self { tally: Tally::new(2), tracker: VerdictTracker::new(TARGET, 2) }
    }

    fn count(&mut self, score: Score) {
        let duel = Duel::new(0, 1);
        self.tally.record(duel, score.outcome());
        self.tracker.score(duel, score);
        self.tracker.observe(&self.tally, &[0, 1], duel);
    }
}

#[test]
fn the_evidence_of_a_pair_is_that_of_its_wins_and_scores() {
    let mixture = LeadEvidence::over(TARGET.margin);
    let mut rng = step_rng(1, 0);
    let mut pair = Pair::new();
    let mut counts = Counts::default();
    let (mut wins, mut losses) = (0.0, 0.0);
    for step in 0..500 {
        let is_first = rng.random_bool(0.55);
        if step % 5 == 0 {
            // some answers of a pair may come without a score
            let outcome = if is_first { Outcome::First } else { Outcome::Second };
            pair.tally.record(Duel::new(0, 1), outcome);
            pair.tracker.observe(&pair.tally, &[0, 1], Duel::new(0, 1));
            *(if is_first { &mut wins } else { &mut losses }) += 1.0;
        } else {
            let weight = rng.random_range(0.0..1.0);
            let score = score(is_first, weight, &mut rng);
            pair.count(score);
            let is_its = |&weight: &f64| weight == score.weight();
            counts.count(is_first, WEIGHTS.iter().position(is_its).expect("a weight"));
        }
        let evidence = pair.tracker.evidence(&pair.tally, &[0, 1]).ln(0, 1);
        let expected = mixture.ln_with_scores(wins, losses, &counts.won, &counts.lost);
        assert!((evidence - expected).abs() < 1e-9, "{step}: {evidence}");
    }
}

/// The comparison at which there is a verdict, with scores and with their outcomes, and whether the
/// first ranker won.
fn verdicts(seed: u64, win_probability: f64, limit: u64) -> [Option<(u64, bool)>; 2] {
    let mut rng = step_rng(seed, 0);
    let mut pair = Pair::new();
    let mut by_outcome = VerdictTracker::new(TARGET, 2);
    let mut ends = [None; 2];
    for comparison in 1..=limit {
        let is_first = rng.random_bool(win_probability);
        let weight = rng.random_range(0.02_f64..0.8).powi(2);
        pair.count(score(is_first, weight, &mut rng));
        by_outcome.observe(&pair.tally, &[0, 1], Duel::new(0, 1));
        for (end, tracker) in ends.iter_mut().zip([&pair.tracker, &by_outcome]) {
            if end.is_none() {
                *end = tracker.verdict().map(|verdict| (comparison, verdict.winner() == 0));
            }
        }
        if ends.iter().all(Option::is_some) {
            break;
        }
    }
    ends
}

#[test]
fn even_rankers_have_a_wrong_verdict_in_at_most_the_error() {
    // each of the two is certified by mistake in 5 % at most: the edge of the margin
    let wrong = (0..1500).filter(|&seed| {
        let [by_score, _] = verdicts(seed, 0.49, 600);
        by_score.is_some_and(|(_, first_won)| first_won)
    });
    let wrong = wrong.count();
    assert!((5..=75).contains(&wrong), "{wrong} of 1500");
}

#[test]
fn scores_need_fewer_comparisons_than_their_outcomes() {
    let (mut by_score, mut by_outcome) = (0, 0);
    for seed in 0..60 {
        let [scores, outcomes] = verdicts(seed, 0.6, 20_000);
        by_score += scores.map_or(20_000, |(comparison, _)| comparison);
        by_outcome += outcomes.map_or(20_000, |(comparison, _)| comparison);
    }
    assert!(by_score * 10 < by_outcome * 8, "{by_score} against {by_outcome}");
}

/// A run that is restored after every answer, with scores and repeats of units, goes on as one that
/// is not.
#[test]
fn a_run_with_scores_goes_on_as_it_was_saved() {
    const WINDOW: i64 = 600_000;
    let spec = PolicySpec::from_text("d-ts-verdict:margin=0.01").expect("a policy");
    let setup = Setup { rankers: 4, seed: 1 };
    let mut verdicts = 0;
    for window in [0, WINDOW] {
        let mut run = Run::new(spec.start(setup), TARGET, window);
        let mut rng = step_rng(3, 7);
        for number in 0..1200_i64 {
            let saved = run.saved();
            let bytes = postcard::to_stdvec(&saved).expect("bytes");
            let restored = Run::restore((&spec, setup), TARGET, Roster::new(4), saved);
            let restored = restored.expect("its own state");
            assert_eq!(postcard::to_stdvec(&restored.saved()).expect("bytes"), bytes);
            let mut in_flight = InFlight::new();
            in_flight.add(0, 1, number as u32 % 40);
            let select = |run: &Run| run.select(&in_flight, &mut step_rng(5, number as u64));
            let selection = select(&run);
            assert_eq!(select(&restored), selection, "answer {number}, window {window}");
            let expected =
                |run: &Run| (run.expected().of(run.tally()), run.expected().scores().clone());
            assert_eq!(expected(&run), expected(&restored));
            if number % 2 == 0 {
                run = restored;
            }
            let duel = match selection.duel {
                duel if duel.is_self() => Duel::new(number as usize % 4, (number as usize + 1) % 4),
                duel => duel,
            };
            let is_first = rng.random_bool(if duel.first < duel.second { 0.75 } else { 0.25 });
            let score = score(is_first, rng.random_range(0.1..0.9), &mut rng);
            let (outcome, issued_at) = (score.outcome(), number * 1000);
            let (score, unit) = (Some(score), Some((number - number % 4 / 3) as u64));
            let nonce = number as u128;
            let answer = TimedAnswer { duel, outcome, score, issued_at, nonce, unit, segment: 0 };
            run.observe_timed(&answer, None, 0, issued_at);
            run.catch_up();
            run.complete(issued_at - window, issued_at);
        }
        verdicts += u32::from(run.verdict().verdict().is_some());
        assert!(run.verdict().counted().scores().answers() > 300);
        assert!(run.cohorts().left_out().repeated_unit > 100);
    }
    assert_eq!(verdicts, 2);
}

/// Wins and losses by weight.
#[derive(Default)]
struct Counts {
    won: Levels,
    lost: Levels,
}

impl Counts {
    fn count(&mut self, is_win: bool, level: usize) {
        (if is_win { &mut self.won } else { &mut self.lost })[level] += 1;
    }

    fn ln(&self, mixture: &LeadEvidence) -> f64 {
        mixture.ln_with_scores(0.0, 0.0, &self.won, &self.lost)
    }
}

#[test]
fn whole_scores_have_the_evidence_of_wins_and_losses() {
    for margin in [0.0, 0.01, 0.2] {
        let mixture = LeadEvidence::over(margin);
        let mut counts = Counts::default();
        let (mut wins, mut losses) = (0.0, 0.0);
        for number in 0..300 {
            let is_win = number % 3 > 0;
            counts.count(is_win, WEIGHTS.len() - 1);
            *(if is_win { &mut wins } else { &mut losses }) += 1.0;
            let (scored, plain) = (counts.ln(&mixture), mixture.ln(wins, losses));
            assert!((scored - plain).abs() < 1e-9, "{wins}:{losses}: {scored} and {plain}");
        }
    }
}

/// The mean over all sequences of wins and losses with these weights, exactly.
fn mean(mixture: &LeadEvidence, win_probability: f64, levels: &[usize]) -> f64 {
    (0..1_u32 << levels.len())
        .map(|wins| {
            let mut counts = Counts::default();
            let mut probability = 1.0;
            for (at, &level) in levels.iter().enumerate() {
                let is_win = wins >> at & 1 == 1;
                counts.count(is_win, level);
                probability *= if is_win { win_probability } else { 1.0 - win_probability };
            }
            probability * counts.ln(mixture).exp()
        })
        .sum()
}

#[test]
fn the_mean_is_1_on_the_edge_of_the_null_hypothesis_and_below_it_inside() {
    let levels = [1, 8, 3, 7, 0, 5, 8, 2, 4, 6];
    for margin in [0.0, 0.01, 0.2] {
        let mixture = LeadEvidence::over(margin);
        let on_the_edge = mean(&mixture, 0.5 - margin, &levels);
        assert!((on_the_edge - 1.0).abs() < 1e-9, "margin {margin}: {on_the_edge}");
        assert!(mean(&mixture, 0.45 - margin, &levels) < 1.0);
        assert!(mean(&mixture, 0.55 - margin, &levels) > 1.0);
    }
}
