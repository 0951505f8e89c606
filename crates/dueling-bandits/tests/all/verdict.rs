//! The verdict of a run, and the policy that works towards one.

use dueling_bandits::evidence::loss::{Loss, MOST_LOST};
use dueling_bandits::evidence::plan::{Awaited, Plan};
use dueling_bandits::evidence::{Race, Target, VerdictTracker};
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::run::Run as PolicyRun;
use dueling_bandits::{
    Bandit, Duel, InFlight, Observation, Outcome, PolicyRng, PolicySpec, Roster, Tally,
};
use rand::{RngExt, SeedableRng};

const TARGET: Target = Target { confidence: 0.95, margin: 0.0 };

/// A tally and what follows it.
struct Run {
    tally: Tally,
    roster: Roster,
    tracker: VerdictTracker,
    race: Race,
    rng: PolicyRng,
}

impl Run {
    fn new(rankers: usize, target: Target, seed: u64) -> Self {
        Self {
            tally: Tally::new(rankers),
            roster: Roster::new(rankers),
            tracker: VerdictTracker::new(target, rankers),
            race: Race::default(),
            rng: PolicyRng::seed_from_u64(seed),
        }
    }

    /// A duel that the first ranker wins with this probability.
    fn duel(&mut self, first: usize, second: usize, probability: f64) {
        let won = self.rng.random_bool(probability);
        let outcome = if won { Outcome::First } else { Outcome::Second };
        self.tally.record(Duel::new(first, second), outcome);
        self.tracker.observe(&self.tally, self.roster.active(), Duel::new(first, second));
        self.race.observe(&self.tracker, &self.tally, self.roster.active(), 1, 0);
    }

    /// Duels of all pairs in turn: the lower index wins with this probability.
    fn rounds(&mut self, rounds: usize, probability: f64) {
        for _ in 0..rounds {
            let active = self.roster.active().to_vec();
            for (at, &i) in active.iter().enumerate() {
                for &j in &active[at + 1..] {
                    self.duel(i, j, probability);
                }
            }
        }
    }

    fn winners(&self) -> Option<&[u16]> {
        self.tracker.verdict().map(|verdict| &*verdict.winners)
    }
}

#[test]
fn a_verdict_stays_whatever_follows() {
    let mut run = Run::new(4, TARGET, 1);
    run.rounds(100, 0.8);
    assert_eq!(run.winners(), Some(&[0][..]));
    let verdict = run.tracker.verdict().cloned().unwrap();
    assert!(verdict.condorcet_steps.is_some_and(|steps| steps >= verdict.steps));
    run.rounds(1000, 0.1);
    assert_eq!(run.tracker.verdict(), Some(&verdict), "latched");
    let judged = run.tracker.judge(TARGET, &run.tally, run.roster.active());
    assert_ne!(judged.winner(), Some(0), "read anew");
}

#[test]
fn no_verdict_without_evidence() {
    let mut run = Run::new(4, TARGET, 2);
    run.rounds(3, 0.8);
    assert_eq!(run.winners(), None);
    let standing = run.tracker.leader(&run.tally, run.roster.active());
    assert!(standing.rivals.iter().any(|&(_, evidence)| evidence < standing.threshold));
    assert_eq!(standing.rivals.len(), 3);
}

#[test]
fn after_a_change_of_the_roster_the_verdict_starts_anew_and_needs_more() {
    let mut run = Run::new(3, TARGET, 3);
    run.rounds(60, 0.9);
    let before = run.tracker.threshold();
    assert_eq!(run.winners(), Some(&[0][..]));
    run.roster.retire(0).unwrap();
    run.tracker.roster_changed(&run.tally, 2);
    assert_eq!(run.winners(), None);
    assert!(run.tracker.threshold() > before + 2.0, "a smaller share of the error");
    // the 60 duels of the pair before the change are no evidence
    let evidence = run.tracker.evidence(&run.tally, run.roster.active());
    assert_eq!((evidence.wins(0, 1), evidence.ln(0, 1)), (0.0, 0.0));
    run.rounds(60, 0.9);
    assert_eq!(run.winners(), Some(&[1][..]));
}

#[test]
fn all_shares_of_the_error_sum_to_the_error() {
    let mut tracker = VerdictTracker::new(TARGET, 2);
    let tally = Tally::new(2);
    let mut error = 0.0;
    for _ in 0..2000 {
        error += (-tracker.threshold()).exp();
        tracker.roster_changed(&tally, 2);
    }
    assert!((0.0499..=0.05).contains(&error), "{error}");
}

#[test]
fn two_even_rankers_are_named_together_with_a_margin() {
    let target = Target { confidence: 0.95, margin: 0.05 };
    for seed in 0..10 {
        let mut run = Run::new(3, target, seed);
        for _ in 0..4000 {
            run.duel(0, 1, 0.5);
            run.duel(0, 2, 0.9);
            run.duel(1, 2, 0.9);
        }
        let winners = run.winners().expect("a verdict");
        assert!(!winners.contains(&2));
    }
    // the leader's proof may be complete a little before that of the other
    let mut run = Run::new(3, target, 1);
    for _ in 0..4000 {
        run.duel(0, 2, 0.9);
        run.duel(1, 2, 0.9);
    }
    assert!(run.winners().is_none(), "the pair (0, 1) was not compared");
    for _ in 0..2000 {
        run.tally.record(Duel::new(0, 1), Outcome::Half);
    }
    let judged = run.tracker.judge(target, &run.tally, run.roster.active());
    assert_eq!(judged.verdict().unwrap().winners, [0, 1]);
}

