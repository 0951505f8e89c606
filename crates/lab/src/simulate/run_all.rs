//! Many runs of many policies on all cores. The results do not depend on the number of cores.

use rayon::iter::{ParallelBridge, ParallelIterator};

use super::progress::Progress;
use super::report::Report;
use super::run::{Run, run};
use super::tournament::Tournament;
use comparators::{RunSeeds, fingerprint};

/// Runs every tournament in the current rayon pool. Returns one report for each tournament, in the
/// same order; `None` if the tournament was stopped before its first checkpoint.
///
/// Runs start in the order of their numbers, over all policies and matrices, so that all policies
/// have about the same number of runs after a stop. A stopped tournament reports the runs `0..n`
/// that every policy has finished, and no later run: otherwise fast runs would be more likely to
/// count. If no run has finished, it reports the longest horizon that the first run of every policy
/// has reached.
pub fn run_all(tournaments: &[Tournament], progress: &Progress) -> Vec<Option<Report>> {
    let checkpoints: Vec<Vec<u64>> = tournaments.iter().map(|t| checkpoints(t.horizon)).collect();
    let fingerprints: Vec<_> = tournaments.iter().map(|t| fingerprint(&t.matrix)).collect();
    let most_runs = tournaments.iter().map(|t| t.runs).max().unwrap_or(0);
    let jobs = (0..most_runs).flat_map(|number| {
        tournaments.iter().enumerate().filter(move |(_, t)| number < t.runs).flat_map(
            move |(index, tournament)| {
                (0..tournament.entrants.len()).map(move |entrant| (index, entrant, number))
            },
        )
    });
    let mut done: Vec<((usize, usize, u64), Run)> = jobs
        .par_bridge()
        .filter(|_| !progress.is_stopped())
        .map(|job| {
            let (index, entrant, number) = job;
            let tournament = tournaments[index].of_run(number);
            let policy = &tournament.entrants[entrant].spec;
            let seeds = RunSeeds::new(tournament.seed, &fingerprints[index], number);
            (
                job,
                run(&tournament, |setup| policy.start(setup), seeds, &checkpoints[index], progress),
            )
        })
        .collect();
    // Runs finish in any order; sort them so that the results do not depend on it.
    done.sort_by_key(|(job, _)| *job);

    let mut results: Vec<Vec<Vec<Run>>> =
        tournaments.iter().map(|t| vec![Vec::new(); t.entrants.len()]).collect();
    for ((index, entrant, number), run) in done {
        let runs = &mut results[index][entrant];
        if runs.len() as u64 == number {
            runs.push(run);
        }
    }
    tournaments
        .iter()
        .zip(&checkpoints)
        .zip(results)
        .map(|((tournament, checkpoints), runs)| Report::of(tournament, checkpoints, &runs))
        .collect()
}

/// The steps at which regret is recorded: ten per decade, evenly spaced on a logarithmic scale,
/// including the powers of ten. The last one is the horizon.
pub fn checkpoints(horizon: u64) -> Vec<u64> {
    const TEN_A_DECADE: [u64; 10] = [100, 126, 158, 200, 251, 316, 398, 501, 631, 794];
    let mut steps = Vec::new();
    let mut decade: u64 = 1;
    while decade <= horizon {
        for hundredths in TEN_A_DECADE {
            let step = (u128::from(decade) * u128::from(hundredths) + 50) / 100;
            match u64::try_from(step) {
                Ok(step) if step <= horizon && steps.last() != Some(&step) => steps.push(step),
                _ => {}
            }
        }
        match decade.checked_mul(10) {
            Some(next) => decade = next,
            None => break,
        }
    }
    if steps.last() != Some(&horizon) {
        steps.push(horizon);
    }
    steps
}
