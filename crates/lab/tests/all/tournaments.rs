//! Tournaments: their runs, stops, checkpoints and reports.

use comparators::Spec;
use dueling_bandits::preference::{PreferenceMatrix, RegretKind};
use lab::simulate::run::Run;
use lab::simulate::run_all::checkpoints;
use lab::simulate::{Drawn, Entrant, Point, Progress, Report, Tournament, run_all};

fn uniform(text: &str) -> Entrant {
    Entrant { text: text.into(), spec: Spec::from_text("uniform").unwrap() }
}

fn tournament(runs: u64) -> Tournament {
    let matrix = PreferenceMatrix::named("arxiv-6").unwrap().unwrap();
    let entrants = vec![uniform("a"), uniform("b")];
    let whole = Tournament::new("arxiv-6", matrix, RegretKind::Copeland, entrants, 100).unwrap();
    Tournament { runs, ..whole }
}

#[test]
fn weak_regret_counts_the_better_ranker_of_each_pair() {
    let of = |kind: RegretKind| {
        let matrix = PreferenceMatrix::named("arxiv-6").unwrap().unwrap();
        let whole = Tournament::new("arxiv-6", matrix, kind, vec![uniform("a")], 10_000).unwrap();
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
    let report = Report::of(&tournament(2), &[50, 100], &runs).unwrap();
    assert_eq!((report.horizon, report.runs), (100, 2));
    let last = report.policies[0].checkpoints[1];
    assert_eq!((last.step, last.mean), (100, 12.0));
    // The deviations are -2 and 2: the variance is 8/1, the standard error is √8/√2.
    assert!((last.standard_deviation.unwrap() - 8.0_f64.sqrt()).abs() < 1e-12);
    assert!((last.standard_error.unwrap() - 2.0).abs() < 1e-12);
    assert_eq!(report.policies[1].checkpoints[1].standard_error, Some(0.0));
    assert_eq!(report.policies[0].microseconds_per_step, 2.5);
    let runs = vec![vec![finished(&[1.0])], vec![finished(&[2.0])]];
    let of_one = Report::of(&tournament(1), &[100], &runs).unwrap();
    assert_eq!(of_one.policies[0].checkpoints[0].standard_error, None);
}

#[test]
fn a_stop_keeps_the_runs_that_all_policies_have_finished() {
    let runs = vec![
        vec![finished(&[1.0, 2.0]), finished(&[1.0, 2.0]), finished(&[1.0])],
        vec![finished(&[1.0, 2.0]), finished(&[1.0, 2.0])],
    ];
    let report = Report::of(&tournament(9), &[50, 100], &runs).unwrap();
    assert_eq!((report.horizon, report.runs), (100, 2));
}

#[test]
fn a_stop_within_the_first_run_keeps_the_steps_that_all_policies_have_done() {
    let runs = vec![vec![finished(&[1.0, 2.0])], vec![finished(&[3.0])]];
    let stopped = Report::of(&tournament(9), &[50, 100], &runs).unwrap();
    assert_eq!((stopped.horizon, stopped.runs), (50, 1));
    assert_eq!(stopped.policies[0].checkpoints.len(), 1);
    assert_eq!(Report::of(&tournament(9), &[50, 100], &[vec![finished(&[1.0])], vec![]]), None);
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

#[test]
fn quantiles_of_student_are_those_of_the_tables() {
    for (freedom, quantile) in
        [(1, 12.7062), (3, 3.182446), (9, 2.262157), (99, 1.984217), (499, 1.964729)]
    {
        let point = Point::of(7, (0..freedom + 1).map(f64::from));
        let found = point.half_interval.unwrap() / point.standard_error.unwrap();
        assert!((found - quantile).abs() < 1e-4, "{freedom}: {found}");
    }
}

#[test]
fn a_bad_run_shows_in_the_median() {
    let of = |regrets: &[f64]| Point::of(7, regrets.iter().copied());
    let bad = of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 955.0]);
    assert_eq!((bad.mean, bad.median), (100.0, 5.5));
    assert_eq!(of(&[1.0, 2.0, 4.0]).median, 2.0);
    assert_eq!(of(&[1.0]).half_interval, None);
}

#[test]
fn the_spread_has_an_interval_too() {
    let of = |regrets: &[f64]| Point::of(7, regrets.iter().copied());
    assert_eq!(of(&[1.0, 3.0]).deviation_half_interval, None);
    // Without one of 1, 2, 3, 4 the deviations are 1, 1.527525, 1.527525, 1; the jackknife of
    // these is 0.456850, and the quantile with 3 degrees of freedom 3.182446.
    let half = of(&[4.0, 1.0, 3.0, 2.0]).deviation_half_interval.expect("four runs");
    assert!((half - 3.182446 * 0.456850).abs() < 1e-4, "{half}");
}

#[test]
fn every_run_draws_its_own_gap() {
    let matrix = PreferenceMatrix::named("hard:8:1").unwrap().unwrap();
    let plain = Tournament::new("t", matrix, RegretKind::Condorcet, Vec::new(), 10).unwrap();
    let drawn = Tournament { drawn: Some(Drawn::OneWinner), ..plain.clone() };
    assert_eq!(plain.of_run(3).matrix, plain.matrix);
    let gaps: Vec<f64> = (0..400)
        .map(|run| {
            let of_run = drawn.of_run(run);
            let winner = of_run.matrix.condorcet_winner().expect("one ranker beats all");
            let other = (winner + 1) % 8;
            let gap = of_run.matrix.margin(winner, other);
            assert_eq!(of_run.regret.of_step(other, other), gap);
            gap
        })
        .collect();
    assert!(gaps.iter().all(|gap| (0.0..0.5).contains(gap)));
    // uniform on (0, 1/2): mean 1/4, standard error 0.0072
    let mean = gaps.iter().sum::<f64>() / 400.0;
    assert!((mean - 0.25).abs() < 0.03, "{mean}");
    assert_eq!(drawn.of_run(5).matrix, drawn.of_run(5).matrix);
}
