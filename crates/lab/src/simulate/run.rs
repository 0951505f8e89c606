//! One run: one policy, one seed, from the first step to the horizon.

use std::time::Duration;

use rand::{RngExt, SeedableRng};

use super::environment::{Environment, RunSeeds};
use super::feedback::{Outstanding, Pending};
use super::replicas::Replicas;
use super::tournament::{Tournament, Watch};
use dueling_bandits::parameters::Setup;
use dueling_bandits::{Policy, PolicyRng, Selection};

/// Steps between two reports to the [`Watch`].
const STEPS_PER_REPORT: u64 = 256;

/// What a run found; shorter than asked when it was stopped.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    /// Cumulative regret at each checkpoint reached.
    pub regrets: Vec<f64>,
    /// Steps done.
    pub steps: u64,
    /// Processor time of the thread that ran it.
    pub time: Duration,
}

/// Run the policy that `start` makes once. `checkpoints` ascend and end with the horizon.
pub(super) fn run(
    tournament: &Tournament,
    start: impl Fn(Setup) -> Box<dyn Policy>,
    seeds: RunSeeds,
    checkpoints: &[u64],
    watch: &Watch,
) -> Run {
    let stopwatch = Stopwatch::start();
    let rankers = tournament.matrix.rankers();
    let mut duels = Duels {
        replicas: Replicas::new(&tournament.feedback, seeds.folding, || {
            start(Setup { rankers, seed: seeds.folding })
        }),
        environment: Environment::new(
            &tournament.matrix,
            &tournament.feedback,
            tournament.shuffle_rankers,
            seeds,
        ),
        selecting: PolicyRng::seed_from_u64(seeds.selecting),
        appearances: vec![0; rankers],
    };
    let mut outstanding =
        (!tournament.feedback.is_immediate()).then(|| Outstanding::new(&tournament.feedback));

    let mut regrets = Vec::with_capacity(checkpoints.len());
    let mut steps = 0;
    'all: for &checkpoint in checkpoints {
        while steps < checkpoint {
            let before = steps;
            let pause = checkpoint.min(steps + STEPS_PER_REPORT);
            while steps < pause && !watch.is_stopped() {
                steps += 1;
                match &mut outstanding {
                    None => duels.step_at_once(),
                    Some(outstanding) => duels.step_with_delay(steps, outstanding),
                }
            }
            watch.advance(steps - before);
            if steps < pause {
                break 'all;
            }
        }
        regrets.push(tournament.regret.of_appearances(&duels.appearances));
    }
    Run { regrets, steps, time: stopwatch.elapsed() }
}

/// Servers among their searchers.
struct Duels<'a> {
    replicas: Replicas,
    environment: Environment<'a>,
    selecting: PolicyRng,
    /// How often each ranker was shown, by the matrix's index. All that regret needs.
    appearances: Vec<u64>,
}

impl Duels<'_> {
    /// One step whose outcome is known before the next.
    fn step_at_once(&mut self) {
        let selection = self.show(0);
        let answer =
            if selection.duel.is_self() { None } else { self.environment.answer(selection.duel) };
        self.replicas.at_once(selection, answer);
    }

    /// One step whose outcome may come later, and the outcomes that come after it. A self-duel
    /// needs no feedback and is appended at once.
    fn step_with_delay(&mut self, step: u64, outstanding: &mut Outstanding) {
        let issued_by = self.any_replica();
        let selection = self.show(issued_by);
        if selection.duel.is_self() {
            self.replicas.self_duel(step, issued_by, selection.duel.first);
        } else {
            let answer = self.environment.answer(selection.duel);
            self.replicas.issued(issued_by, selection.duel);
            outstanding.add(
                step,
                Pending { selection, answer, issued_by },
                &mut self.environment.rng,
            );
        }
        while let Some(pending) = outstanding.next(step, &mut self.environment.rng) {
            let receiver = self.any_replica();
            self.replicas.received(step, receiver, pending);
        }
        self.replicas.follow(step);
    }

    /// Where a load balancer sends a request.
    fn any_replica(&mut self) -> usize {
        match self.replicas.count() {
            1 => 0,
            count => self.environment.rng.random_range(0..count),
        }
    }

    fn show(&mut self, replica: usize) -> Selection {
        let (policy, in_flight) = self.replicas.of(replica);
        let selection = policy.select(in_flight, &mut self.selecting);
        self.appearances[self.environment.name(selection.duel.first)] += 1;
        self.appearances[self.environment.name(selection.duel.second)] += 1;
        selection
    }
}

