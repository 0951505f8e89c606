//! `lab simulate`: its output, its refusals, and the correctness of its numbers.

use std::process::Command;

use serde_json::Value;

use super::{json, printed, refused};

fn last(report: &Value, policy: usize) -> (f64, f64) {
    let point = report["policies"][policy]["checkpoints"].as_array().unwrap().last().unwrap();
    assert_eq!(point["step"], report["horizon"]);
    (point["mean"].as_f64().unwrap(), point["standard_error"].as_f64().unwrap())
}

fn without_times(arguments: &str) -> Value {
    let mut report = json(arguments);
    for policy in report["policies"].as_array_mut().unwrap() {
        let time = policy.as_object_mut().unwrap().remove("microseconds_per_step").unwrap();
        assert!(time.as_f64().unwrap() > 0.0);
    }
    report
}

#[test]
fn the_report_has_its_documented_shape() {
    let report = json("simulate --policy uniform --preferences arxiv-6 --horizon 2_500 --runs 3");
    assert_eq!(report["matrix"], "arxiv-6");
    assert_eq!((&report["horizon"], &report["runs"]), (&2500.into(), &3.into()));
    assert_eq!(report["regret"], "copeland");
    assert_eq!(report["policies"][0]["policy"], "uniform");
    let points = report["policies"][0]["checkpoints"].as_array().unwrap();
    let steps: Vec<u64> = points.iter().map(|point| point["step"].as_u64().unwrap()).collect();
    for step in [1, 10, 100, 1000, 2500] {
        assert!(steps.contains(&step), "{step} in {steps:?}");
    }
    let means: Vec<f64> = points.iter().map(|point| point["mean"].as_f64().unwrap()).collect();
    assert!(means.windows(2).all(|pair| pair[0] <= pair[1]));
    for point in points {
        let (error, deviation) = (&point["standard_error"], &point["standard_deviation"]);
        let ratio = deviation.as_f64().unwrap() / 3.0_f64.sqrt() - error.as_f64().unwrap();
        assert!(ratio.abs() < 1e-9);
    }
}

#[test]
fn a_seed_gives_the_same_numbers_on_any_number_of_threads() {
    let run = |threads: u32, seed: u32| {
        without_times(&format!(
            "simulate --preferences arxiv-6 --horizon 3000 --runs 7 --policy uniform --policy d-ts \
             --policy d-ts-plus --policy ccb --policy scb --policy scomp2 --ties 0.1 \
             --delay geometric:5 --threads {threads} --seed {seed}"
        ))
    };
    let one = run(1, 3);
    assert_eq!(one, run(2, 3));
    assert_ne!(one, run(1, 4));
}

/// Regret of `policy` on six rankers after 2000 steps, with its standard error, over 30 runs.
fn after_2000(policy: &str, more: &str) -> (f64, f64) {
    let common = "simulate --preferences arxiv-6 --horizon 2000 --runs 30";
    last(&json(&format!("{common} --policy {policy} {more}")), 0)
}

#[test]
fn without_useful_feedback_policies_cost_as_much_as_uniform_pairs() {
    // By symmetry, shuffled rankers that cannot be told apart appear equally often: 16/30 a step.
    let expected = 2000.0 * 16.0 / 30.0;
    for more in [
        "--loss 1",
        "--no-click 1",
        "--ties 1",
        "--ties 1 --tie-rule half",
        "--ties 1 --tie-rule coin",
        "--delay 2000",
        "--in-flight 2001",
        "--feedback-batch 2001",
    ] {
        let (mean, error) = after_2000("d-ts", more);
        assert!(error > 0.0 && (mean - expected).abs() < 4.0 * error, "{more}: {mean} ± {error}");
    }
    let (mean, error) = after_2000("d-ts", "");
    assert!(mean < expected / 1.5 && mean + 10.0 * error < expected, "{mean} ± {error}");
}

#[test]
fn neutral_settings_change_nothing() {
    let reference = after_2000("d-ts", "");
    for more in ["--delay 0", "--in-flight 1", "--feedback-batch 1", "--tie-rule coin"] {
        assert_eq!(reference, after_2000("d-ts", more), "{more}");
    }
}

