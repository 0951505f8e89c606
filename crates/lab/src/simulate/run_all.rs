//! Many runs of many policies on all cores. The results do not depend on the number of cores.

use rayon::iter::{ParallelBridge, ParallelIterator};

use super::progress::Progress;
use super::report::{Curve, Point, Report};
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
        .map(|((tournament, checkpoints), runs)| report(tournament, checkpoints, &runs))
        .collect()
}

fn report(tournament: &Tournament, checkpoints: &[u64], runs: &[Vec<Run>]) -> Option<Report> {
    let first_reached = |runs: &Vec<Run>| runs.first().map_or(0, |run| run.regrets.len());
    let depth = runs.iter().map(first_reached).min()?;
    let &horizon = checkpoints[..depth].last()?;
    let reached =
        |runs: &Vec<Run>| runs.iter().take_while(|run| run.regrets.len() >= depth).count();
    let count = runs.iter().map(reached).min()?;
    let curves = tournament
        .entrants
        .iter()
        .zip(runs)
        .map(|(entrant, runs)| Curve {
            policy: entrant.text.clone(),
            checkpoints: (0..depth)
                .map(|at| {
                    Point::of(checkpoints[at], runs[..count].iter().map(|run| run.regrets[at]))
                })
                .collect(),
            microseconds_per_step: {
                let time: f64 = runs[..count].iter().map(|run| run.time.as_secs_f64()).sum();
                let steps: u64 = runs[..count].iter().map(|run| run.steps).sum();
                time * 1e6 / steps as f64
            },
            runs: runs[..count].iter().map(|run| run.regrets[..depth].to_vec()).collect(),
        })
        .collect();
    Some(Report {
        matrix: tournament.name.clone(),
        horizon,
        runs: count as u64,
        regret: tournament.regret_kind,
        policies: curves,
    })
}

