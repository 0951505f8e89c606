//! Experiments under the conditions of production: people who come back, machines, answers whose
//! delay or loss depends on who won. The claims come from the service's own code.

use std::collections::BinaryHeap;

use clap::Args;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Normal};

use super::calibration::Trial;
use super::claims::{ClaimsCalibration, Ending, Said, Truth};
use super::progress::Progress;
use crate::values::{between, probability, two};
use comparators::RunSeeds;
use dueling_bandits::claims::control::Goal;
use dueling_bandits::evidence::TimedAnswer;
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, InFlight, Outcome, PolicyRng, PolicySpec, Selection};

/// Pages that one unit asks for at most. It bounds the heavy tail of the activity.
const MOST_PAGES: f64 = 1e4;
/// Units that are there at a time, so that the pages of one are spread out.
const UNITS_AT_ONCE: usize = 1000;
/// Exponent of the Pareto distribution of the activity of units.
const ACTIVITY_EXPONENT: f64 = 1.5;
/// Seconds for which a duel without an answer is in flight: the time to live of the service.
const LIFETIME: f64 = 3600.0;
/// The unit of the machine.
const MACHINE: u64 = u64::MAX;

/// How production differs from independent answers that come at once. In each pair, *first* is the
/// ranker with the lower index in the matrix.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Production {
    /// Pages a second
    #[arg(long, value_name = "PAGES", default_value = "20", value_parser = |text: &str| between(text, 1e-3, 1e6))]
    pub rate: f64,

    /// Units come back: mean pages of a unit, and the standard deviation over units of the
    /// probability that the first ranker wins, such as 10,0.1. Activity is Pareto with exponent 1.5
    #[arg(long, value_name = "PAGES,SD", value_parser = units)]
    pub units: Option<(f64, f64)>,

    /// The caller does not send `unit`
    #[arg(long)]
    pub unnamed: bool,

    /// One machine asks for this share of all pages, and always lets the first ranker win
    #[arg(long, value_name = "SHARE", value_parser = probability)]
    pub machine: Option<f64>,

    /// Mean delay of answers that the first ranker wins, in seconds; delays are exponential
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub delay_first: Option<f64>,

    /// Mean delay of answers that the second ranker wins, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub delay_second: Option<f64>,

    /// Share of the first ranker's wins that never come back
    #[arg(long, value_name = "SHARE", value_parser = probability)]
    pub loss_first: Option<f64>,

    /// The experiment's `answer_window_seconds`; with 0, answers count as they arrive [default: 0]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub answer_window: Option<f64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    between(text, 0.0, 2_592_000.0)
}

fn units(text: &str) -> Result<(f64, f64), String> {
    two(text, |pages| between(pages, 1.0, 1e4), |spread| between(spread, 0.0, 0.5))
}

impl Production {
    /// Whether there is any condition but the rate.
    pub fn is_given(&self) -> bool {
        let Self { machine, delay_first, delay_second, loss_first, answer_window, .. } = *self;
        let numbers = [machine, delay_first, delay_second, loss_first, answer_window];
        self.units.is_some() || numbers.iter().any(Option::is_some)
    }

    /// Seconds within which an answer counts; 0 counts answers as they arrive.
    fn window(&self) -> f64 {
        self.answer_window.unwrap_or(0.0)
    }
}

/// The experiments of a trial under [`Production`], each up to its verdict, and with a control until
/// the winner's claims are settled. The looks, the drift and the feedback of the trial do not
/// matter.
#[derive(Debug, Clone)]
pub struct ProductionTrial {
    /// The experiments.
    pub trial: Trial,
    /// The policy of the trial, which the service serves.
    pub spec: PolicySpec,
    /// The conditions.
    pub production: Production,
    /// Index of the control in the matrix, and the claim that is proven first.
    pub control: Option<(usize, Goal)>,
}

/// An answer on its way, or the end of a duel whose answer is lost. Ordered by its arrival, the
/// earliest as the largest.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Arrival {
    at: f64,
    number: u64,
    selection: Selection,
    /// `None` if the answer is lost.
    outcome: Option<Outcome>,
    issued_at: i64,
    unit: u64,
}

