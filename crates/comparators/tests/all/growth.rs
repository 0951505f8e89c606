//! The growth of regret where the assumptions of a policy hold and where they do not.

use comparators::Comparator;

use crate::arena::{
    STEPS, assert_grows_in_proportion, assert_slows_down, line, no_condorcet_winner,
};

#[test]
fn regret_slows_down_where_the_assumption_holds() {
    let matrix = line();
    for kind in Comparator::KINDS {
        let text = match *kind {
            // with the constants of the theory it removes no ranker within so few steps
            "btm" => format!("btm:horizon={STEPS},kappa=1"),
            "interleaved-filter" | "pbr" | "rank-el" => format!("{kind}:horizon={STEPS}"),
            kind => kind.to_string(),
        };
        assert_slows_down(&text, &matrix);
    }
}

/// Policies for Copeland winners.
#[test]
fn regret_slows_down_without_a_condorcet_winner() {
    let matrix = no_condorcet_winner();
    let [pbr, rank_el] = ["pbr", "rank-el"].map(|kind| format!("{kind}:horizon={STEPS}"));
    for kind in ["ecw-rmed", &pbr, &rank_el] {
        assert_slows_down(kind, &matrix);
    }
}

/// RUCB: Zoghi et al., Copeland Dueling Bandits, NIPS 2015, Figure 1. RCS and RMED1 likewise in
/// Figure 1 (b) of Wu and Liu, NIPS 2016.
#[test]
fn regret_grows_in_proportion_without_the_condorcet_winner_that_a_policy_assumes() {
    let matrix = no_condorcet_winner();
    for kind in ["rucb", "rcs", "rmed1"] {
        assert_grows_in_proportion(kind, &matrix);
    }
}
