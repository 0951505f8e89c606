//! D-TS-Verdict against its reference form: the same duels, step by step, from the same generator.

use dueling_bandits::evidence::certificate::{CopelandRule, PairEvidence};
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::refuters::Refuters;
use dueling_bandits::evidence::{Target, Verdict};
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Duel, InFlight, Observation, Outcome, Policy, PolicyRng, PolicySpec, Tally};
use rand::RngExt;

use super::super::support::{answer, rng};
use crate::certificate::{capital, truths, winners};
use crate::reference::verdict::ReferenceVerdict;

/// The saved state: tally, retired rankers, verdict, plan, steps at the plan, whether it is stale,
/// how well the records agree with the pairs, and the half wins at the verdict against each rival.
type Saved = (Tally, Vec<u16>, SavedVerdict, SavedPlan, u64, bool, f64, Vec<(u16, u32, u32)>);
/// Changes of the roster, the tally at the newest, comparisons since, the verdict, and what follows
/// the leader.
type SavedVerdict = (u32, Option<Tally>, u64, Option<Verdict>, Option<Refuters>);
/// Leader, duels missing at first, whether it needs losses, and the claims.
type SavedPlan = (Option<u16>, f64, bool, Vec<(u16, u16, f64, f64)>);

fn saved(policy: &dyn Policy) -> Saved {
    postcard::from_bytes(&policy.save()).expect("the saved layout")
}

/// The policy and its reference form, fed alike.
struct Trace {
    target: Target,
    policy: Box<dyn Policy>,
    form: ReferenceVerdict,
    in_flight: InFlight,
    /// Duels without an answer yet.
    waiting: Vec<Duel>,
    /// How many duels may wait.
    delay: usize,
    rng: PolicyRng,
    seen: Seen,
}

/// What a trace met: it shows that a test is not trivial.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    duels: u32,
    self_duels: u32,
    /// Plans with another leader than the one before.
    leaders: u32,
    plans: u32,
    needing_losses: u32,
    /// Steps after the verdict, and those of them on which the winner was not shown alone.
    decided: u32,
    guarding: u32,
    /// Those on which the winner no longer leads in the counts.
    given_up: u32,
    verdicts: u32,
    /// Comparisons of states with a certified Condorcet winner.
    condorcet: u32,
}

impl Seen {
    fn add(&mut self, more: Self) {
        self.duels += more.duels;
        self.self_duels += more.self_duels;
        self.leaders += more.leaders;
        self.plans += more.plans;
        self.needing_losses += more.needing_losses;
        self.decided += more.decided;
        self.guarding += more.guarding;
        self.given_up += more.given_up;
        self.verdicts += more.verdicts;
        self.condorcet += more.condorcet;
    }
}

impl Trace {
    fn new(rankers: usize, target: Target, urgency: f64, delay: usize, seed: u64) -> Self {
        Self::from_counts(&vec![vec![0; rankers]; rankers], target, urgency, delay, seed)
    }

    fn from_counts(
        wins: &[Vec<u32>],
        target: Target,
        urgency: f64,
        delay: usize,
        seed: u64,
    ) -> Self {
        let Target { confidence, margin } = target;
        let text =
            format!("d-ts-verdict:urgency={urgency},confidence={confidence},margin={margin}");
        let start = |text: &str| {
            let spec = PolicySpec::from_text(text).expect("a policy");
            spec.from_counts(wins, None).expect("it starts from counts")
        };
        Self {
            target,
            policy: start(&text),
            form: ReferenceVerdict::new(start("d-ts-plus"), target, urgency),
            in_flight: InFlight::new(),
            waiting: Vec::new(),
            delay,
            rng: rng(seed),
            seen: Seen::default(),
        }
    }