impl Eq for Arrival {}

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.at.total_cmp(&self.at).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl ProductionTrial {
    /// Runs the experiments in the current rayon pool. Returns `None` if it was stopped before the
    /// first experiment had finished.
    pub fn run(&self, progress: &Progress) -> Option<ClaimsCalibration> {
        let endings = self.trial.experiments(progress, |seeds| {
            let ending = self.experiment(seeds);
            progress.advance(self.trial.horizon);
            Some(ending)
        });
        ClaimsCalibration::of(&self.trial, &endings, |said| match said {
            Said::Best | Said::Drift => true,
            Said::Better | Said::Worse | Said::Settled => self.control.is_some(),
            _ => false,
        })
    }

    fn experiment(&self, seeds: RunSeeds) -> Ending {
        let rankers = self.trial.matrix.rankers();
        let policy = self.spec.start(Setup { rankers, seed: seeds.folding });
        let window = (self.production.window() * 1000.0).round() as i64;
        let mut run = Run::new(policy, self.trial.target, window);
        run.look_for_drift();
        if let Some((control, goal)) = self.control {
            run.start_with_control(control, goal);
        }
        let mut served = Served { run, names_units: !self.production.unnamed };
        let truth = Truth { matrix: &self.trial.matrix, name: &|ranker| ranker };
        let last = if self.control.is_some() { Said::Settled } else { Said::Best };
        let mut ending = Ending::default();
        let mut people = People::new(&self.production, &self.trial.matrix, seeds);
        let mut selecting = PolicyRng::seed_from_u64(seeds.selecting);
        let (mut in_flight, mut arrivals) = (InFlight::new(), BinaryHeap::new());
        let (mut now, mut completed_at) = (0.0, 0.0);
        let mut pages = 0;
        loop {
            ending.look(pages, &served.run, &truth);
            if ending.has(last) || pages == self.trial.horizon && arrivals.is_empty() {
                break;
            }
            // after the last page, time goes on until all answers have arrived
            let next_page = match pages < self.trial.horizon {
                true => now + people.pause(),
                false => f64::INFINITY,
            };
            while let Some(arrival) = arrivals.peek().filter(|next: &&Arrival| next.at <= next_page)
            {
                let arrival = *arrival;
                arrivals.pop();
                now = arrival.at;
                served.complete(now, &mut completed_at);
                let duel = arrival.selection.duel;
                in_flight.remove(duel.first, duel.second, 1);
                served.observe(&arrival);
            }
            if pages < self.trial.horizon {
                now = next_page;
                served.complete(now, &mut completed_at);
                let selection = served.run.select(&in_flight, &mut selecting);
                if selection.duel.is_self() {
                    served.run.observe_self_duels(selection.duel.first, 1);
                } else {
                    in_flight.add(selection.duel.first, selection.duel.second, 1);
                    arrivals.push(people.answer(selection, now, pages));
                }
                pages += 1;
            } else {
                // all windows have ended, those of the widest cohort too
                served.complete(now + self.production.window() + 60.0, &mut completed_at);
            }
        }
        let left_out = served.run.cohorts().left_out().total() as f64;
        let counted = served.run.verdict().comparisons() as f64;
        let answers = left_out + counted;
        ending.left_out = if answers > 0.0 { left_out / answers } else { 0.0 };
        ending
    }
}

/// The part of an experiment that the service has.
struct Served {
    run: Run,
    names_units: bool,
}

impl Served {
    /// As the service folds an answer.
    fn observe(&mut self, arrival: &Arrival) {
        let Some(outcome) = arrival.outcome else { return };
        let Selection { duel, batch, ticket } = arrival.selection;
        let answer = TimedAnswer {
            duel,
            outcome,
            score: None,
            issued_at: arrival.issued_at,
            nonce: arrival.number.into(),
            unit: self.names_units.then_some(arrival.unit),
            segment: 0,
        };
        self.run.observe_timed(&answer, batch, ticket, arrival.issued_at);
        self.run.catch_up();
    }

