//! Which rankers are removed and which remain, for cases computed by hand.

use dueling_bandits::{Duel, Outcome, PairCounts, Policy};

use super::super::arena::start;
use super::{ELIMINATIONS, answer_batch, arms, ordered};

/// Whether one of two rankers remains after a first batch in which the first wins `wins` of
/// `needed`.
fn decides(text: &str, needed: u32, wins: u32) -> bool {
    let mut policy = start(text, 2, 7);
    assert_eq!(policy.batch_pairs()[0].needed, needed);
    answer_batch(policy.as_mut(), |pair| if pair.duel.first == 0 { wins } else { needed - wins });
    if policy.batch().is_none() {
        assert_eq!(policy.champion(), 0);
    }
    policy.batch().is_none()
}

#[test]
fn a_ranker_is_beaten_where_the_formulas_say() {
    for (text, needed, fewest) in [
        // T = 100, B = 2, K = 2: ten comparisons in round 1. ln(T K²) = ln 400 = 5.99; 10 d(1) =
        // 6.93, 10 d(0.9) = 3.68
        ("pcomp:horizon=100,batches=2", 10, 10),
        // ln K² = 1.386; 10 d(0.8) = 1.93, 10 d(0.7) = 0.82
        ("pcomp:horizon=100,batches=2,elimination=kl-published", 10, 8),
        // c = 100, ln(6 T K² B) = ln 480000 = 13.08, γ = sqrt(13.08 / 200) = 0.2557
        ("pcomp:horizon=10000,batches=2,elimination=hoeffding", 100, 76),
        // c = 1000, γ = sqrt(ln(4.8·10⁷) / 2000) = 0.09404, 3γ = 0.2821, 5γ = 0.4702. Either ranker
        // may be the seed: it removes the other, or the other alone is A*. If both are seeds, r(1)
        // of SCOMP2 comes first.
        ("scomp:horizon=1000000,batches=2,elimination=hoeffding,seed_exponent=1", 1000, 783),
        ("scomp2:horizon=1000000,batches=2,elimination=hoeffding,seed_exponent=1", 1000, 971),
    ] {
        assert!(decides(text, needed, fewest), "{text}");
        assert!(!decides(text, needed, fewest - 1), "{text}");
    }
}

#[test]
fn skipped_ties_widen_the_radius() {
    // γ depends on the comparisons with information: 60 of 60 wins and 40 skipped ties have γ =
    // sqrt(13.08 / 120) = 0.330 < 1/2, but 25 of 25 have γ = 0.511. Without information no ranker
    // is removed.
    for (wins, decided) in [(60, true), (25, false), (0, false)] {
        let mut policy = start("pcomp:horizon=10000,batches=2,elimination=hoeffding", 2, 1);
        let counts = PairCounts {
            duel: Duel::new(0, 1),
            first_wins: wins,
            second_wins: 0,
            ties: 100 - wins,
        };
        policy.observe_counts(&counts, Some(1), &mut |_| Outcome::Void);
        assert_eq!(policy.batch().is_none(), decided, "{wins} wins");
    }
}

#[test]
fn fresh_estimates_forget_the_rounds_before() {
    // kl, T = 1000, B = 3, K = 2: ln 4000 = 8.29. Round 1: 10 of 10 (6.93). Round 2: 60 of 100
    // (2.01) alone is not clear, nor is 70 of 110 (d = 0.0376, 4.13). With 67, the round alone has
    // 5.87, and all comparisons have 77 of 110, d(0.7) = 0.0823, 9.05.
    for (estimates, decided) in [("all", true), ("fresh", false)] {
        let mut policy =
            start(&format!("pcomp:horizon=1000,batches=3,estimates={estimates}"), 2, 1);
        answer_batch(policy.as_mut(), |_| 10);
        answer_batch(policy.as_mut(), |_| 67);
        assert_eq!(policy.batch().is_none(), decided, "{estimates}");
    }
}

#[test]
fn a_cycle_keeps_its_rankers_and_loses_the_others() {
    // 0 beats 1, 1 beats 2 and 2 beats 0, all with certainty; all three beat 3
    for elimination in ELIMINATIONS {
        let mut policy =
            start(&format!("pcomp:horizon=100000,batches=2,elimination={elimination}"), 4, 1);
        let beats = |i: usize, j: usize| j == 3 || (i != 3 && (i + 1) % 3 == j);
        answer_batch(policy.as_mut(), |p| {
            if beats(p.duel.first, p.duel.second) { p.needed } else { 0 }
        });
        assert_eq!(arms(&policy.batch_pairs()), [0, 1, 2]);
    }
}

/// The first policy over the seeds 0, 1, … whose only seed is ranker 3 of four.
fn with_seed_3(text: &str) -> Box<dyn Policy> {
    let found = (0..).find_map(|seed| {
        let policy = start(text, 4, seed);
        let pairs = policy.batch_pairs();
        let all_have_3 = pairs.iter().all(|p| p.duel.first == 3 || p.duel.second == 3);
        (all_have_3 && pairs.len() == 3).then_some(policy)
    });
    found.expect("one seed set in seven is {3}")
}