/// The steps at which regret is recorded: ten per decade, evenly spaced on a logarithmic scale,
/// including the powers of ten. The last one is the horizon.
fn checkpoints(horizon: u64) -> Vec<u64> {
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

#[cfg(test)]
mod tests {
    use super::super::tournament::Entrant;
    use super::*;
    use comparators::Spec;
    use dueling_bandits::preference::{PreferenceMatrix, RegretKind};

    fn uniform(text: &str) -> Entrant {
        Entrant { text: text.into(), spec: Spec::from_text("uniform").unwrap() }
    }

    fn tournament(runs: u64) -> Tournament {
        let matrix = PreferenceMatrix::named("arxiv-6").unwrap().unwrap();
        let entrants = vec![uniform("a"), uniform("b")];
        let whole =
            Tournament::new("arxiv-6", matrix, RegretKind::Copeland, entrants, 100).unwrap();
        Tournament { runs, ..whole }
    }

    #[test]
    fn weak_regret_counts_the_better_ranker_of_each_pair() {
        let of = |kind: RegretKind| {
            let matrix = PreferenceMatrix::named("arxiv-6").unwrap().unwrap();
            let whole =
                Tournament::new("arxiv-6", matrix, kind, vec![uniform("a")], 10_000).unwrap();
            let reports = run_all(&[Tournament { runs: 4, ..whole }], &Progress::new());
            reports[0].as_ref().unwrap().policies[0].checkpoints.last().unwrap().mean
        };
        // Both rankers are drawn independently, with losses 0, 0.05, 0.05, 0.04, 0.11 and 0.11. The
        // smaller losses of the 15 pairs add up to 0.52 and those of the self-duels to 0.36.
        assert!((of(RegretKind::Weak) / 1e4 - (2.0 * 0.52 + 0.36) / 36.0).abs() < 0.001);
        assert!((of(RegretKind::Condorcet) / 1e4 - 0.36 / 6.0).abs() < 0.001);
    }

    fn finished(regrets: &[f64]) -> Run {
        Run { regrets: regrets.to_vec(), steps: 100, time: std::time::Duration::from_micros(250) }
    }

    #[test]
    fn checkpoints_ascend_include_the_powers_of_ten_and_end_at_the_horizon() {
        assert_eq!(checkpoints(1), [1]);
        assert_eq!(checkpoints(12), [1, 2, 3, 4, 5, 6, 8, 10, 12]);
        for horizon in [7, 10, 99, 100, 12_345, 1_000_000, 999_999_999_999, u64::MAX] {
            let steps = checkpoints(horizon);
            assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{horizon}");
            assert_eq!(steps.last(), Some(&horizon));
            let mut power: u64 = 1;
            while power <= horizon {
                assert!(steps.contains(&power), "{power} of {horizon}");
                let Some(next) = power.checked_mul(10) else { break };
                power = next;
            }
        }
    }

    #[test]
    fn a_report_has_mean_and_spread_of_its_runs() {
        let runs = vec![
            vec![finished(&[1.0, 10.0]), finished(&[3.0, 14.0])],
            vec![finished(&[2.0, 9.0]), finished(&[2.0, 9.0])],
        ];
        let report = report(&tournament(2), &[50, 100], &runs).unwrap();
        assert_eq!((report.horizon, report.runs), (100, 2));
        let last = report.policies[0].checkpoints[1];
        assert_eq!((last.step, last.mean), (100, 12.0));
        // The deviations are -2 and 2: the variance is 8/1, the standard error is √8/√2.
        assert!((last.standard_deviation.unwrap() - 8.0_f64.sqrt()).abs() < 1e-12);
        assert!((last.standard_error.unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(report.policies[1].checkpoints[1].standard_error, Some(0.0));
        assert_eq!(report.policies[0].microseconds_per_step, 2.5);
    }

    #[test]
    fn one_run_has_no_spread() {
        let runs = vec![vec![finished(&[1.0])], vec![finished(&[2.0])]];
        let report = report(&tournament(1), &[100], &runs).unwrap();
        assert_eq!(report.policies[0].checkpoints[0].standard_error, None);
    }

    #[test]
    fn a_stop_keeps_the_runs_that_all_policies_have_finished() {
        let runs = vec![
            vec![finished(&[1.0, 2.0]), finished(&[1.0, 2.0]), finished(&[1.0])],
            vec![finished(&[1.0, 2.0]), finished(&[1.0, 2.0])],
        ];
        let report = report(&tournament(9), &[50, 100], &runs).unwrap();
        assert_eq!((report.horizon, report.runs), (100, 2));
    }

    #[test]
    fn a_stop_within_the_first_run_keeps_the_steps_that_all_policies_have_done() {
        let runs = vec![vec![finished(&[1.0, 2.0])], vec![finished(&[3.0])]];
        let stopped = report(&tournament(9), &[50, 100], &runs).unwrap();
        assert_eq!((stopped.horizon, stopped.runs), (50, 1));
        assert_eq!(stopped.policies[0].checkpoints.len(), 1);
        assert_eq!(report(&tournament(9), &[50, 100], &[vec![finished(&[1.0])], vec![]]), None);
    }

    #[test]
    fn a_run_does_not_depend_on_other_runs() {
        let progress = Progress::new();
        let both = [tournament(3), Tournament { runs: 5, seed: 9, ..tournament(1) }];
        let together = run_all(&both, &progress);
        let alone = run_all(&both[1..], &progress);
        let points = |report: &Option<Report>| {
            let report = report.as_ref().unwrap();
            (report.runs, report.policies.iter().map(|c| c.checkpoints.clone()).collect::<Vec<_>>())
        };
        assert_eq!(points(&together[1]), points(&alone[0]));
        assert_ne!(points(&together[0]), points(&together[1]));
        // Equal policies meet the same searchers.
        let curves = &points(&alone[0]).1;
        assert_eq!(curves[0], curves[1]);
        assert_eq!(progress.steps(), both[0].total_steps() + 2 * both[1].total_steps());
    }
}
