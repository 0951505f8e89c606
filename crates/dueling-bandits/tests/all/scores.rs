//! Answers that the verdict counts by their score: how much of a page decided.

use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::scores::{Levels, ScoreCounts, WEIGHTS};
use dueling_bandits::evidence::{Cohorts, Counting, Score, Target, TimedAnswer, VerdictTracker};
use dueling_bandits::evidence::{plan::SavedPlan, verdict};
use dueling_bandits::parameters::Setup;
use dueling_bandits::{
    Duel, InFlight, Observation, Outcome, Policy, PolicyRng, PolicySpec, Tally, step_rng,
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
        self.tracker.score(duel, score, 1);
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

type Saved = (Tally, Vec<u16>, verdict::State, SavedPlan, u64, bool, f64, Vec<(u16, u32, u32)>);

/// A run of a policy that plans for the verdict, with the parts that the service has.
struct Run {
    policy: Box<dyn Policy>,
    tracker: VerdictTracker,
    cohorts: Cohorts,
    rng: PolicyRng,
    answers: u64,
}

impl Run {
    fn new(seed: u64, rankers: usize) -> Self {
        Self {
            policy: spec().start(Setup { rankers, seed }),
            tracker: VerdictTracker::new(TARGET, rankers),
            cohorts: Cohorts::new(0),
            rng: step_rng(seed, 7),
            answers: 0,
        }
    }

    /// The next duel and its answer, a repeat of a unit now and then.
    fn step(&mut self, active: &[usize]) {
        let selection = self.policy.select(&InFlight::new(), &mut self.rng);
        let duel = selection.duel;
        if duel.is_self() {
            return self.policy.observe_self_duels(duel.first, 1);
        }
        let is_first = self.rng.random_bool(if duel.first < duel.second { 0.6 } else { 0.4 });
        let weight = self.rng.random_range(0.1..0.9);
        let score = score(is_first, weight, &mut self.rng);
        self.policy.score(duel, score);
        let outcome = score.outcome();
        self.policy.observe(&Observation { duel, outcome, batch: None, ticket: selection.ticket });
        self.answers += 1;
        let (score, unit) = (Some(score), Some(self.answers - self.answers % 4 / 3));
        let nonce = self.answers.into();
        let answer = TimedAnswer { duel, outcome, score, issued_at: 10, nonce, unit };
        let Self { policy, tracker, cohorts, .. } = self;
        Counting { tracker, cohorts, policy: &mut **policy, active }.admit(&answer, |_, _, _| ());
    }
}

fn spec() -> PolicySpec {
    PolicySpec::from_text("d-ts-verdict:margin=0.01").expect("a policy")
}

/// What the policy itself counts.
fn saved(policy: &dyn Policy) -> (verdict::State, ScoreCounts) {
    let bytes = policy.save();
    let (saved, rest): (Saved, _) = postcard::take_from_bytes(&bytes).expect("the saved layout");
    let scores = if rest.is_empty() {
        ScoreCounts::default()
    } else {
        postcard::from_bytes(rest).expect("scores")
    };
    (saved.2, scores)
}

#[test]
fn a_policy_counts_the_scores_that_its_caller_counts() {
    let active = [0, 1, 2];
    let (mut verdicts, mut agreeing) = (0, 0);
    for seed in 0..20 {
        let mut run = Run::new(seed, 3);
        for _ in 0..4000 {
            run.step(&active);
            if run.tracker.verdict().is_some() {
                verdicts += 1;
                break;
            }
        }
        let (state, scores) = saved(&*run.policy);
        assert_eq!(&scores, run.tracker.state().scores(), "seed {seed}");
        // The policy counts the steps of repeated answers, too. So its refuters change at other
        // steps, and its verdict may come later.
        let own = VerdictTracker::restore(TARGET, state.with_scores(scores), 3);
        let named = |tracker: &VerdictTracker| {
            tracker.verdict().map(|verdict| (verdict.winners.clone(), verdict.steps))
        };
        if let Some(verdict) = named(&own) {
            assert_eq!(Some(verdict), named(&run.tracker), "seed {seed}");
            agreeing += 1;
        }
    }
    assert!(verdicts > 15 && agreeing > 5, "{verdicts}, {agreeing}");
}

#[test]
fn a_policy_with_scores_goes_on_as_it_was_saved() {
    let active = [0, 1, 2, 3];
    let mut run = Run::new(3, 4);
    for _ in 0..150 {
        run.step(&active);
    }
    let setup = Setup { rankers: 4, seed: 0 };
    let bytes = run.policy.save();
    let restored = spec().restore(setup, run.policy.format(), &bytes).expect("its own state");
    assert_eq!(restored.save(), bytes);
    for step in 0..200 {
        let select = |policy: &dyn Policy| policy.select(&InFlight::new(), &mut step_rng(5, step));
        assert_eq!(select(&*restored), select(&*run.policy));
    }
    // scores that no answers can have had
    let (mut counts, rest): (Saved, _) = postcard::take_from_bytes(&bytes).expect("the layout");
    counts.0 = Tally::new(4);
    let broken = postcard::to_extend(&counts, Vec::new()).expect("bytes");
    let broken = [&broken[..], rest].concat();
    assert!(spec().restore(setup, run.policy.format(), &broken).is_none());
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
