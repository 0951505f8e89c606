//! D-TS and D-TS+ against their reference implementation, which follows the paper.

use dueling_bandits::{Outcome, Policy};

use super::support::{
    A, B, C, D, Reference, ReferencePolicy, answer, assert_same_distribution, feed, frequencies,
    rng, selections, start,
};
use crate::reference::double_thompson::ReferenceDoubleThompson;

fn assert_selects_like_reference(
    policy: &dyn Policy,
    reference: &Reference,
    plus: bool,
    what: &str,
) {
    const DRAWS: usize = 12_000;
    let k = reference.wins.len();
    let mut rng = rng(21);
    let form = ReferenceDoubleThompson { reference: reference.clone(), plus };
    let expected = frequencies(k, DRAWS, || form.select(&mut rng));
    assert_same_distribution(&expected, &selections(policy, DRAWS, 22), what);
}

const KINDS: [(&str, bool); 2] = [("d-ts", false), ("d-ts-plus", true)];

/// A cycle with decided pairs, so that some rankers are not candidates, ties are common, and one
/// sign is rare.
const CYCLE_WITH_OUTSIDERS: (&[&[u32]], u64) = (
    &[
        &[0, 40, 8, 25, 40],
        &[8, 0, 40, 28, 41],
        &[40, 8, 0, 22, 45],
        &[5, 4, 6, 0, 9],
        &[1, 2, 1, 7, 0],
    ],
    0,
);

#[test]
fn selects_like_the_reference_implementation() {
    let nothing: (&[&[u32]], u64) = (&[&[0; 5], &[0; 5], &[0; 5], &[0; 5], &[0; 5]], 0);
    let of = [A, B, C, D, nothing, CYCLE_WITH_OUTSIDERS];
    for (kind, plus) in KINDS {
        for (counts, self_duels) in of {
            let mut policy = start(kind, counts.len(), 1);
            feed(policy.as_mut(), counts, self_duels);
            let reference = Reference::of(policy.tally(), 0.51);
            let name = format!("{kind} on {counts:?}");
            assert_selects_like_reference(policy.as_ref(), &reference, plus, &name);
        }
    }
}

#[test]
fn selects_like_the_reference_implementation_with_half_wins_and_a_retired_ranker() {
    for (kind, plus) in KINDS {
        let mut policy = start(&format!("{kind}:alpha=0.7"), 5, 1);
        let (counts, self_duels) = D;
        feed(policy.as_mut(), counts, self_duels);
        for (i, j) in [(0, 1), (0, 4), (4, 2), (3, 4), (4, 3), (0, 4), (0, 2)] {
            policy.observe(&answer(i, j, Outcome::Half));
            policy.observe(&answer(j, i, Outcome::Void));
        }
        policy.retire(2).unwrap();
        let mut reference = Reference::of(policy.tally(), 0.7);
        reference.retired[2] = true;
        assert_selects_like_reference(policy.as_ref(), &reference, plus, kind);
    }
}

/// D-TS+ is not D-TS: where the two reference implementations differ, the test above can
/// distinguish them.
#[test]
#[should_panic(expected = "chi-square")]
fn the_comparison_distinguishes_the_two_policies() {
    let (counts, self_duels) = D;
    let mut policy = start("d-ts", counts.len(), 1);
    feed(policy.as_mut(), counts, self_duels);
    let reference = Reference::of(policy.tally(), 0.51);
    assert_selects_like_reference(policy.as_ref(), &reference, true, "D-TS against D-TS+");
}