    /// As the service completes cohorts, which it does at the end of each one.
    fn complete(&mut self, now: f64, completed_at: &mut f64) {
        let cohorts = self.run.cohorts();
        let width = cohorts.width_ms() as f64 / 1000.0;
        if cohorts.window_ms() == 0 || now < *completed_at + width {
            return;
        }
        *completed_at = now;
        let (now, window) = ((now * 1000.0) as i64, cohorts.window_ms());
        self.run.complete(now - window, now);
    }
}

/// The units that ask for pages and answer.
struct People<'a> {
    production: &'a Production,
    matrix: &'a PreferenceMatrix,
    /// The units that come back.
    returning: Vec<Unit>,
    /// How many units there have been.
    units: u64,
    rng: PolicyRng,
}

/// A unit that comes back.
struct Unit {
    number: u64,
    /// How much more often the first ranker of every pair wins with it.
    leaning: f64,
    /// Pages that it still asks for, at least 1.
    pages: u64,
}

impl<'a> People<'a> {
    fn new(production: &'a Production, matrix: &'a PreferenceMatrix, seeds: RunSeeds) -> Self {
        let rng = PolicyRng::seed_from_u64(seeds.folding ^ 0x7065_6f70_6c65);
        Self { production, matrix, returning: Vec::new(), units: 0, rng }
    }

    /// Seconds to the next page.
    fn pause(&mut self) -> f64 {
        let wait: f64 = Exp1.sample(&mut self.rng);
        wait / self.production.rate
    }

    /// The number of the unit of the next page, and how much more often the first ranker wins with
    /// it.
    fn next_unit(&mut self) -> (u64, f64) {
        let Some((mean, spread)) = self.production.units else {
            self.units += 1;
            return (self.units, 0.0);
        };
        if self.returning.len() < UNITS_AT_ONCE {
            self.units += 1;
            let uniform: f64 = 1.0 - self.rng.random::<f64>();
            let least = mean * (ACTIVITY_EXPONENT - 1.0) / ACTIVITY_EXPONENT;
            let pages = least * uniform.powf(-1.0 / ACTIVITY_EXPONENT);
            let pages = pages.clamp(1.0, MOST_PAGES).round() as u64;
            let leaning = Normal::new(0.0, spread).map_or(0.0, |of| of.sample(&mut self.rng));
            self.returning.push(Unit { number: self.units, leaning, pages });
        }
        let at = self.rng.random_range(0..self.returning.len());
        let unit = &mut self.returning[at];
        let found = (unit.number, unit.leaning);
        unit.pages -= 1;
        if unit.pages == 0 {
            self.returning.swap_remove(at);
        }
        found
    }

    /// The answer to a duel that is shown now.
    fn answer(&mut self, selection: Selection, now: f64, number: u64) -> Arrival {
        let duel = selection.duel;
        let lower_is_first = duel.first < duel.second;
        let (low, high) = (duel.first.min(duel.second), duel.first.max(duel.second));
        let is_machine = self.happens(self.production.machine.unwrap_or(0.0));
        let (unit, lower_wins) = if is_machine {
            (MACHINE, true)
        } else {
            let (unit, leaning) = self.next_unit();
            let win = (self.matrix.win_probability(low, high) + leaning).clamp(0.0, 1.0);
            (unit, self.happens(win))
        };
        let issued_at = (now * 1000.0) as i64;
        if lower_wins && self.happens(self.production.loss_first.unwrap_or(0.0)) {
            let at = now + LIFETIME;
            return Arrival { at, number, selection, outcome: None, issued_at, unit };
        }
        let Production { delay_first, delay_second, .. } = self.production;
        let mean = if lower_wins { delay_first } else { delay_second }.unwrap_or(0.0);
        let delay: f64 = Exp1.sample(&mut self.rng);
        let outcome = match lower_wins == lower_is_first {
            true => Outcome::First,
            false => Outcome::Second,
        };
        let (at, outcome) = (now + mean * delay, Some(outcome));
        Arrival { at, number, selection, outcome, issued_at, unit }
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.random::<f64>() < probability
    }
}
