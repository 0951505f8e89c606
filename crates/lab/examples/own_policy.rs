//! A policy of one's own against a served one, with every run as CSV on standard output:
//!
//!     cargo run --release -p rankduel-lab --example own_policy

use comparators::{Own, Spec};
use dueling_bandits::preference::{PreferenceMatrix, RegretKind};
use dueling_bandits::{Bandit, InFlight, Observation, PolicyRng, Selection, Setup, Tally};
use lab::simulate::{Entrant, Progress, Tournament, curves_csv, report, run_all};
use rand::RngExt as _;

/// With probability ε two rankers at random, otherwise the one that leads, alone.
#[derive(Debug)]
struct EpsilonGreedy {
    tally: Tally,
    epsilon: f64,
}

impl Bandit for EpsilonGreedy {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, _in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let rankers = self.tally.rankers();
        if rng.random_bool(self.epsilon) {
            return Selection::of(rng.random_range(0..rankers), rng.random_range(0..rankers));
        }
        let leader = self.tally.copeland_leader();
        Selection::of(leader, leader)
    }

    fn observe(&mut self, observation: &Observation) {
        self.tally.record(observation.duel, observation.outcome);
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.tally.skip(count);
    }
}

fn start(setup: Setup) -> Box<dyn Bandit> {
    Box::new(EpsilonGreedy { tally: Tally::new(setup.rankers), epsilon: 0.1 })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = Spec::Own(Own { kind: "epsilon-greedy", start });
    let entrants = vec![
        Entrant { text: own.kind().into(), spec: own },
        Entrant { text: "d-ts-plus".into(), spec: Spec::from_text("d-ts-plus")? },
    ];
    let matrix = PreferenceMatrix::load("arxiv-6")?;
    let whole = Tournament::new("arxiv-6", matrix, RegretKind::Copeland, entrants, 20_000)?;
    let reports = run_all(&[Tournament { runs: 10, ..whole }], &Progress::new());
    let reports: Vec<_> = reports.into_iter().flatten().collect();
    for of_matrix in &reports {
        eprintln!("{}", report::table(of_matrix));
    }
    print!("{}", curves_csv::write_runs(&reports));
    Ok(())
}
