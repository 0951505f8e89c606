//! The growth of regret. It slows down if a policy's assumption holds. It is proportional to time
//! if the assumption does not hold and a paper reports that the policy then fails.

use dueling_bandits::PolicySpec;

use super::arena::{
    STEPS, assert_grows_in_proportion, assert_slows_down, line, no_condorcet_winner,
};

#[test]
fn regret_slows_down_where_the_assumption_holds() {
    let matrix = line();
    for (kind, description) in PolicySpec::KINDS {
        let has_horizon =
            description.parameters.iter().any(|parameter| parameter.name == "horizon");
        match *kind {
            "uniform" => assert_grows_in_proportion(kind, &matrix), // never learns
            kind if has_horizon => assert_slows_down(&format!("{kind}:horizon={STEPS}"), &matrix),
            kind => assert_slows_down(kind, &matrix),
        }
    }
}

/// Policies for Copeland winners.
#[test]
fn regret_slows_down_without_a_condorcet_winner() {
    let matrix = no_condorcet_winner();
    let horizon = format!("savage:horizon={STEPS}");
    for kind in ["d-ts", "d-ts-plus", "ccb", "scb", &horizon] {
        assert_slows_down(kind, &matrix);
    }
}
