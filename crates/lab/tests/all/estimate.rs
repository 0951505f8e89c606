//! `lab estimate`: its output, its refusals, and the correctness of its numbers.

use serde_json::Value;

use super::{SMALL, json, printed, refused};

fn pair(report: &Value, features: [u64; 2]) -> &Value {
    let pairs = report["pairs"].as_array().unwrap();
    pairs.iter().find(|pair| pair["features"] == serde_json::json!(features)).unwrap()
}

#[test]
fn the_report_adds_up() {
    let report = json(&format!("estimate --letor {SMALL} --comparisons 500 --seed 3"));
    assert_eq!(report["data"]["queries"], 12);
    assert_eq!(report["data"]["documents"], 96);
    assert_eq!(report["data"]["grades"], 3);
    assert_eq!(report["data"]["constant_features"], serde_json::json!([4]));
    assert_eq!(report["rankers"].as_array().unwrap().len(), 5);
    assert_eq!(report["pairs"].as_array().unwrap().len(), 10);
    let mut undecided = 0;
    for pair in report["pairs"].as_array().unwrap() {
        let count = |name: &str| pair[name].as_u64().unwrap();
        let parts = ["wins", "losses", "ties", "no_click", "no_signal"].map(count);
        assert_eq!(parts.iter().sum::<u64>(), 500);
        let half =
            (count("wins") as f64 + (500 - count("wins") - count("losses")) as f64 / 2.0) / 500.0;
        assert!((pair["preference"].as_f64().unwrap() - half).abs() < 1e-12);
        let gap = (half - 0.5).abs();
        assert_eq!(pair["within_noise"], gap < 3.0 * pair["standard_error"].as_f64().unwrap());
        undecided += parts[2] + parts[3] + parts[4];
    }
    assert!(
        (report["rates"]["undecided"].as_f64().unwrap() - undecided as f64 / 5000.0).abs() < 1e-12
    );
    // A feature that holds the grade beats its own reverse, in every case.
    assert!(pair(&report, [1, 6])["preference"].as_f64().unwrap() > 0.6);
    let ndcg = |at: usize| report["rankers"][at]["ndcg"].as_f64().unwrap();
    assert!(ndcg(0) > ndcg(2) && ndcg(2) > ndcg(4));
}

#[test]
fn a_seed_gives_the_same_numbers_for_any_threads_and_other_pairs() {
    let run = |more: &str| {
        json(&format!("estimate --letor {SMALL} --comparisons 2500 --method probabilistic {more}"))
    };
    let one = run("--threads 1");
    assert_eq!(one, run("--threads 2"));
    assert_ne!(one["pairs"], run("--seed 1")["pairs"]);
    let two = run("--features 2,5");
    assert_eq!(pair(&two, [2, 5]), pair(&one, [2, 5]));
}

#[test]
fn swapped_features_have_swapped_entries_within_their_errors() {
    for method in ["team-draft", "balanced", "probabilistic", "optimized:depth=4"] {
        let run = |features: &str| {
            let report = json(&format!(
                "estimate --letor {SMALL} --comparisons 4000 --method {method} --features {features}"
            ));
            let pair = &report["pairs"][0];
            (pair["preference"].as_f64().unwrap(), pair["standard_error"].as_f64().unwrap())
        };
        let ((here, error), (there, other)) = (run("1,3"), run("3,1"));
        assert!(
            (here + there - 1.0).abs() < 4.0 * error.hypot(other),
            "{method}: {here} and {there}"
        );
    }
}

