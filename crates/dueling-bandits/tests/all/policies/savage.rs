//! SAVAGE: the worked examples of its supplement, through the policy, and parts of explorations.

use dueling_bandits::pairs::{pair_at, pair_count};
use dueling_bandits::policies::explore::{Interval, Radius, RoundRobin};
use dueling_bandits::{Duel, InFlight, Outcome, Policy, Tally};

use super::support::{answer, rng, start};

/// Preferences of the supplement, B.3 and B.4: `1` is a certain win, `0` a certain loss, `?`
/// undecided.
const B3: [&str; 5] = ["· 1 1 1 0", "0 · 1 1 0", "0 0 · ? ?", "0 0 ? · 1", "1 1 ? 0 ·"];
const B4: [&str; 5] = ["· ? ? ? 1", "? · 0 ? ?", "? 1 · 0 ?", "? ? 1 · 0", "0 ? ? 1 ·"];

/// The pairs that are still compared, or the ranker that is shown alone.
type Open = Result<Vec<(usize, usize)>, usize>;

fn open_pairs(policy: &dyn Policy) -> Open {
    let (mut rng, idle) = (rng(1), InFlight::new());
    let mut open = Vec::new();
    for _ in 0..300 {
        let Duel { first, second } = policy.select(&idle, &mut rng).duel;
        if first == second {
            return Err(first);
        }
        open.push((first.min(second), first.max(second)));
    }
    open.sort_unstable();
    open.dedup();
    Ok(open)
}

/// The open pairs once the certain ones of these rows are decided.
fn open_after(rows: &[&str], parameters: &str) -> Open {
    let text = format!("savage:horizon=1000000,{parameters}");
    let mut policy = start(&text, rows.len(), 1);
    for number in 0..pair_count(rows.len()) {
        let Duel { first, second } = pair_at(number);
        let outcome = match rows[first].split_whitespace().nth(second) {
            Some("1") => Outcome::First,
            Some("0") => Outcome::Second,
            _ => continue,
        };
        // surely decided: a radius below 1/2 takes 62 comparisons
        (0..100).for_each(|_| policy.observe(&answer(first, second, outcome)));
    }
    open_pairs(policy.as_ref())
}

#[test]
fn supplement_b3_leaves_one_pair() {
    assert_eq!(open_after(&B3, "winner=copeland"), Ok(vec![(2, 4)]));
    // once 0 and 1 have lost to 4, no other ranker can have four wins: every pair is closed, and 4,
    // with the most possible wins, is accepted
    assert_eq!(open_after(&B3, "winner=condorcet"), Err(4));
}

#[test]
fn supplement_b4_is_decided_for_condorcet_only() {
    assert_eq!(open_after(&B4, "winner=condorcet"), Err(0));
    let copeland = vec![(0, 1), (0, 2), (0, 3), (1, 3), (1, 4), (2, 4)];
    assert_eq!(open_after(&B4, "winner=copeland"), Ok(copeland));
}

#[test]
fn a_winner_is_known_while_one_of_its_pairs_is_open() {
    // ranker 0 surely has 3 wins, and each other at most 2: the open pair (0, 4) can only add to
    // 0's lead
    let open = ["· 1 1 1 ?", "0 · 1 0 1", "0 0 · 1 1", "0 1 0 · 1", "? 0 0 0 ·"];
    assert_eq!(open_after(&open, "winner=copeland"), Err(0));
    // with (1, 3) open, 1 may tie with 0
    let tie = ["· 1 1 1 ?", "0 · 1 ? 1", "0 0 · 1 1", "0 ? 0 · 1", "? 0 0 0 ·"];
    assert_eq!(open_after(&tie, "winner=copeland"), Ok(vec![(0, 4), (1, 3)]));
    // a ranker that ties with the best is one of the winners only up to ε
    assert_eq!(open_after(&B3, "winner=copeland,epsilon=1"), Err(0));
}

