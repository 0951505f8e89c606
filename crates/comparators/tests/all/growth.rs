//! The growth of regret where the assumptions of a policy hold and where they do not, and regret
//! against that of uniform pairs.

use comparators::Comparator;
use dueling_bandits::preference::Regret;

use crate::arena::{
    STEPS, assert_grows_in_proportion, assert_slows_down, costs_less_than_uniform, line, matrix,
    no_condorcet_winner,
};

#[test]
fn regret_slows_down_where_the_assumption_holds() {
    let matrix = line();
    for kind in Comparator::KINDS {
        let text = match *kind {
            // with the constants of the theory it removes no ranker within so few steps
            "btm" => format!("btm:horizon={STEPS},kappa=1"),
            // a linear program per loop instead of one per draw
            "cw-rmed" => "cw-rmed:evaluate=loop".to_string(),
            "rmed2-fh" | "interleaved-filter" | "pbr" | "rank-el" => {
                format!("{kind}:horizon={STEPS}")
            }
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
    for kind in ["ecw-rmed", "cw-rmed:evaluate=loop", &pbr, &rank_el] {
        assert_slows_down(kind, &matrix);
    }
}

/// RUCB: Zoghi et al., Copeland Dueling Bandits, NIPS 2015, Figure 1. RCS and RMED1 likewise in
/// Figure 1 (b) of Wu and Liu, NIPS 2016.
#[test]
fn regret_grows_in_proportion_without_the_condorcet_winner_that_a_policy_assumes() {
    let matrix = no_condorcet_winner();
    for kind in ["rucb", "rcs", "rmed1", "rmed2", "winner-stays"] {
        assert_grows_in_proportion(kind, &matrix);
    }
}

#[test]
fn regret_is_below_that_of_uniform_pairs() {
    // arithmetic-8 is linear in utilities, and a total order with strong transitivity and the
    // triangle inequality
    for (text, name, steps, runs, share) in [
        ("btm:horizon=20000,gamma=1,kappa=1", "arithmetic-8", 20_000, 8, 0.7),
        ("doubler", "arithmetic-8", 20_000, 10, 0.7),
        // the evidence for the winner costs about 50 ln t = 410 of the 2000 that uniform pairs cost
        ("ecw-rmed", "cyclic-4", 4_000, 6, 0.5),
        ("interleaved-filter:horizon=20000", "arithmetic-8", 20_000, 12, 0.7),
        ("multi-sbm", "arithmetic-8", 20_000, 10, 0.5),
        ("self-sparring", "arithmetic-8", 5_000, 10, 0.2),
        ("sparring", "arxiv-6", 10_000, 10, 0.75),
        ("vdb", "arxiv-6", 10_000, 8, 0.5),
        ("winner-stays", "arxiv-6", 10_000, 10, 0.3),
    ] {
        let matrix = matrix(name);
        let regret = match text {
            "ecw-rmed" => Regret::copeland(&matrix),
            _ => Regret::condorcet(&matrix).expect("a Condorcet winner"),
        };
        costs_less_than_uniform(text, &matrix, &regret, steps, runs, share);
    }
}
