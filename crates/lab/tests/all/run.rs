//! One run: delays, losses, servers that share a log, and the outcomes of searchers.

use std::sync::{Arc, Mutex};

use comparators::{RunSeeds, fingerprint};
use dueling_bandits::preference::{PreferenceMatrix, RegretKind};
use dueling_bandits::{
    Bandit, InFlight, Observation, Outcome, PolicyRng, Selection, Setup, Tally, TieRule,
};
use lab::simulate::run::{Run, run};
use lab::simulate::{Delay, Feedback, Progress, Tournament};

/// The calls of a policy, in order.
#[derive(Debug, Default)]
struct Notes {
    /// The number of duels in flight at each call of `select`.
    in_flight: Vec<u64>,
    /// For each outcome: the ticket of its call of `select`, the number of calls of `select`
    /// before the outcome arrived, and the outcome.
    outcomes: Vec<(u64, u64, Outcome)>,
}

/// Always selects the pair (0, 1), or a self-duel at every `self_duels`-th step. The ticket is
/// the number of the call of `select`.
#[derive(Debug)]
struct Probe {
    tally: Tally,
    self_duels: u64,
    notes: Arc<Mutex<Notes>>,
}

impl Bandit for Probe {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
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
}

fn probe(feedback: Feedback, steps: u64, self_duels: u64) -> (Notes, Run) {
    let matrix = PreferenceMatrix::from_pairs(2, |_, _| 0.75).unwrap();
    let mut tournament =
        Tournament::new("two", matrix, RegretKind::Copeland, Vec::new(), steps).unwrap();
    tournament.feedback = feedback;
    tournament.shuffle_rankers = false;
    let notes = Arc::new(Mutex::new(Notes::default()));
    let start = |setup: Setup| -> Box<dyn Bandit> {
        Box::new(Probe { tally: Tally::new(setup.rankers), self_duels, notes: notes.clone() })
    };
    let seeds = RunSeeds::new(1, &fingerprint(&tournament.matrix), 0);
    let run = run(&tournament, start, seeds, &[steps], &Progress::new());
    (Arc::try_unwrap(notes).unwrap().into_inner().unwrap(), run)
}

#[test]
fn without_delay_each_outcome_arrives_before_the_next_duel() {
    let (notes, run) = probe(Feedback::default(), 100, 0);
    assert!(notes.in_flight.iter().all(|&open| open == 0));
    assert!(notes.outcomes.iter().all(|(ticket, selects, _)| ticket == selects));
    assert_eq!((notes.outcomes.len(), run.steps), (100, 100));
    // Ranker 0 is the winner, so each step costs one half.
    assert_eq!(run.regrets, [50.0]);
}

#[test]
fn with_a_fixed_delay_that_many_further_duels_are_selected_first() {
    let (notes, _) = probe(Feedback { delay: Delay::Steps(3), ..Feedback::default() }, 100, 0);
    assert!(notes.outcomes.iter().all(|(ticket, selects, _)| ticket + 3 == *selects));
    assert_eq!(notes.outcomes.len(), 97);
    assert_eq!(notes.in_flight[..6], [0, 1, 2, 3, 3, 3]);
}

#[test]
fn batches_are_delivered_at_multiples_of_their_size_in_order() {
    let (notes, _) = probe(Feedback { batch_steps: 10, ..Feedback::default() }, 25, 0);
    let order: Vec<_> =
        notes.outcomes.iter().map(|(ticket, selects, _)| (*ticket, *selects)).collect();
    let expected: Vec<_> = (1..=10).map(|t| (t, 10)).chain((11..=20).map(|t| (t, 20))).collect();
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
    // The standard deviation of one delay is sqrt(m (m + 1)). The delays cut off at the end are
    // few, and far below the error.
    let error = (mean * (mean + 1.0) / delays.len() as f64).sqrt();
    assert!((found - mean).abs() < 4.0 * error + 0.02, "{found} ± {error}");
    assert!(delays.contains(&0.0));
}

