//! `rankduel plan`: its text, its JSON and its refusals.

use serde_json::Value;

use super::rankduel;

const PLAN: [&str; 7] = ["plan", "--rankers", "3", "--difference", "0.2", "--pages-per-day", "100"];

#[test]
fn a_plan_is_a_sentence_and_a_bar_for_each_difference() {
    let text = String::from_utf8(rankduel(&PLAN).stdout).unwrap();
    let json = rankduel(&[&PLAN[..], &["--format", "json"]].concat());
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(text.starts_with(report["sentence"].as_str().unwrap()), "{text}");
    let curve = report["curve"].as_array().unwrap();
    assert_eq!(text.lines().filter(|line| line.contains(" %   ")).count(), curve.len(), "{text}");
    for of in curve {
        let days = of["longest"].as_f64().unwrap().to_string();
        assert!(text.lines().any(|line| line.contains(&format!(" {days} "))), "{days}:\n{text}");
    }
}

#[test]
fn wrong_numbers_are_refused_all_at_once() {
    let output = rankduel(&[&PLAN[..], &["--answered", "30", "--days=-1"]].concat());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(output.stdout.is_empty());
    assert!(message.contains("`answered` is 30; it must be 0.001 to 1"), "{message}");
    assert!(message.contains("`days` is -1; it must be 0.01 to 3650"), "{message}");
}