#[test]
fn entries_match_the_click_model() {
    // One query, a good and a bad document, one ranker right and one wrong: the page has one of two
    // orders, and the good document is the first ranker's. A click model reads from the top: c and
    // d are the clicks on the good and the bad document, s and t the stops after them.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("two.letor");
    std::fs::write(&path, "1 qid:1 1:1 2:0\n0 qid:1 1:0 2:1\n").expect("a file");
    let report = json(&format!(
        "estimate --letor {} --comparisons 2e4 --clicks navigational",
        path.display()
    ));
    let (c, d, s, t) = (0.95, 0.05, 0.9, 0.2);
    let good_first =
        [c * (s + (1.0 - s) * (1.0 - d)), (1.0 - c) * d, c * (1.0 - s) * d, (1.0 - c) * (1.0 - d)];
    let bad_first =
        [(1.0 - d) * c, d * (t + (1.0 - t) * (1.0 - c)), d * (1.0 - t) * c, (1.0 - c) * (1.0 - d)];
    for (at, name) in ["wins", "losses", "ties", "no_click"].iter().enumerate() {
        let wanted = f64::midpoint(good_first[at], bad_first[at]);
        let found = report["pairs"][0][name].as_f64().unwrap() / 2e4;
        let four_errors = 4.0 * (wanted * (1.0 - wanted) / 2e4).sqrt();
        assert!(
            (found - wanted).abs() < four_errors,
            "{name}: {found}, not {wanted} ± {four_errors}"
        );
    }
}

#[test]
fn the_three_kinds_of_entry_agree_on_the_order() {
    let run = |ties: &str| {
        let report = json(&format!(
            "estimate --letor {SMALL} --comparisons 2000 --method probabilistic --ties {ties} \
             --features 1,6"
        ));
        report["pairs"][0]["preference"].as_f64().unwrap()
    };
    let [half, skip, score] = ["half", "skip", "score"].map(run);
    assert!(skip > half && half > 0.5 && score > 0.5, "{half} {skip} {score}");
}

#[test]
fn simulate_reads_the_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.csv").display().to_string();
    let estimate = format!("estimate --letor {SMALL} --comparisons 300");
    let table = printed(&format!("{estimate} --out {path}"));
    for expected in [
        "12 queries, 96 documents, 3 grades",
        "because they do not rank anything: features 4",
        "undecided 0.",
    ] {
        assert!(table.contains(expected), "{table}");
    }
    let csv = std::fs::read_to_string(&path).unwrap();
    let digest = "5c423feab44081a692939a23b018feb1792b01861e1ec99294229f79c86bd692";
    for expected in [
        digest,
        "# features: 1 2 3 5 6",
        "# method: team-draft",
        "# users: navigational:stop_on=click",
    ] {
        assert!(csv.contains(expected), "{csv}");
    }
    printed(&format!("simulate --preferences {path} --policy uniform --horizon 10 --runs 1"));
    let rows = |text: &str| {
        text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(rows(&csv), rows(&printed(&format!("{estimate} --format csv"))));
}

#[test]
fn invalid_arguments_are_refused_before_any_work() {
    refused("estimate --letor nowhere.letor", "--letor nowhere.letor: ");
    for (more, expected) in [
        ("--method draft", "there is no interleaving method `draft`"),
        ("--clicks bots", "there is no click model `bots`"),
        ("--features 4,1", "feature 4 has the same value for all documents of each query"),
        ("--features 1,99", "feature 99 is not in the file"),
        ("--features 1,1", "feature 1 is given twice"),
        ("--features 1", "a comparison needs two"),
        ("--grades 2", "a document has grade 2"),
        ("--grades 4", "there is no table for 4 grades"),
        ("--ties score", "--ties score needs"),
        ("--comparisons 0", "1 to 1000000000"),
    ] {
        refused(&format!("estimate --letor {SMALL} {more}"), expected);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.letor");
    for (text, expected) in [
        ("1 qid:1 1:1 2:0\n0 qid:1 1:x 2:1\n", "line 2: feature 1 is `x`"),
        (
            "7 qid:1 1:1 2:0\n0 qid:1 1:0 2:1\n",
            "a document has grade 7; click models support grades 0 to 4",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        refused(&format!("estimate --letor {}", path.display()), expected);
    }
}