#[test]
fn the_race_ends_at_the_verdict_and_has_points_in_order() {
    let mut run = Run::new(3, TARGET, 5);
    run.rounds(2000, 0.7);
    let verdict = run.tracker.verdict().unwrap().steps;
    let points = run.race.points();
    assert!(points.windows(2).all(|pair| pair[0].steps < pair[1].steps));
    assert!((5..60).contains(&points.len()), "{}", points.len());
    let last = points.last().unwrap();
    assert_eq!(last.steps, verdict);
    assert!(last.rivals.iter().all(|&(_, ln)| f64::from(ln) >= run.tracker.threshold() - 1e-6));
}

/// Duels of a policy with outcomes from `matrix`.
struct Experiment<'a> {
    policy: PolicyRun,
    matrix: &'a PreferenceMatrix,
    in_flight: InFlight,
    rng: PolicyRng,
}

impl<'a> Experiment<'a> {
    fn new(text: &str, matrix: &'a PreferenceMatrix, seed: u64) -> Self {
        let spec = PolicySpec::from_text(text).unwrap();
        Self {
            policy: PolicyRun::of(spec.start(Setup { rankers: matrix.rankers(), seed })),
            matrix,
            in_flight: InFlight::new(),
            rng: PolicyRng::seed_from_u64(seed),
        }
    }

    fn select(&mut self) -> Duel {
        self.policy.select(&self.in_flight, &mut self.rng).duel
    }

    fn observe(&mut self, duel: Duel) {
        if duel.is_self() {
            return self.policy.observe_self_duels(duel.first, 1);
        }
        let won = self.rng.random_bool(self.matrix.win_probability(duel.first, duel.second));
        let outcome = if won { Outcome::First } else { Outcome::Second };
        self.policy.observe(&Observation { duel, outcome, batch: None, ticket: 0 });
    }

    /// Steps until the winner is shown alone nine times out of ten over 200 steps.
    fn decide(&mut self, most: usize) -> Option<(usize, usize)> {
        let mut alone = Vec::new();
        for step in 0..most {
            let duel = self.select();
            alone.push(duel.is_self().then_some(duel.first));
            self.observe(duel);
            let recent = &alone[alone.len().saturating_sub(200)..];
            if let Some(Some(first)) = recent.first()
                && recent.len() == 200
                && recent.iter().filter(|&&shown| shown == Some(*first)).count() > 180
            {
                return Some((step, *first));
            }
        }
        None
    }
}

#[test]
fn the_policy_decides_and_then_shows_the_winner() {
    let matrix = PreferenceMatrix::from_pairs(5, |_, _| 0.7).unwrap();
    for seed in 0..5 {
        let mut experiment = Experiment::new("d-ts-verdict", &matrix, seed);
        let (steps, winner) = experiment.decide(5000).expect("a verdict");
        assert_eq!(winner, 0);
        assert!(steps < 3000, "{steps}");
        assert_eq!(experiment.policy.champion(), 0);
    }
}

/// Without a Condorcet winner there is a verdict too.
#[test]
fn the_policy_decides_in_a_cycle() {
    let beats = |i: usize, j: usize| if (i, j) == (0, 2) { 0.3 } else { 0.7 };
    let matrix = PreferenceMatrix::from_pairs(4, beats).unwrap();
    let winners = matrix.copeland_winners();
    for seed in 0..5 {
        let mut experiment = Experiment::new("d-ts-verdict", &matrix, seed);
        let (_, winner) = experiment.decide(20_000).expect("a verdict");
        assert!(winners.contains(&winner), "{winner} of {winners:?}");
    }
}

/// Duels in flight are not asked for again: with everything in flight, the plan has nothing left.
#[test]
fn duels_in_flight_count_towards_the_proof() {
    let mut run = Run::new(3, TARGET, 9);
    run.rounds(8, 0.75);
    let plan = Plan::make(&run.tracker, &run.tally, run.roster.active());
    assert!(!plan.is_complete() && plan.leader().is_some());
    let mut in_flight = InFlight::new();
    assert!(plan.draw(Awaited { in_flight: &in_flight, counting: 1.0 }, 0.5).is_some());
    for claim in plan.claims() {
        in_flight.add(claim.winner, claim.loser, claim.missing.ceil() as u32);
    }
    assert_eq!(plan.draw(Awaited { in_flight: &in_flight, counting: 1.0 }, 0.5), None);
    let few_count = Awaited { in_flight: &in_flight, counting: 0.2 };
    assert!(plan.draw(few_count, 0.5).is_some(), "most of their answers will not count");
}

