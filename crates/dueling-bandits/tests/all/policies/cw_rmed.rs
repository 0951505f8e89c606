//! CW-RMED and ECW-RMED: the lists of pairs. The unit tests of the optimisation cover the choice of
//! the pairs.

use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::Regret;
use dueling_bandits::{Duel, InFlight, Observation, Outcome, Policy, PolicySpec, Selection, Tally};
use serde::Serialize;

use super::arena::{costs_less_than_uniform, matrix};
use super::support::{answer, rng, start};

/// The layout of a saved tally, so that an example can set any `t`.
#[derive(Serialize)]
struct Counts {
    rankers: usize,
    steps: u64,
    half_wins: Vec<u32>,
}

const SETUP: Setup = Setup { rankers: 4, seed: 1 };

/// The position of a pair of 4 rankers in a list.
fn place(i: usize, j: usize) -> usize {
    i.max(j) * (i.max(j) + 1) / 2 + i.min(j)
}

/// A policy with these wins, `steps` steps and `list` as the pairs to draw.
fn at(kind: &str, wins: [[u32; 4]; 4], steps: u64, list: &[(usize, usize)]) -> Box<dyn Policy> {
    let spec = PolicySpec::from_text(kind).unwrap();
    let half_wins = wins.iter().flatten().map(|wins| 2 * wins).collect();
    let mut remaining = [false; 10];
    list.iter().for_each(|&(i, j)| remaining[place(i, j)] = true);
    let state = (Counts { rankers: 4, steps, half_wins }, remaining.to_vec(), vec![false; 10]);
    spec.restore(SETUP, 1, &postcard::to_stdvec(&state).unwrap()).expect("a valid state")
}

type Pairs = Vec<(usize, usize)>;

fn pairs(list: &[bool]) -> Pairs {
    let all = (0..4).flat_map(|i| (0..=i).map(move |j| (i, j)));
    all.filter(|&(i, j)| list[place(i, j)]).collect()
}

/// `L_R` and `L_N`.
fn lists(policy: &dyn Policy) -> (Pairs, Pairs) {
    let (_, remaining, next): (Tally, Vec<bool>, Vec<bool>) =
        postcard::from_bytes(&policy.save()).unwrap();
    (pairs(&remaining), pairs(&next))
}

const SURE: [[u32; 4]; 4] = [[0, 120, 130, 125], [80, 0, 36, 4], [70, 4, 0, 37], [75, 36, 3, 0]];
const UNSURE: [[u32; 4]; 4] = [[0, 24, 26, 23], [16, 0, 36, 4], [14, 4, 0, 37], [17, 36, 3, 0]];

/// The next list, after the pair of ranker 0 with itself is drawn at step `t`.
fn next_list(kind: &str, wins: [[u32; 4]; 4], t: u64) -> Vec<(usize, usize)> {
    let mut policy = at(kind, wins, t - 1, &[(0, 0)]);
    policy.observe_self_duels(0, 1);
    let (remaining, next) = lists(policy.as_ref());
    assert!(next.is_empty());
    remaining
}