#[test]
fn horizon_and_alpha_reach_the_policies_that_accept_them() {
    assert_eq!(after_2000("pcomp", ""), after_2000("pcomp:horizon=2000", ""));
    assert_ne!(after_2000("pcomp", ""), after_2000("pcomp:horizon=100000", ""));
    assert_eq!(after_2000("d-ts", "--alpha 3"), after_2000("d-ts:alpha=3", ""));
    assert_ne!(after_2000("d-ts", "--alpha 3"), after_2000("d-ts", ""));
    assert_eq!(after_2000("d-ts:alpha=0.6", "--alpha 3"), after_2000("d-ts:alpha=0.6", ""));
    refused(
        "simulate --policy d-ts --alpha 0 --preferences arxiv-6",
        "--policy d-ts on `arxiv-6` (6 rankers): `alpha` is 0",
    );
}

#[test]
fn the_cost_of_uniform_pairs_matches_its_closed_form() {
    // arxiv-6: scores are 5 4 3 1 1 0 of 5, so a uniform step loses 1 - 14/30. The winner's margins
    // are 0 .05 .05 .04 .11 .11, so it loses 0.36/6.
    for (regret, a_step) in [("copeland", 16.0 / 30.0), ("condorcet", 0.06)] {
        let report = json(&format!(
            "simulate --policy uniform --preferences arxiv-6 --horizon 1e4 --runs 100 \
             --regret {regret}"
        ));
        assert_eq!(report["regret"], regret);
        let (mean, error) = last(&report, 0);
        let expected = a_step * 1e4;
        assert!(
            error > 0.0 && (mean - expected).abs() < 4.0 * error,
            "{mean} ± {error}, not {expected}"
        );
    }
}

#[test]
fn the_uniform_policy_ignores_feedback() {
    let run = |more: &str| {
        without_times(&format!(
            "simulate --policy uniform --preferences arxiv-6 --horizon 1000 --runs 5 {more}"
        ))
    };
    let reference = run("");
    for more in [
        "--loss 1",
        "--ties 0.5 --tie-rule coin",
        "--no-click 0.9",
        "--delay 100",
        "--delay geometric:30",
        "--in-flight 64",
        "--feedback-batch 250",
    ] {
        assert_eq!(reference, run(more), "{more}");
    }
}

#[test]
fn the_table_is_labelled() {
    let table = printed("simulate --policy uniform --preferences arxiv-6 --horizon 1e3");
    for expected in
        ["arxiv-6", "Copeland regret", "20 runs", "t = 100", "t = 1000", "uniform", "µs/step"]
    {
        assert!(table.contains(expected), "{expected} in:\n{table}");
    }
}

#[test]
fn a_folder_of_results_has_curves_and_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("new/it's");
    let arguments = format!(
        "simulate --policy uniform --preferences arxiv-6 --preferences btl:5:1 --horizon 1000 \
         --runs 3 --out {}",
        folder.display()
    );
    let reports = json(&arguments);
    let curves = std::fs::read_to_string(folder.join("curves.csv")).unwrap();
    let mut rows = curves.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    assert_eq!(head[..3], ["matrix", "runs", "policy"]);
    for report in reports.as_array().unwrap() {
        for point in report["policies"][0]["checkpoints"].as_array().unwrap() {
            let row = rows.next().unwrap();
            assert_eq!(row[..3], [report["matrix"].as_str().unwrap(), "3", "uniform"]);
            for (name, text) in head[3..].iter().zip(&row[3..]) {
                // seven digits are written
                let (written, reported) = (text.parse::<f64>().unwrap(), &point[*name]);
                let reported = reported.as_f64().unwrap();
                let near = (written - reported).abs() <= 1e-6 * reported;
                assert!(near, "{name}: {written}, {reported}");
            }
        }
    }
    assert_eq!(rows.next(), None);
    // every run, whose mean is that of the curve
    let runs = std::fs::read_to_string(folder.join("runs.csv")).unwrap();
    let ends: Vec<f64> = (0..3)
        .map(|run| {
            let start = format!("btl:5:1,uniform,{run},1000,");
            let end = runs.lines().find_map(|line| line.strip_prefix(start.as_str()));
            end.expect("the end of each run").parse().unwrap()
        })
        .collect();
    let last = reports[1]["policies"][0]["checkpoints"].as_array().unwrap().last().unwrap();
    let mean = ends.iter().sum::<f64>() / 3.0;
    assert!((mean - last["mean"].as_f64().unwrap()).abs() < 1e-3 * mean, "{ends:?}");
    let command = std::fs::read_to_string(folder.join("command.txt")).unwrap();
    let quoted = format!("'{}'", folder.display().to_string().replace('\'', r"'\''"));
    let words = arguments.replace(&folder.display().to_string(), &quoted);
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(command.lines().nth(1), Some(&*format!("lab {words} --format json")));
}