    /// So many steps, with answers from `matrix`. Some are ties, some carry no information, and
    /// some never come.
    fn run(&mut self, matrix: &PreferenceMatrix, steps: usize) -> Seen {
        for step in 0..steps {
            self.select(step);
            // also where the policy shows one ranker alone and waits
            while self.waiting.len() > self.delay
                || !self.waiting.is_empty() && self.rng.random_range(0..=self.delay) == 0
            {
                let at = self.rng.random_range(0..self.waiting.len());
                let duel = self.waiting.swap_remove(at);
                self.in_flight.remove(duel.first, duel.second, 1);
                let won = self.rng.random_bool(matrix.win_probability(duel.first, duel.second));
                let outcome = match self.rng.random_range(0..40) {
                    0..3 => Outcome::Half,
                    3 => Outcome::Void,
                    4 => Outcome::None,
                    5 if self.delay > 0 => continue, // never answered
                    _ if won => Outcome::First,
                    _ => Outcome::Second,
                };
                self.observe(&answer(duel.first, duel.second, outcome));
            }
            if step.is_multiple_of(64) {
                self.compare_states(step);
            }
        }
        self.compare_states(steps);
        self.seen
    }

    fn select(&mut self, step: usize) {
        let mut same = self.rng.clone();
        let duel = self.policy.select(&self.in_flight, &mut self.rng).duel;
        let expected = self.form.select(&self.in_flight, &mut same);
        assert_eq!(duel, expected, "step {step}: {:?}\n{:?}", self.form.plan, self.seen);
        assert_eq!(self.rng, same, "step {step}: draws");
        assert_eq!(self.policy.champion(), self.form.champion(), "step {step}");
        if let Some(verdict) = &self.form.verdict {
            self.seen.decided += 1;
            self.seen.guarding += u32::from(!duel.is_self());
            self.seen.given_up += u32::from(self.policy.champion() != verdict.winner());
        }
        self.seen.duels += 1;
        if duel.is_self() {
            self.seen.self_duels += 1;
            self.policy.observe_self_duels(duel.first, 1);
            self.form.observe_self_duels(duel.first, 1);
        } else {
            self.in_flight.add(duel.first, duel.second, 1);
            self.waiting.push(duel);
        }
    }

    fn observe(&mut self, observation: &Observation) {
        let before = (self.form.plan.clone(), self.form.verdict.is_some());
        self.policy.observe(observation);
        self.form.observe(observation);
        let plan = &self.form.plan;
        if plan.claims != before.0.claims {
            self.seen.plans += 1;
            self.seen.leaders += u32::from(plan.leader != before.0.leader);
            self.seen.needing_losses += u32::from(plan.needs_losses);
        }
        if self.form.verdict.is_some() && !before.1 {
            self.seen.verdicts += 1;
            self.verdict_is_right();
        }
    }

    fn enlist(&mut self) {
        self.policy.enlist().expect("another ranker");
        self.form.enlist();
        self.compare_states(0);
    }

    fn retire(&mut self, ranker: usize) {
        self.policy.retire(ranker).expect("an active ranker");
        self.form.retire(ranker);
        self.compare_states(0);
    }

    /// The kept parts of the two states are the same. Targets and regrets may differ in their last
    /// digits.
    fn compare_states(&mut self, step: usize) {
        let (tally, _, (.., verdict, _), (leader, missing, needs_losses, claims), ..) =
            saved(&*self.policy);
        let form = &self.form;
        assert_eq!(tally.steps(), form.reference.steps);
        assert_eq!(verdict, form.verdict, "step {step}");
        self.seen.condorcet +=
            u32::from(verdict.is_some_and(|verdict| verdict.condorcet_steps.is_some()));
        let active = form.reference.active();
        let plan = &form.plan;
        let ranker = |x: usize| active[x] as u16;
        assert_eq!(leader, plan.leader.map(ranker), "step {step}");
        assert_eq!(needs_losses, plan.needs_losses, "step {step}");
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
        assert!(near(missing, plan.missing_at_first), "step {step}");
        assert_eq!(claims.len(), plan.claims.len(), "step {step}");
        for (claim, &(x, y, target, regret)) in claims.iter().zip(&plan.claims) {
            assert_eq!((claim.0, claim.1), (ranker(x), ranker(y)), "step {step}");
            assert!(near(claim.2, target) && near(claim.3, regret), "step {step}");
        }
    }