#[test]
fn worked_lists() {
    assert_eq!(next_list("ecw-rmed", SURE, 700), [(0, 0)]);
    assert_eq!(next_list("cw-rmed", SURE, 700), [(0, 0)]);
    assert_eq!(next_list("ecw-rmed:literal=true", SURE, 700), [(0, 0), (1, 0), (3, 0)]);
    assert_eq!(next_list("ecw-rmed", UNSURE, 400), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    // the linear program may distribute the evidence differently, but must require some
    let planned = next_list("cw-rmed", UNSURE, 400);
    assert!(planned.contains(&(0, 0)) && planned.len() > 1, "{planned:?}");
}

#[test]
fn a_drawn_pair_leaves_the_list_and_planned_pairs_wait_for_the_next() {
    let mut policy = at("ecw-rmed", UNSURE, 399, &[(1, 0), (3, 0), (2, 1)]);
    policy.observe(&answer(1, 0, Outcome::Void));
    let (remaining, next) = lists(policy.as_ref());
    assert_eq!(remaining, [(2, 1), (3, 0)]);
    assert_eq!(next, [(0, 0), (1, 0), (2, 0)], "(3, 0) is still to be drawn in this loop");
    // outcomes that are late, without information or of forced draws draw nothing
    let before = lists(policy.as_ref());
    policy.observe(&answer(1, 0, Outcome::First));
    policy.observe(&answer(2, 1, Outcome::None));
    let forced = Observation { ticket: 1, ..answer(2, 1, Outcome::First) };
    policy.observe(&forced);
    assert_eq!(lists(policy.as_ref()), before);
    // at the end of the loop, the next list becomes current
    policy.observe(&answer(2, 1, Outcome::First));
    policy.observe(&answer(0, 3, Outcome::First));
    let (remaining, next) = lists(policy.as_ref());
    assert_eq!((remaining, next), (vec![(0, 0), (1, 0), (2, 0), (3, 0)], vec![]));
}

#[test]
fn evaluating_per_loop_plans_at_its_end() {
    let mut policy = at("ecw-rmed:evaluate=loop", UNSURE, 398, &[(1, 0), (3, 0)]);
    policy.observe(&answer(1, 0, Outcome::Void));
    assert_eq!(lists(policy.as_ref()), (vec![(3, 0)], vec![]));
    policy.observe(&answer(3, 0, Outcome::Void));
    assert_eq!(lists(policy.as_ref()).0, [(0, 0), (1, 0), (2, 0), (3, 0)]);
}

#[test]
fn every_pair_is_explored_and_close_pairs_are_repeated() {
    for kind in ["cw-rmed", "ecw-rmed"] {
        // from the start: the first pair until it has 3 sqrt(ln t) comparisons, then the next
        let mut policy = start(kind, 4, 1);
        let mut asked = Vec::new();
        for _ in 0..60 {
            let Selection { duel, ticket, batch } = policy.select(&InFlight::new(), &mut rng(1));
            let t = policy.tally().steps() as f64 + 1.0;
            let enough = |i: usize, j: usize| {
                let plays = policy.tally().plays(i, j);
                plays > 0.0 && plays >= 3.0 * t.ln().sqrt()
            };
            let mut all = (0..4).flat_map(|i| (0..i).map(move |j| (i, j)));
            let scarce = all.find(|&(i, j)| !enough(i, j));
            assert_eq!(ticket, u64::from(scarce.is_some()), "{kind} at {t}");
            if let Some(pair) = scarce {
                assert_eq!((duel.first, duel.second), pair);
                asked.push(pair);
            }
            // an even pair would be requested repeatedly
            let outcome = if duel.first < duel.second { Outcome::First } else { Outcome::Second };
            if duel.is_self() {
                policy.observe_self_duels(duel.first, 1);
            } else {
                policy.observe(&Observation { duel, outcome, batch, ticket });
            }
        }
        asked.dedup();
        assert!(asked.len() >= 6, "{asked:?}");
    }
    // 2 and 1 are even, and then within 0.01 of even
    let mut even = SURE;
    (even[2][1], even[1][2]) = (20, 20);
    let duel =
        |wins| at("ecw-rmed", wins, 700, &[(0, 0)]).select(&InFlight::new(), &mut rng(1)).duel;
    assert_eq!(duel(even), Duel::new(2, 1));
    (even[2][1], even[1][2]) = (101, 100);
    assert_eq!(duel(even), Duel::new(2, 1));
    (even[2][1], even[1][2]) = (120, 100);
    assert_eq!(duel(even), Duel::new(0, 0));
}

#[test]
fn concurrent_requests_spread() {
    let policy = start("ecw-rmed", 5, 1);
    let (mut rng, mut in_flight) = (rng(2), InFlight::new());
    let mut asked = Vec::new();
    for _ in 0..10 {
        let duel = policy.select(&in_flight, &mut rng).duel;
        in_flight.add(duel.first, duel.second, 1);
        asked.push((duel.first, duel.second));
    }
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), 10, "each pair once");
}

/// The evidence for the winner costs about 50 ln t = 410 of the 2000 that uniform pairs cost.
#[test]
fn costs_less_than_uniform_pairs() {
    let rankers = matrix("cyclic-4");
    costs_less_than_uniform("ecw-rmed", &rankers, &Regret::copeland(&rankers), 4_000, 6, 0.5);
}

#[test]
fn many_rankers_are_refused() {
    for kind in ["cw-rmed", "ecw-rmed"] {
        let spec = PolicySpec::from_text(kind).unwrap();
        assert!(spec.validate(32).is_ok());
        assert!(spec.validate(33).unwrap_err().detail.contains("at most 32"));
        let even = PolicySpec::from_text(&format!("{kind}:beta=0.5")).unwrap();
        assert_eq!(even.validate(4).unwrap_err().parameter, "beta");
    }
}