/// The claims of a plan suffice: once each has the evidence it asks for, there is a verdict.
#[test]
fn a_completed_plan_is_a_proof() {
    for (seed, beats) in [(1, 0.75), (2, 0.6), (3, 0.9)] {
        let mut run = Run::new(4, TARGET, seed);
        run.rounds(6, beats);
        for _ in 0..400 {
            if run.tracker.verdict().is_some() {
                break;
            }
            let plan = Plan::make(&run.tracker, &run.tally, run.roster.active());
            assert!(!plan.is_complete(), "no verdict, so something is missing");
            for claim in plan.claims().to_vec() {
                let more = claim.missing.ceil().min(20.0) as usize;
                let p = if claim.winner < claim.loser { beats } else { 1.0 - beats };
                (0..more).for_each(|_| run.duel(claim.winner, claim.loser, p));
            }
        }
        assert_eq!(run.winners().map(|winners| winners[0]), Some(0));
    }
}

/// The rule asks for more than single claims need where other pairs speak against the leader. A
/// plan always says what is missing then, also with a margin, and with much evidence.
#[test]
fn a_plan_without_a_verdict_is_never_complete() {
    let mut open = 0;
    for seed in 0..120 {
        let margin = [0.0, 0.01, 0.05][seed as usize % 3];
        let target = Target { confidence: 0.95, margin };
        let mut run = Run::new(5, target, seed);
        for i in 0..5 {
            for j in 0..i {
                let (count, p) = (run.rng.random_range(50..3000), run.rng.random_range(0.45..0.55));
                (0..count).for_each(|_| run.duel(i, j, p));
            }
        }
        // a tracker that has checked the last counts too
        let tracker = VerdictTracker::of_counts(target, &run.tally, run.roster.active());
        if tracker.verdict().is_none() {
            open += 1;
            let plan = Plan::make(&tracker, &run.tally, run.roster.active());
            assert!(!plan.is_complete(), "seed {seed}: {plan:?}");
        }
    }
    assert!(open > 30, "{open} experiments are open");
}

/// A claim that the counts turn against ends the plan. Before a new one is made, it would otherwise
/// take nearly all duels, because it lacks the most.
#[test]
fn a_hopeless_claim_does_not_take_all_duels() {
    let matrix = PreferenceMatrix::named("btl:16:1").unwrap().unwrap();
    for seed in 0..4 {
        let mut experiment = Experiment::new("d-ts-verdict", &matrix, seed);
        for _ in 0..30_000 {
            let duel = experiment.select();
            experiment.observe(duel);
        }
        let tally = experiment.policy.tally();
        for i in 0..16 {
            for j in 0..i {
                let lead = (matrix.win_probability(i, j) - 0.5).abs();
                let nats = 2.0 * lead * lead * tally.plays(i, j);
                assert!(nats < 50.0, "seed {seed}: {nats} nats of {i} and {j}, p = 0.5 ± {lead}");
            }
        }
    }
}

/// The loss that a verdict withstands is the one that it withstands, and grows with the evidence.
#[test]
fn a_verdict_says_how_much_loss_it_withstands() {
    let of = |rounds: usize| {
        let mut run = Run::new(2, TARGET, 1);
        for round in 0..rounds {
            run.duel(0, 1, if round % 50 < 31 { 1.0 } else { 0.0 });
        }
        let active = run.roster.active();
        let (tracker, tally) = (&run.tracker, &run.tally);
        let loss = Loss { tracker, tally, active, winner: 0, answered_each: 1.0 };
        let most = loss.most_withstood();
        let stands = |share| loss.is_withstood(share);
        assert_eq!(run.winners(), Some(&[0][..]));
        assert!(stands(most) || most == 0.0, "{most}");
        assert!(most > MOST_LOST - 0.001 || !stands(most + 0.002), "{most}");
        assert!(!stands(1.0) && !stands(0.999), "unanswered duels alone are no evidence");
        most
    };
    let growing = [200, 400, 2000].map(of);
    assert!(growing.is_sorted() && growing[0] < 0.05 && growing[2] > 0.1, "{growing:?}");
}

/// A quarter of the wins of the better ranker, which wins 55 %, are lost.
#[test]
fn a_verdict_that_losses_made_does_not_withstand_them() {
    let mut run = Run::new(2, TARGET, 1);
    let (mut issued, mut answered) = (0_u32, 0_u32);
    while run.winners().is_none() {
        let better_wins = issued * 11 % 20 < 11;
        let is_lost = better_wins && issued % 4 == 0;
        issued += 1;
        if !is_lost {
            answered += 1;
            run.duel(0, 1, if better_wins { 0.0 } else { 1.0 });
        }
    }
    assert_eq!(run.winners(), Some(&[0][..]), "the worse one");
    let (tracker, tally, active) = (&run.tracker, &run.tally, run.roster.active());
    let loss = Loss { tracker, tally, active, winner: 0, answered_each: 1.0 };
    let unanswered = 1.0 - f64::from(answered) / f64::from(issued);
    assert!(!loss.is_withstood(unanswered), "{unanswered}");
    let with_others = Loss { answered_each: 3.0, ..loss };
    assert!(with_others.most_withstood() <= loss.most_withstood(), "more duels, more losses");
}