#[test]
fn equation_12_tolerates_epsilon_defeats() {
    let three_of_four = ["· 1 1 1 ?", "0 · ? ? ?", "0 ? · ? ?", "0 ? ? · ?", "? ? ? ? ·"];
    let open =
        |epsilon: u32| open_after(&three_of_four, &format!("winner=condorcet,epsilon={epsilon}"));
    assert!(open(0).is_ok());
    assert_eq!((open(1), open(2)), (Err(0), Err(0)));
}

#[test]
fn three_rankers_after_120_comparisons_a_pair() {
    let wins = [(0, 1, 95), (0, 2, 70), (1, 2, 80)];
    let radius = Radius::finite(3, 10_000, 1e-4);
    let mut tally = Tally::new(3);
    for ((i, j, won), (low, high)) in wins.into_iter().zip([
        (0.501_462, 1.081_871),
        (0.293_129, 0.873_538),
        (0.376_462, 0.956_871),
    ]) {
        tally.record_run(Duel::new(i, j), Outcome::First, won);
        tally.record_run(Duel::new(i, j), Outcome::Second, 120 - won);
        let interval = Interval::UNIT.narrowed(radius.of(&tally, Duel::new(i, j)), false);
        is_close(interval.low, low);
        is_close(interval.high, high);
    }
    for (winner, open) in [("copeland", vec![(0, 2), (1, 2)]), ("condorcet", vec![(0, 2)])] {
        let mut policy = start(&format!("savage:horizon=10000,winner={winner}"), 3, 1);
        for (i, j, won) in wins {
            // evenly spread, so that no pair is decided before its last comparison
            for nth in 0..120 {
                let is_win = (nth + 1) * won / 120 > nth * won / 120;
                let outcome = if is_win { Outcome::First } else { Outcome::Second };
                policy.observe(&answer(i, j, outcome));
            }
        }
        assert_eq!(open_pairs(policy.as_ref()), Ok(open), "{winner}");
    }
}

#[track_caller]
fn is_close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 5e-7, "{value}, expected {expected}");
}

#[test]
fn radii_are_those_of_the_paper() {
    let finite = Radius::finite(6, 10_000, 1e-4);
    for (n, radius) in [(1.0, 3.233_078), (50.0, 0.457_226), (100.0, 0.323_308)] {
        is_close(finite.after(n), radius);
    }
    let anytime = Radius::anytime(6, 0.1);
    for (n, radius) in [(1.0, 1.625_606), (100.0, 0.269_217)] {
        is_close(anytime.after(n), radius);
    }
    assert_eq!(finite.after(0.0), f64::INFINITY);
    // here the product 2 N T / δ would overflow 64 bits
    assert!(Radius::finite(523_776, 2_000_000_000, 5e-10).after(1e9) < 1e-3);
}

#[test]
fn intervals_that_do_not_meet_leave_the_mean() {
    let narrow = Interval::UNIT.narrowed((0.9, 0.05), true).narrowed((0.6, 0.02), true);
    assert_eq!(narrow, Interval { low: 0.6, high: 0.6 });
    assert_eq!(narrow.verdict(), Some(true));
    assert_eq!(Interval::UNIT.narrowed((0.9, 0.2), true), Interval { low: 0.9 - 0.2, high: 1.0 });
}

#[test]
fn closed_items_are_never_drawn_and_surplus_is_made_up_for() {
    let mut rng = rng(3);
    let mut items = RoundRobin::new(6);
    items.close(4);
    items.close(4);
    for _ in 0..3 {
        items.record(2);
        items.record(4);
    }
    for _ in 0..12 {
        let item = items.draw(|_| 0, &mut rng).unwrap();
        assert!(item != 4 && item != 2);
        items.record(item);
    }
    assert!([0, 1, 2, 3, 5].into_iter().all(|item| items.compared(item) == 3));
    items.retain(|item| item == 2);
    assert_eq!(items.open(), [2]);
    items.close(2);
    assert_eq!(items.draw(|_| 0, &mut rng), None);
}