    /// The crate's rule certifies the same rankers at the counts of a new verdict; with up to four
    /// rankers, no truth in which the winner is wrong has a capital below `1/δ`.
    fn verdict_is_right(&self) {
        let (field, rule) = (self.form.field(), self.form.rule());
        let k = field.rankers;
        let mut counts = Tally::new(k);
        for (x, row) in field.wins.iter().enumerate() {
            for (y, &wins) in row.iter().enumerate().filter(|&(y, _)| y < x) {
                let record = |counts: &mut Tally, outcome, times: f64| {
                    counts.record_run(Duel::new(x, y), outcome, times as u32);
                };
                record(&mut counts, Outcome::First, wins.floor());
                record(&mut counts, Outcome::Second, field.wins[y][x].floor());
                record(&mut counts, Outcome::Half, 2.0 * wins.fract());
            }
        }
        let (mixture, all) = (LeadEvidence::over(self.target.margin), (0..k).collect::<Vec<_>>());
        let refuters = saved(&*self.policy).2.4;
        let evidence = PairEvidence::new(&mixture, &counts, &all).with_refuters(refuters.as_ref());
        let margin = self.target.margin;
        let same = match &refuters {
            Some(_) => CopelandRule::following(k, rule.error, margin),
            None => CopelandRule::new(k, rule.error, margin),
        };
        let followed: Option<Vec<f64>> = rule
            .refuters
            .map(|refuters| (0..k).map(|j| refuters.capital(&field.evidence, j)).collect());
        for x in 0..k {
            let certified = rule.certifies(&field, x);
            assert_eq!(same.blocks(&evidence, x, None).is_none(), certified);
            assert_eq!(same.certifies_condorcet(&evidence, x), rule.certifies_condorcet(&field, x));
            if certified && (3..=4).contains(&k) {
                let e: Vec<Vec<f64>> = field
                    .evidence
                    .iter()
                    .map(|row| row.iter().map(|ln| ln.min(40.0).exp()).collect())
                    .collect();
                for truth in truths(k) {
                    for best in winners(&truth) {
                        let (phi, wrong) =
                            capital(&truth, best, &e, margin > 0.0, followed.as_deref());
                        assert!(!wrong.contains(&x) || phi >= (1.0 - 1e-9) / rule.error);
                    }
                }
            }
        }
    }
}

fn named(name: &str) -> PreferenceMatrix {
    super::super::arena::matrix(name)
}

/// The best ranker beats all others, and the others beat one another in order.
fn ordered(rankers: usize, p: f64) -> PreferenceMatrix {
    PreferenceMatrix::from_pairs(rankers, |_, _| p).expect("probabilities")
}

/// Runs of so many rankers, each with its seed, urgency, margin and delay.
fn traces(
    rankers: usize,
    confidence: f64,
    matrix: &PreferenceMatrix,
    steps: usize,
    settings: &[(u64, f64, f64, usize)],
) -> Seen {
    let mut all = Seen::default();
    for &(seed, urgency, margin, delay) in settings {
        let target = Target { confidence, margin };
        let mut trace = Trace::new(rankers, target, urgency, delay, seed);
        let mut seen = trace.run(matrix, steps);
        if seen.decided > 0 {
            trace.wait(500_000);
            seen = trace.run(matrix, 300);
        }
        println!("{rankers} rankers, urgency {urgency}, margin {margin}, delay {delay}: {seen:?}");
        all.add(seen);
    }
    all
}

#[test]
fn two_rankers() {
    let settings = [(1, 0.9, 0.0, 0), (2, 0.9, 0.02, 7), (3, 0.0, 0.0, 40), (4, 1.0, 0.02, 0)];
    let seen = traces(2, 0.95, &ordered(2, 0.6), 2500, &settings);
    assert!(seen.verdicts == 4 && seen.guarding > 0 && seen.condorcet > 0, "{seen:?}");
}

#[test]
fn three_rankers_in_order_and_in_a_cycle() {
    let cycle = PreferenceMatrix::from_pairs(3, |i, j| if (i, j) == (0, 2) { 0.3 } else { 0.7 });
    let cycle = cycle.expect("probabilities");
    let settings = [(1, 0.9, 0.0, 0), (2, 0.9, 0.02, 9), (3, 0.3, 0.0, 60), (4, 1.0, 0.02, 0)];
    let seen = traces(3, 0.9, &ordered(3, 0.65), 2500, &settings);
    assert!(seen.verdicts > 2 && seen.guarding > 0, "{seen:?}");
    let seen = traces(3, 0.9, &cycle, 3000, &settings);
    assert!(seen.verdicts > 0 && seen.needing_losses > 20, "{seen:?}");
}

