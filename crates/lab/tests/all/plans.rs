//! `lab plans`: its report and its refusals.

use super::{json, printed, refused};

#[test]
fn experiments_take_about_as_long_as_their_plans() {
    let worlds = "plans --rankers 4 --difference 0.2 --far 0.3 --runs 60";
    let rows = json(worlds);
    let rows = rows.as_array().expect("a list");
    assert_eq!(rows.len(), 7);
    for row in rows {
        let ratio = row["took"].as_f64().expect("pages") / row["planned"].as_f64().expect("pages");
        assert!((0.7..1.4).contains(&ratio), "{row}");
    }
    assert_eq!(printed(worlds).lines().count(), 2 + rows.len());
}

#[test]
fn a_plan_needs_a_best_ranker() {
    refused("plans --preferences cycle:5:1", "no ranker beats all others");
}