/// Answer a round of three pairs: ranker `i` wins `wins[i]` comparisons with ranker 3.
fn against_3(policy: &mut dyn Policy, wins: [u32; 3]) {
    answer_batch(policy, |pair| match (pair.duel.first, pair.duel.second) {
        (3, i) => pair.needed - wins[i],
        (i, _) => wins[i],
    });
}

#[test]
fn a_seed_removes_whom_it_leads_by_the_lines_of_the_paper() {
    // γ as in the next test: SCOMP's seed removes from 3γ on, SCOMP2's candidate from 5γ on
    for (kind, fewest) in [("scomp", 793), ("scomp2", 989)] {
        for (wins, left) in [(fewest, &[1, 2, 3][..]), (fewest - 1, &[0, 1, 2, 3])] {
            let text = format!("{kind}:horizon=1000000,batches=2,elimination=hoeffding");
            let mut policy = with_seed_3(&text);
            against_3(&mut *policy, [1000 - wins, 500, 500]);
            assert_eq!(arms(&policy.batch_pairs()), left, "{kind}, {wins} wins");
        }
    }
}

#[test]
fn the_candidate_is_the_seed_whose_clearest_defeat_is_the_least_clear() {
    // every ranker is a seed; of 1000 comparisons a pair, the wins of 0 over 1, 0 over 2, 1 over 2
    for elimination in ELIMINATIONS {
        for (wins, candidate) in [
            ([1000, 1000, 500], 0),
            ([0, 500, 1000], 1),
            ([500, 0, 0], 2),
            // defeats by 0.53, 0.52 and 0.55, none beyond γ
            ([470, 550, 480], 1),
            // a cycle, all beyond γ: 0.8, 0.9 and 0.7
            ([200, 700, 100], 2),
        ] {
            let text = "scomp2:horizon=1000000,batches=2,seed_exponent=0,elimination=";
            let mut policy = start(&format!("{text}{elimination}"), 3, 1);
            answer_batch(&mut *policy, |pair| {
                assert_eq!(pair.needed, 1000);
                let (low, high) = ordered(pair.duel);
                let wins = wins[low + high - 1];
                if pair.duel.first == low { wins } else { 1000 - wins }
            });
            let pairs: Vec<_> =
                policy.batch_pairs().iter().map(|pair| ordered(pair.duel)).collect();
            assert_eq!(pairs.len(), 2, "{elimination} {wins:?}");
            let has_it = |&(low, high): &(usize, usize)| [low, high].contains(&candidate);
            assert!(pairs.iter().all(has_it), "{elimination} {wins:?}: {pairs:?}");
        }
    }
}

#[test]
fn the_switch_keeps_the_lines_of_the_paper_with_every_rule() {
    // T = 10⁶, B = 2, K = 4: c = 1000, ln(6 T K² B) = ln(1.92·10⁸) = 19.073, γ = sqrt(19.073 /
    // 2000) = 0.097655; γ, 3γ and 5γ above 1/2 are 597.7, 792.97 and 988.3 wins of 1000. With `kl`
    // and one seed, ranker 3, all these leads remove ranker 3: 1000 d(0.598) = 19.3 > ln(T K²) =
    // 16.6.
    let remaining = |kind: &str, rule: &str, wins: [u32; 3]| {
        let text = format!("{kind}:horizon=1000000,batches=2,elimination={rule}");
        let mut policy = with_seed_3(&text);
        against_3(&mut *policy, wins);
        let pairs = policy.batch_pairs();
        // τ = r
        assert!(pairs.iter().all(|pair| pair.needed == 1000), "{text}");
        (arms(&pairs), policy.champion())
    };
    for rule in ELIMINATIONS {
        // 5γ → 3γ
        assert_eq!(remaining("scomp2", rule, [989, 793, 792]).0, [0, 1], "{rule}");
        assert_eq!(remaining("scomp2", rule, [989, 793, 793]).0, [0, 1, 2], "{rule}");
        // 3γ → γ
        assert_eq!(remaining("scomp", rule, [793, 598, 597]).0, [0, 1], "{rule}");
        assert_eq!(remaining("scomp", rule, [793, 598, 598]).0, [0, 1, 2], "{rule}");
    }
    // one win less is no switch: without a seed, all who remain go on
    for rule in ["kl", "kl-published"] {
        assert_eq!(remaining("scomp2", rule, [988, 792, 500]).0, [0, 1, 2], "{rule}");
        assert_eq!(remaining("scomp", rule, [792, 598, 500]).0, [0, 1, 2], "{rule}");
    }
}

#[test]
fn the_switch_uses_the_estimates_of_its_round_alone() {
    // T = 10⁶, B = 3, K = 4: c = 100, then 10,000. ln(6 T K² B) = 19.48. Round 1 has γ = 0.312, and
    // round 2 γ = 0.03121: 3γ and 5γ above 1/2 are 5936.2 and 6560.4 wins of 10,000. Over both
    // rounds ranker 0 has 50 + 6561 of 10,100, which would be below 5γ = 0.1553: 6618.5.
    let mut policy = with_seed_3("scomp2:horizon=1000000,batches=3,elimination=kl");
    against_3(&mut *policy, [50, 50, 50]);
    against_3(&mut *policy, [6561, 5937, 5936]);
    assert_eq!(arms(&policy.batch_pairs()), [0, 1]);
}