#[test]
fn five_rankers() {
    let settings = [(1, 0.9, 0.0, 0), (2, 0.9, 0.02, 25), (3, 0.5, 0.0, 200), (4, 1.0, 0.02, 3)];
    let seen = traces(5, 0.9, &ordered(5, 0.65), 3000, &settings);
    assert!(seen.verdicts > 1 && seen.leaders > 4, "{seen:?}");
    let seen = traces(5, 0.6, &named("cycle:5:1"), 3000, &settings);
    assert!(seen.verdicts > 0 && seen.needing_losses > 20, "{seen:?}");
}

#[test]
fn eight_rankers() {
    let settings = [(1, 0.9, 0.0, 0), (2, 0.7, 0.02, 50)];
    let seen = traces(8, 0.95, &named("arithmetic-8"), 3000, &settings);
    assert!(seen.verdicts > 0 && seen.plans > 50, "{seen:?}");
    let seen = traces(8, 0.5, &named("cycle:8:1"), 3000, &settings);
    assert!(seen.verdicts > 0 && seen.needing_losses > 20, "{seen:?}");
}

/// More than 20 rankers: only majorities near the top end a plan, and there is less patience. With
/// more than 22, a check comes later.
#[test]
fn many_rankers() {
    let settings = [(1, 0.9, 0.0, 0), (2, 0.9, 0.02, 100)];
    let seen = traces(21, 0.8, &named("btl:21:1"), 1500, &settings);
    assert!(seen.plans > 50 && seen.leaders > 2, "{seen:?}");
    let seen = traces(21, 0.8, &named("cycle:21:1"), 1500, &settings);
    assert!(seen.plans > 50 && seen.needing_losses > 20, "{seen:?}");
    let seen = traces(24, 0.8, &ordered(24, 0.9), 1500, &[(1, 0.9, 0.0, 0)]);
    assert!(seen.verdicts > 0 && seen.guarding > 0, "{seen:?}");
}

/// Rankers come and go before the verdict and after it, with duels of theirs in flight.
#[test]
fn a_changing_roster() {
    let matrix = named("btl:6:3");
    let mut all = Seen::default();
    for (seed, margin, delay) in [(1, 0.0, 0), (2, 0.02, 12), (3, 0.0, 30)] {
        let mut trace = Trace::new(4, Target { confidence: 0.9, margin }, 0.9, delay, seed);
        trace.run(&matrix, 300);
        trace.enlist();
        trace.run(&matrix, 900);
        trace.retire(1);
        trace.run(&matrix, 1200);
        trace.enlist();
        trace.run(&matrix, 600);
        trace.retire(trace.policy.champion());
        all.add(trace.run(&matrix, 1200));
    }
    println!("{all:?}");
    assert!(all.verdicts > 1 && all.plans > 100, "{all:?}");
}

/// A policy from counts alone makes its plan at once.
#[test]
fn counts_alone() {
    let counts = [vec![0, 9, 8, 4], vec![3, 0, 7, 2], vec![2, 5, 0, 6], vec![4, 6, 2, 0]];
    let target = Target { confidence: 0.95, margin: 0.0 };
    let mut trace = Trace::from_counts(&counts, target, 0.9, 4, 1);
    trace.compare_states(0);
    assert!(trace.form.plan.leader.is_some());
    let seen = trace.run(&ordered(4, 0.7), 2500);
    assert!(seen.verdicts == 1, "{seen:?}");
}

impl Trace {
    /// So many steps on which the winner is shown alone.
    fn wait(&mut self, steps: u64) {
        let winner = self.policy.champion();
        self.policy.observe_self_duels(winner, steps);
        self.form.observe_self_duels(winner, steps);
    }
}