#[test]
fn a_fixed_number_of_duels_is_outstanding_and_answered_in_any_order() {
    let (notes, _) =
        probe(Feedback { delay: Delay::Outstanding(8), ..Feedback::default() }, 1000, 0);
    assert_eq!(notes.in_flight[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(notes.in_flight[8..].iter().all(|&open| open == 7));
    assert_eq!(notes.outcomes.len(), 993);
    assert!(notes.outcomes.windows(2).any(|pair| pair[0].0 > pair[1].0));
    let (one, _) = probe(Feedback { delay: Delay::Outstanding(1), ..Feedback::default() }, 100, 0);
    assert!(one.outcomes.iter().all(|(ticket, selects, _)| ticket == selects));
}

#[test]
fn a_lost_outcome_never_arrives_and_its_duel_expires() {
    let lossy = Feedback { loss: 0.5, delay: Delay::Steps(4), ..Feedback::default() };
    let (notes, _) = probe(lossy, 10_000, 0);
    assert!(notes.in_flight.iter().all(|&open| open <= 4));
    // 9996 fair coins: 4 standard deviations are 200.
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
    // Ranker 1 loses to the other ranker and is shown twice in each step.
    assert_eq!(run.regrets, [100.0]);
}

#[test]
fn a_replica_knows_its_own_duels_and_lags_behind_the_others() {
    // One of four servers receives an outcome. Each of the others folds it ten steps later, or
    // when it appends an entry itself.
    let feedback = Feedback { replicas: 4, lag: 10, ..Feedback::default() };
    let (notes, run) = probe(feedback, 4000, 0);
    assert_eq!(run.regrets, [2000.0]);
    // Each server folds every entry except the last ones.
    assert!(
        (4 * 4000 - 3 * 10..=4 * 4000).contains(&notes.outcomes.len()),
        "{}",
        notes.outcomes.len()
    );
    let behind: Vec<u64> =
        notes.outcomes.iter().map(|(ticket, selects, _)| selects - ticket).collect();
    assert_eq!((behind.iter().min(), behind.iter().max()), (Some(&0), Some(&10)));
    // A duel whose outcome another server received stays in flight at the server that issued
    // it until that server folds the outcome.
    assert!(notes.in_flight.iter().any(|&open| open > 0));
    // An outcome takes at most 10 steps to reach every server.
    assert!(notes.in_flight.iter().all(|&open| open <= 10));
    // Without lag, all servers have the same state.
    let (notes, _) = probe(Feedback { replicas: 4, ..Feedback::default() }, 100, 0);
    assert!(notes.in_flight.iter().all(|&open| open == 0));
    assert!(notes.outcomes.iter().all(|(ticket, selects, _)| ticket == selects));
}

#[test]
fn outcomes_have_their_probabilities() {
    let count = |feedback: Feedback, wanted: Outcome| {
        let (notes, _) = probe(feedback, 20_000, 0);
        notes.outcomes.iter().filter(|(_, _, outcome)| *outcome == wanted).count() as f64 / 20_000.0
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
    near(count(Feedback { tie_rule: TieRule::Half, ..some.clone() }, Outcome::Half), 0.8 * 0.25);
    let coin = Feedback { tie_rule: TieRule::Coin, ..some };
    near(count(coin, Outcome::First), 0.8 * (0.75 * 0.75 + 0.25 * 0.5));
}

#[test]
fn a_stopped_run_keeps_the_checkpoints_it_has_reached() {
    let matrix = PreferenceMatrix::from_pairs(2, |_, _| 0.75).unwrap();
    let tournament = Tournament::new("two", matrix, RegretKind::Copeland, Vec::new(), 10).unwrap();
    let progress = Progress::new();
    progress.stop();
    let notes = Arc::new(Mutex::new(Notes::default()));
    let start = |setup: Setup| -> Box<dyn Bandit> {
        Box::new(Probe { tally: Tally::new(setup.rankers), self_duels: 0, notes: notes.clone() })
    };
    let run = run(&tournament, start, RunSeeds::new(1, &[0; 32], 0), &[10], &progress);
    assert_eq!((run.steps, run.regrets.len()), (0, 0));
}
