//! `lab calibrate` with preferences that drift, under the conditions of production, and of claims.

use comparators::Spec;
use dueling_bandits::evidence::Target;
use dueling_bandits::preference::PreferenceMatrix;
use lab::simulate::calibration::Trial;
use lab::simulate::{Drift, Entrant, Feedback, Progress};

use super::{json, printed, refused};

/// The columns of the only row that this command prints.
fn row(arguments: &str) -> Vec<(String, String)> {
    let out = printed(arguments);
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 3, "{out}");
    cells(lines[0]).into_iter().zip(cells(lines[2])).collect()
}

fn number(row: &[(String, String)], column: &str) -> u64 {
    let (_, cell) = row.iter().find(|(name, _)| name == column).expect(column);
    cell.parse().unwrap_or_else(|_| panic!("{column}: {cell}"))
}

/// A ranker leads clearly, and then the other one. Verdicts before the change are right. A few come
/// soon after it and still name the ranker that led before: it lacked a win or two, and got them.
#[test]
fn a_verdict_can_name_the_leader_of_the_past() {
    let leads = ["0.5,0.9\n0.1,0.5\n", "0.5,0.1\n0.9,0.5\n"];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [first, then] = leads.map(|lead| {
        let path = folder.path().join(format!("{}.csv", &lead[4..7]));
        std::fs::write(&path, lead).expect("a file");
        path.display().to_string()
    });
    let run = |over: &str| {
        row(&format!(
            "calibrate --preferences {first} --drift {then} --drift-over {over} --policy uniform \
             --runs 300 --horizon 300 --verdicts-only"
        ))
    };
    let late = run("200..200");
    assert_eq!((number(&late, "decided"), number(&late, "wrong")), (300, 0), "before the change");
    let between = run("20..20");
    assert!(number(&between, "wrong") > 0, "{between:?}");
    assert_eq!(number(&between, "never right"), 0, "both rankers led for a time");
}

/// A machine always lets the worse ranker win. If its pages have a unit, one of them counts, and
/// every verdict is right; if not, every verdict is wrong.
#[test]
fn a_machine_that_is_named_does_not_decide() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("worse-first.csv");
    std::fs::write(&path, "0.5,0.4\n0.6,0.5\n").expect("a file");
    for (more, decided, wrong) in [("", 20, 0), ("--unnamed", 20, 20)] {
        let found = json(&format!(
            "calibrate --preferences {} --policy d-ts-verdict --verdicts-only --runs 20 \
             --horizon 6000 --machine 0.3 --answer-window 60 {more}",
            path.display()
        ));
        let best = &found[0]["claims"][0];
        assert_eq!((&best["made"], &best["wrong"]), (&decided.into(), &wrong.into()), "{best}");
        assert_eq!(found[0]["left_out"].as_f64() > Some(0.2), more.is_empty(), "{found}");
    }
}

/// How many of 20 experiments made a claim, and how many of these were wrong.
fn made(found: &serde_json::Value, claim: &str) -> (u64, u64) {
    let claims = found[0]["claims"].as_array().expect("claims");
    let is_it = |it: &&serde_json::Value| it["claim"] == claim;
    let found = claims.iter().find(is_it).unwrap_or_else(|| panic!("{claim}"));
    (found["made"].as_u64().expect("a number"), found["wrong"].as_u64().expect("a number"))
}

/// Two of three rankers beat the control in all but a quarter of the traffic, and fail too often.
#[test]
fn what_is_clear_is_claimed_and_what_is_false_is_not() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("clear.csv");
    std::fs::write(&path, "0.5,0.9,0.9\n0.1,0.5,0.8\n0.1,0.2,0.5\n").expect("a file");
    let found = json(&format!(
        "calibrate --preferences {} --policy d-ts-verdict --verdicts-only --runs 20 \
         --horizon 3000 --margin 0.01 --control 2 --segments 4,0.9 --failures 0.05,0.3",
        path.display()
    ));
    for claim in ["best", "better", "settled", "hurt", "harm"] {
        let (made, wrong) = made(&found, claim);
        // a bound may be too high in 4 % of experiments
        assert!(made == 20 && wrong <= 3, "{claim}: {found}");
    }
    // no event in n: 1 - 0.025^(1/n)
    let of_drift = &found[0]["claims"][8]["wrong_share_at_most"];
    assert!((of_drift.as_f64().unwrap() - (1.0 - 0.025_f64.powf(0.05))).abs() < 1e-9, "{found}");
    for claim in ["unhurt", "safe", "drift"] {
        assert_eq!(made(&found, claim), (0, 0), "{claim}: {found}");
    }
}