#[test]
fn a_malformed_matrix_is_refused_with_its_name_and_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("word.csv").display().to_string();
    std::fs::write(&path, "0.5,half\n0.4,0.5\n").unwrap();
    let with = |path: &str| format!("simulate --policy uniform --preferences {path}");
    refused(&with(&path), "row 1, column 2 (line 1) is `half`");
    refused(&with(&path), &path);
    refused(&with("absent.csv"), "cannot open");
    refused(&with("btl:1:1"), "`1` is not a number of rankers");
}

#[test]
fn invalid_arguments_are_refused() {
    refused("simulate --policy uniform", "--preferences");
    refused("simulate --preferences arxiv-6", "--policy");
    refused(
        "simulate --policy uniform --preferences cycle:5:1 --regret condorcet",
        "cycle:5:1: it has no Condorcet winner",
    );
    for (policy, expected) in [
        ("no-such", "there is no policy `no-such`"),
        ("uniform:alpha=1", "has no parameter `alpha`"),
    ] {
        refused(&format!("simulate --preferences arxiv-6 --policy {policy}"), expected);
    }
    for (more, expected) in [
        ("--horizon 0", "whole number from 1"),
        ("--horizon 1.5", "whole number from 1"),
        ("--runs 0", "whole number from 1"),
        ("--threads 0", "--threads"),
        ("--ties 1.1", "probability from 0 to 1"),
        ("--loss NaN", "probability from 0 to 1"),
        ("--delay geometric:-1", "the mean `-1`"),
        ("--in-flight 0", "whole number from 1"),
        ("--in-flight 5 --delay 5", "cannot be used with"),
        ("--regret random-walk", "copeland"),
        ("--tie-rule win", "half"),
    ] {
        refused(&format!("simulate --policy uniform --preferences arxiv-6 {more}"), expected);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_reports_the_completed_runs() {
    use std::fs::read_to_string;
    use std::process::Stdio;

    let child = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["simulate", "--policy", "uniform", "--preferences", "arxiv-6", "--format", "json"])
        .args(["--horizon", "1e12", "--runs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    // Wait until it handles SIGINT (the second bit of the mask of caught signals) and has worked
    // for 50 ms.
    loop {
        let status = read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        let handled = u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0;
        let stat = read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // After the name in parentheses, user time is the twelfth field, in hundredths of a second.
        let ticks: u64 =
            stat.rsplit(')').next().unwrap().split_whitespace().nth(11).unwrap().parse().unwrap();
        if handled && ticks >= 5 {
            break;
        }
        std::thread::yield_now();
    }
    assert!(
        Command::new("sh").args(["-c", &format!("kill -INT {pid}")]).status().unwrap().success()
    );
    let output = child.wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    assert!(messages.contains("interrupted: `arxiv-6` has 1 of 1 runs of"), "{messages}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let horizon = report["horizon"].as_u64().unwrap();
    assert!((1..1_000_000_000_000).contains(&horizon));
    let points = report["policies"][0]["checkpoints"].as_array().unwrap();
    assert_eq!(points.last().unwrap()["step"], horizon);
    assert_eq!(points[0]["standard_error"], Value::Null);
}

#[test]
fn the_python_module_has_the_same_numbers() {
    let mut found = String::new();
    // each option as the module names it, with `=` before its value
    for options in [
        "regret=copeland",
        "regret=weak",
        "regret=copeland,delay=geometric:20,no_click=0.1,ties=0.2,tie_rule=half",
        "regret=weak,delay=7,ties=0.3,tie_rule=coin",
    ] {
        let arguments = format!("--{}", options.replace(',', " --").replace('_', "-"));
        let report = json(&format!(
            "simulate --preferences cyclic-4 --policy d-ts-verdict --policy scomp --policy rucb \
             --horizon 2000 --runs 2 --seed 5 {arguments}"
        ));
        for policy in report["policies"].as_array().expect("policies") {
            let points = policy["checkpoints"].as_array().expect("checkpoints").iter();
            let means = points.map(|point| format!(" {}:{}", point["step"], point["mean"]));
            let name = policy["policy"].as_str().expect("a name");
            found += &format!("{options} {name}{}\n", means.collect::<String>());
        }
    }
    let pinned = include_str!("../../../python/tests/simulation.txt");
    assert!(found == pinned, "crates/python/tests/simulation.txt is now\n{found}");
}
