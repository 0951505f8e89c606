//! `lab sensitivity`: false verdicts of signs and of scores, its output and its refusals.

use serde_json::Value;

use super::{SMALL, json, refused};

/// The verdicts of the first pair: for the first ranker, for the second, and of how many
/// experiments.
fn verdicts(row: &Value, counted: &str) -> [u64; 3] {
    let of_pair = &row["pairs"][0][counted];
    ["first", "second", "experiments"].map(|name| of_pair[name].as_u64().expect(name))
}

#[test]
fn random_clicks_bring_a_verdict_by_signs_and_rarely_one_by_scores() {
    // One query without a relevant document, ranked `a b c` and `b c a`: clicks ignore the rankers.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("even.letor");
    std::fs::write(&path, "0 qid:1 1:3 2:1\n0 qid:1 1:2 2:3\n0 qid:1 1:1 2:2\n").expect("a file");
    for method in ["optimized", "probabilistic"] {
        let rows = json(&format!(
            "sensitivity --letor {} --length 3 --clicks almost-random --experiments 60 --pages 3000 \
             --margin 0 --method {method}:verdict=sign --method {method}",
            path.display()
        ));
        // By signs, almost all experiments end for the list that moved `a` to its end. Of 4000
        // experiments, at least 99 % did.
        let [first, second, _] = verdicts(&rows[0], "by_outcomes");
        assert!(first <= 5 && second >= 50, "{method}: {first} and {second}");
        // Without a margin, a verdict for either ranker is false. Each comes in at most 1 of 20
        // experiments, so more than 15 of 60 have a probability below 1 in 1000.
        for counted in ["by_outcomes", "by_shares"] {
            let [first, second, _] = verdicts(&rows[1], counted);
            assert!(first + second <= 15, "{method}, {counted}: {first} and {second}");
        }
    }
}

#[test]
fn a_seed_gives_the_same_verdicts_on_any_number_of_threads_and_the_better_ranker_wins() {
    // Feature 1 of the file holds the grade, and feature 6 its reverse.
    let run = |threads: u32| {
        json(&format!(
            "sensitivity --letor {SMALL} --features 1,6 --experiments 20 --method team-draft \
             --method balanced:credit=debiased --method optimized:depth=4 --threads {threads}"
        ))
    };
    let rows = run(1);
    assert_eq!(rows, run(2));
    for row in rows.as_array().expect("rows") {
        assert_eq!(verdicts(row, "by_outcomes"), [20, 0, 20], "{row}");
        assert_eq!(verdicts(row, "by_shares"), [20, 0, 20], "{row}");
    }
}

#[test]
fn learned_weights_are_measured_beside_the_method() {
    let rows = json(&format!(
        "sensitivity --letor {SMALL} --features 1,6 --experiments 5 \
         --method team-draft:verdict=score --learn 500"
    ));
    assert_eq!(rows.as_array().map(Vec::len), Some(2));
    let method = rows[1]["method"].as_str().expect("a method");
    assert!(method.starts_with("team-draft:verdict=score with click_weights={"), "{method}");
    assert_eq!(verdicts(&rows[1], "by_outcomes"), [5, 0, 5]);
}

#[test]
fn invalid_arguments_are_refused_before_any_work() {
    refused("sensitivity --letor nowhere.letor", "--letor nowhere.letor: ");
    for (more, expected) in [
        ("--method draft", "there is no interleaving method `draft`"),
        ("--clicks bots", "there is no click model `bots`"),
        ("--confidence 1", "from 0.5 to 0.999999"),
        ("--margin 0.5", "from 0 to 0.49"),
        ("--method balanced --learn 10", "`click_weights` needs a credit that adds up clicks"),
    ] {
        refused(&format!("sensitivity --letor {SMALL} {more}"), expected);
    }
}