/// Measures what a run costs: the processor time of its thread, which, unlike the wall clock, does
/// not count what other work on the machine takes. Wall time where the platform has no clock for
/// one thread.
struct Stopwatch {
    #[cfg(unix)]
    started: Duration,
    #[cfg(not(unix))]
    started: std::time::Instant,
}

#[cfg(unix)]
impl Stopwatch {
    fn start() -> Self {
        Self { started: Self::now() }
    }

    fn elapsed(&self) -> Duration {
        Self::now().saturating_sub(self.started)
    }

    fn now() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

#[cfg(not(unix))]
impl Stopwatch {
    fn start() -> Self {
        Self { started: std::time::Instant::now() }
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::environment::fingerprint;
    use super::super::feedback::{Delay, Feedback};
    use super::*;
    use dueling_bandits::preference::{PreferenceMatrix, RegretKind};
    use dueling_bandits::{InFlight, Observation, Outcome, Tally, TieRule};

    /// What a policy was told, in order: how many duels were in flight at each select, and after
    /// how many selects each outcome came, with the ticket of the select that it belongs to.
    #[derive(Debug, Default)]
    struct Notes {
        in_flight: Vec<u64>,
        outcomes: Vec<(u64, u64, Outcome)>,
    }

    /// Always the pair (0, 1), or a self-duel at every `self_duels`-th step; the ticket is the
    /// number of the select.
    #[derive(Debug)]
    struct Probe {
        tally: Tally,
        self_duels: u64,
        notes: Arc<Mutex<Notes>>,
    }

    impl Policy for Probe {
        fn tally(&self) -> &Tally {
            &self.tally
        }

        fn select(&self, in_flight: &InFlight, _chance: &mut PolicyRng) -> Selection {
            let mut notes = self.notes.lock().unwrap();
            notes.in_flight.push(in_flight.total());
            assert_eq!(u64::from(in_flight.of(0, 1)), in_flight.total());
            let ticket = notes.in_flight.len() as u64;
            if self.self_duels > 0 && ticket.is_multiple_of(self.self_duels) {
                Selection { ticket, ..Selection::of(1, 1) }
            } else {
                Selection { ticket, batch: Some(7), ..Selection::of(0, 1) }
            }
        }

        fn observe(&mut self, observation: &Observation) {
            assert_eq!(observation.batch, Some(7));
            let mut notes = self.notes.lock().unwrap();
            let selects = notes.in_flight.len() as u64;
            notes.outcomes.push((observation.ticket, selects, observation.outcome));
            self.tally.record(observation.duel, observation.outcome);
        }

        fn observe_self_duels(&mut self, ranker: usize, count: u64) {
            assert_eq!((ranker, count), (1, 1));
            self.tally.skip(count);
        }

        fn format(&self) -> u32 {
            0
        }

        fn save(&self) -> Vec<u8> {
            Vec::new()
        }
    }

    fn probe(feedback: Feedback, steps: u64, self_duels: u64) -> (Notes, Run) {
        let matrix = PreferenceMatrix::from_pairs(2, |_, _| 0.75).unwrap();
        let mut tournament =
            Tournament::new("two", matrix, RegretKind::Copeland, Vec::new(), steps).unwrap();
        tournament.feedback = feedback;
        tournament.shuffle_rankers = false;
        let notes = Arc::new(Mutex::new(Notes::default()));
        let start = |setup: Setup| -> Box<dyn Policy> {
            Box::new(Probe { tally: Tally::new(setup.rankers), self_duels, notes: notes.clone() })
        };
        let seeds = RunSeeds::new(1, &fingerprint(&tournament.matrix), 0);
        let run = run(&tournament, start, seeds, &[steps], &Watch::new());
        (Arc::try_unwrap(notes).unwrap().into_inner().unwrap(), run)
    }

    #[test]
    fn without_delay_each_outcome_comes_before_the_next_duel() {
        let (notes, run) = probe(Feedback::default(), 100, 0);
        assert!(notes.in_flight.iter().all(|&open| open == 0));
        assert!(notes.outcomes.iter().all(|(ticket, selects, _)| ticket == selects));
        assert_eq!((notes.outcomes.len(), run.steps), (100, 100));
        // ranker 0 wins, so each step costs half
        assert_eq!(run.regrets, [50.0]);
    }

    #[test]
    fn a_fixed_delay_lets_that_many_further_duels_be_selected_first() {
        let (notes, _) = probe(Feedback { delay: Delay::Steps(3), ..Feedback::default() }, 100, 0);
        assert!(notes.outcomes.iter().all(|(ticket, selects, _)| ticket + 3 == *selects));
        assert_eq!(notes.outcomes.len(), 97);
        assert_eq!(notes.in_flight[..6], [0, 1, 2, 3, 3, 3]);
    }

    #[test]
    fn a_batch_delivers_at_its_multiples_in_the_order_of_the_answers() {
        let (notes, _) = probe(Feedback { batch_steps: 10, ..Feedback::default() }, 25, 0);
        let order: Vec<_> =
            notes.outcomes.iter().map(|(ticket, selects, _)| (*ticket, *selects)).collect();
        let expected: Vec<_> =
            (1..=10).map(|t| (t, 10)).chain((11..=20).map(|t| (t, 20))).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn a_geometric_delay_has_its_mean() {
        let mean = 20.0;
        let (notes, _) =
            probe(Feedback { delay: Delay::Geometric { mean }, ..Feedback::default() }, 50_000, 0);
        let delays: Vec<f64> =
            notes.outcomes.iter().map(|(ticket, selects, _)| (selects - ticket) as f64).collect();
        let found = delays.iter().sum::<f64>() / delays.len() as f64;
        // deviation of one delay: sqrt(m (m + 1)); the few cut off at the end are far fewer than
        // the error
        let error = (mean * (mean + 1.0) / delays.len() as f64).sqrt();
        assert!((found - mean).abs() < 4.0 * error + 0.02, "{found} ± {error}");
        assert!(delays.contains(&0.0));
    }

    #[test]
    fn so_many_outstanding_are_kept_and_answered_in_any_order() {
        let (notes, _) =
            probe(Feedback { delay: Delay::Outstanding(8), ..Feedback::default() }, 1000, 0);
        assert_eq!(notes.in_flight[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(notes.in_flight[8..].iter().all(|&open| open == 7));
        assert_eq!(notes.outcomes.len(), 993);
        assert!(notes.outcomes.windows(2).any(|pair| pair[0].0 > pair[1].0));
        let (one, _) =
            probe(Feedback { delay: Delay::Outstanding(1), ..Feedback::default() }, 100, 0);
        assert!(one.outcomes.iter().all(|(ticket, selects, _)| ticket == selects));
    }

    #[test]
    fn a_lost_outcome_never_comes_and_its_duel_expires() {
        let lossy = Feedback { loss: 0.5, delay: Delay::Steps(4), ..Feedback::default() };
        let (notes, _) = probe(lossy, 10_000, 0);
        assert!(notes.in_flight.iter().all(|&open| open <= 4));
        // 9996 fair coins: 4 deviations are 200
        assert!((notes.outcomes.len() as f64 - 4998.0).abs() < 200.0, "{}", notes.outcomes.len());
        let (all, run) = probe(Feedback { loss: 1.0, ..Feedback::default() }, 100, 0);
        assert!(all.outcomes.is_empty());
        assert_eq!(run.regrets, [50.0]);
    }

    #[test]
    fn self_duels_need_no_feedback_and_are_never_lost_or_late() {
        let late = Feedback { loss: 1.0, delay: Delay::Steps(9), ..Feedback::default() };
        let (notes, run) = probe(late, 100, 1);
        assert!(notes.outcomes.is_empty());
        assert!(notes.in_flight.iter().all(|&open| open == 0));
        // ranker 1 loses to the other, and is shown twice a step
        assert_eq!(run.regrets, [100.0]);
    }

    #[test]
    fn a_replica_knows_its_own_duels_and_lags_behind_what_others_append() {
        // every outcome is taken by one of four, and the other three fold it ten steps later or
        // with their own next
        let feedback = Feedback { replicas: 4, lag: 10, ..Feedback::default() };
        let (notes, run) = probe(feedback, 4000, 0);
        assert_eq!(run.regrets, [2000.0]);
        // each entry is folded by each of the four, but for the last ones
        assert!(
            (4 * 4000 - 3 * 10..=4 * 4000).contains(&notes.outcomes.len()),
            "{}",
            notes.outcomes.len()
        );
        let behind: Vec<u64> =
            notes.outcomes.iter().map(|(ticket, selects, _)| selects - ticket).collect();
        assert_eq!((behind.iter().min(), behind.iter().max()), (Some(&0), Some(&10)));
        // a duel that another replica answers is in flight at its own until that one has heard of
        // it
        assert!(notes.in_flight.iter().any(|&open| open > 0));
        // in the mean each of four has a quarter of what is out, 10 steps at most
        assert!(notes.in_flight.iter().all(|&open| open <= 10));
        // without lag they are as one
        let (notes, _) = probe(Feedback { replicas: 4, ..Feedback::default() }, 100, 0);
        assert!(notes.in_flight.iter().all(|&open| open == 0));
        assert!(notes.outcomes.iter().all(|(ticket, selects, _)| ticket == selects));
    }

    #[test]
    fn outcomes_have_their_probabilities() {
        let count = |feedback: Feedback, wanted: Outcome| {
            let (notes, _) = probe(feedback, 20_000, 0);
            notes.outcomes.iter().filter(|(_, _, outcome)| *outcome == wanted).count() as f64
                / 20_000.0
        };
        let near = |found: f64, wanted: f64| {
            let four_errors = 4.0 * (wanted * (1.0 - wanted) / 20_000.0).sqrt();
            assert!((found - wanted).abs() < four_errors, "{found}, not {wanted} ± {four_errors}");
        };
        let some = Feedback { no_click: 0.2, ties: 0.25, ..Feedback::default() };
        near(count(Feedback::default(), Outcome::First), 0.75);
        near(count(some.clone(), Outcome::None), 0.2);
        near(count(some.clone(), Outcome::Void), 0.8 * 0.25);
        near(count(some.clone(), Outcome::First), 0.8 * 0.75 * 0.75);
        near(
            count(Feedback { tie_rule: TieRule::Half, ..some.clone() }, Outcome::Half),
            0.8 * 0.25,
        );
        let coin = Feedback { tie_rule: TieRule::Coin, ..some };
        near(count(coin, Outcome::First), 0.8 * (0.75 * 0.75 + 0.25 * 0.5));
    }

    #[test]
    fn a_stopped_run_keeps_the_checkpoints_it_has_passed() {
        let matrix = PreferenceMatrix::from_pairs(2, |_, _| 0.75).unwrap();
        let tournament =
            Tournament::new("two", matrix, RegretKind::Copeland, Vec::new(), 10).unwrap();
        let watch = Watch::new();
        watch.stop();
        let notes = Arc::new(Mutex::new(Notes::default()));
        let start = |setup: Setup| -> Box<dyn Policy> {
            Box::new(Probe {
                tally: Tally::new(setup.rankers),
                self_duels: 0,
                notes: notes.clone(),
            })
        };
        let run = run(&tournament, start, RunSeeds::new(1, &[0; 32], 0), &[10], &watch);
        assert_eq!((run.steps, run.regrets.len()), (0, 0));
    }
}