/// With delays and a window, the winner meets the control before the experiment ends.
#[test]
fn answers_that_wait_are_claimed_about_too() {
    let found = json(
        "calibrate --preferences cyclic-4 --policy d-ts-verdict --verdicts-only --runs 20 \
         --horizon 9000 --margin 0.01 --control 3 --delay-first 5 --delay-second 10 --answer-window 60",
    );
    assert_eq!((made(&found, "settled").0, made(&found, "worse").1), (20, 0), "{found}");
}

#[test]
fn invalid_claims_are_refused() {
    for (more, why) in [
        ("--control 4", "0 to 3"),
        ("--segments 4,0.5", "--control"),
        ("--control 1 --segments 4", "two numbers"),
        ("--control 1 --segments 17,0.5", "from 1 to 16"),
        ("--control 1 --failures 0,0.5", "from 0.000001"),
        ("--control 1 --segments 4,0.5 --answer-window 60", "--answer-window"),
    ] {
        refused(
            &format!(
                "calibrate --preferences cyclic-4 --policy d-ts-verdict --verdicts-only {more}"
            ),
            why,
        );
    }
}

#[test]
fn invalid_drifts_are_refused() {
    for (more, why) in [
        ("--drift arxiv-6 --verdicts-only", "6 rankers"),
        ("--drift nothing-such --verdicts-only", "--drift nothing-such"),
        ("--drift cyclic-4", "--verdicts-only"),
        ("--drift-over 1..2 --verdicts-only", "--drift"),
        ("--drift cyclic-4 --verdicts-only --drift-over 9..3", "must not be after"),
        ("--drift cyclic-4 --verdicts-only --drift-over 9", "FROM..TO"),
    ] {
        let base = "calibrate --preferences cyclic-4 --policy uniform --horizon 10";
        refused(&format!("{base} {more}"), why);
    }
}

#[test]
fn an_easy_matrix_gets_the_right_verdict_and_regret_estimates() {
    let matrix = PreferenceMatrix::from_pairs(3, |_, _| 0.9).unwrap();
    let trial = Trial {
        name: "easy".into(),
        matrix,
        drift: None,
        entrant: Entrant { text: "uniform".into(), spec: Spec::from_text("uniform").unwrap() },
        horizon: 600,
        looks: vec![100, 600],
        runs: 60,
        seed: 3,
        target: Target { confidence: 0.95, margin: 0.0 },
        feedback: Feedback::default(),
    };
    let progress = Progress::new();
    let found = trial.run(&progress).unwrap();
    assert_eq!(progress.steps(), trial.total_steps());
    assert_eq!((found.runs, found.verdict.decided, found.verdict.wrong), (60, 60, 0));
    // Scores 2, 1, 0 of 2: showing a ranker costs 0, 1/2, 1, so a uniform step costs 1/2.
    let end = &found.regret[1];
    assert!((end.truth - 300.0).abs() < 10.0, "{}", end.truth);
    assert!((end.plug_in - end.truth).abs() < 1e-6, "all pairs are ordered correctly by then");
    assert!(end.coverage > 0.9, "{}", end.coverage);
    assert!((end.condorcet.unwrap()[0] - 600.0 * 0.8 / 3.0).abs() < 10.0);
}

#[test]
fn preferences_move_linearly_or_jump() {
    let matrix = |p| PreferenceMatrix::from_pairs(2, |_, _| p).unwrap();
    let from = matrix(0.9);
    let path = |drift: &Drift| {
        let mut now = from.win_probability(0, 1);
        let steps = 1..=8;
        let at = steps.map(|step| {
            if let Some(changed) = drift.changed(&from, step) {
                now = changed.win_probability(0, 1);
            }
            (now * 100.0).round() as u32
        });
        at.collect::<Vec<_>>()
    };
    let linear = Drift::new(matrix(0.5), 2, 6);
    assert_eq!(path(&linear), [90, 90, 80, 70, 60, 50, 50, 50]);
    let jump = Drift::new(matrix(0.5), 3, 3);
    assert_eq!(path(&jump), [90, 90, 90, 50, 50, 50, 50, 50]);
}