/// Counts that misled have a verdict at once. After a while its winner has to prove itself again,
/// and it is given up when it loses its lead.
#[test]
fn a_wrong_verdict() {
    let counts = [vec![0, 24, 24], vec![6, 0, 10], vec![6, 10, 0]];
    let target = Target { confidence: 0.8, margin: 0.0 };
    for delay in [0, 4, 40] {
        let mut trace = Trace::from_counts(&counts, target, 0.9, delay, 1);
        assert!(trace.form.verdict.is_some());
        let matrix = ordered(3, 0.1);
        let before = trace.run(&matrix, 1000);
        assert!(before.guarding < 10 && before.given_up == 0, "{before:?}");
        trace.wait(600_000);
        let seen = trace.run(&matrix, 2000);
        println!("{seen:?}");
        assert!(seen.given_up > 1000, "{seen:?}");
    }
}

/// A right verdict is proven again by a few duels, which the time makes more.
#[test]
fn a_right_verdict_is_proven_again() {
    let counts = [vec![0, 24, 24], vec![6, 0, 10], vec![6, 10, 0]];
    for (margin, delay) in [(0.0, 0), (0.02, 4), (0.0, 50)] {
        let target = Target { confidence: 0.8, margin };
        let mut trace = Trace::from_counts(&counts, target, 0.9, delay, 2);
        assert!(trace.form.verdict.is_some());
        let (matrix, mut duels) = (ordered(3, 0.7), Vec::new());
        for _ in 0..4 {
            trace.wait(1_000_000);
            let before = trace.seen.guarding;
            let seen = trace.run(&matrix, 1500);
            assert!(seen.given_up == 0, "{seen:?}");
            duels.push(seen.guarding - before);
        }
        println!("{duels:?}");
        assert!(duels[0] >= 20 && duels.iter().sum::<u32>() < 600, "{duels:?}");
    }
}

/// The winner does not have to prove that it beats a ranker on which the verdict does not rest. The
/// two are even, so such a proof would not end.
#[test]
fn a_rival_that_happened_to_be_behind_takes_no_pages() {
    let counts = [vec![0, 40, 40, 28], vec![6, 0, 40, 40], vec![6, 6, 0, 40], vec![20, 6, 6, 0]];
    let win = |i, j| if (i, j) == (0, 3) { 0.5 } else { 0.75 };
    let matrix = PreferenceMatrix::from_pairs(4, win).expect("probabilities");
    for margin in [0.0, 0.02] {
        let target = Target { confidence: 0.8, margin };
        let mut trace = Trace::from_counts(&counts, target, 0.9, 0, 3);
        let verdict = trace.form.verdict.as_ref().expect("a verdict of the counts");
        assert_eq!(verdict.winners[0], 0);
        trace.wait(1_000_000);
        let seen = trace.run(&matrix, 2000);
        println!("{seen:?}");
        assert!((20..100).contains(&seen.guarding) && seen.given_up == 0, "{seen:?}");
    }
}

/// A winner within the margin of a better ranker is right. In time it meets that ranker, and is
/// given up once it loses its lead, though the better one still has no proof.
#[test]
fn a_winner_within_the_margin_of_a_better_one() {
    let counts = [vec![0, 320, 250], vec![280, 0, 250], vec![150, 150, 0]];
    let win = |i, j| if (i, j) == (0, 1) { 0.45 } else { 0.7 };
    let matrix = PreferenceMatrix::from_pairs(3, win).expect("probabilities");
    let target = Target { confidence: 0.8, margin: 0.06 };
    for delay in [0, 20] {
        let mut trace = Trace::from_counts(&counts, target, 0.9, delay, 4);
        let verdict = trace.form.verdict.as_ref().expect("a verdict of the counts");
        assert_eq!(verdict.winners[0], 0);
        let before = trace.run(&matrix, 1000);
        assert!(before.guarding < 10 && before.given_up == 0, "{before:?}");
        // the time at which the evidence that the guard asks for is least
        trace.wait(300_000);
        let seen = trace.run(&matrix, 8000);
        println!("{seen:?}");
        assert!(seen.given_up > 1000, "{seen:?}");
        assert_eq!(trace.policy.champion(), 1);
    }
}
