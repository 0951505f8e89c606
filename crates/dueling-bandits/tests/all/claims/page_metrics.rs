//! Metrics of a page: which pages of one ranker alone count, and how often and how soon claims are
//! made.

use dueling_bandits::claims::betting::Side;
use dueling_bandits::claims::guardrails::{Claim, Guardrails, Metric, Page};
use dueling_bandits::{PolicyRng, step_rng};
use rand::RngExt;

use super::{at_most, claim};

const ERROR: f64 = 0.05;
/// A conversion, which is not to become rarer.
const CONVERSION: Metric =
    Metric { cap: 1.0, of_page: true, higher_is_better: true, limit: None, difference: Some(0.0) };

/// Adds pages of one cohort after the other. Ranker 0 is the control.
struct Alone {
    rails: Guardrails,
    issued: i64,
}

impl Alone {
    fn new(metric: Metric, rankers: usize, run: u64) -> Self {
        let rails = Guardrails::new(&[metric], 60_000, ERROR, run, rankers, Some(0));
        Self { rails, issued: 0 }
    }

    /// A page of `alone`, while `leader` leads.
    fn add(&mut self, [leader, alone]: [u16; 2], unit: Option<u64>, value: Option<f64>) {
        let values: [&[_]; 2] = if alone == leader { [&[value], &[]] } else { [&[], &[value]] };
        let (pair, alone) = ([leader, 0], Some(alone));
        let page = Page { issued_at: self.issued, pair, alone, unit };
        assert!(self.rails.add(self.issued as u128, page, values));
        self.issued += 1000;
        self.rails.complete(self.issued);
    }

    /// A page of the leader or the control, by a coin, and a conversion at this rate.
    fn add_by_coin(&mut self, leader: u16, rates: [f64; 2], rng: &mut PolicyRng) {
        let (alone, rate) = if rng.random() { (leader, rates[0]) } else { (0, rates[1]) };
        let value = if rng.random_bool(rate) { 1.0 } else { 0.0 };
        self.add([leader, alone], None, Some(value));
    }

    fn claim(&self, ranker: usize, side: Side) -> Claim {
        claim(&self.rails, ranker, side)
    }

    fn is_decided(&self, ranker: usize, side: Side) -> bool {
        self.claim(ranker, side).decided_after.is_some()
    }
}

#[test]
fn of_a_unit_the_first_page_counts_for_the_pair_of_its_issue() {
    let mut pages = Alone::new(CONVERSION, 3, 1);
    pages.add([1, 1], Some(7), Some(0.0));
    pages.add([1, 1], Some(7), Some(0.0));
    // another leader: what the unit saw before depends on its coin
    pages.add([2, 2], Some(7), Some(0.0));
    pages.add([2, 0], Some(8), Some(1.0));
    pages.add([2, 2], Some(9), Some(1.0));
    assert_eq!([1, 2].map(|ranker| pages.claim(ranker, Side::Harm).pages), [1, 2]);
    // one more of the first leader goes on with its pages
    pages.add([1, 0], Some(10), Some(1.0));
    assert_eq!(pages.claim(1, Side::Harm).pages, 2);
}

/// Neither that of the leader, nor that of the control.
#[test]
fn a_page_without_a_value_proves_nothing() {
    for (higher_is_better, silent) in [(true, 1), (false, 1), (true, 0), (false, 0)] {
        let metric = Metric { higher_is_better, difference: Some(0.3), ..CONVERSION };
        let mut pages = Alone::new(metric, 2, 3);
        let mut rng = step_rng(1, 1);
        for _ in 0..400 {
            let (alone, value) = (u16::from(rng.random::<bool>()), rng.random());
            pages.add([1, alone], None, (alone != silent).then_some(value));
        }
        assert!(!pages.is_decided(1, Side::Harm) && !pages.is_decided(1, Side::Safe));
        let claim = pages.claim(1, Side::Harm);
        assert!((150..250).contains(&claim.missing) && claim.pages == 400, "{claim:?}");
    }
}

/// The evidence against the pair of an earlier control does not count for the next one.
#[test]
fn another_control_starts_anew() {
    let mut pages = Alone::new(CONVERSION, 3, 3);
    let mut rng = step_rng(2, 2);
    for _ in 0..400 {
        pages.add_by_coin(1, [0.0, 1.0], &mut rng);
    }
    assert!(pages.is_decided(1, Side::Harm));
    pages.rails.name_control(2, pages.issued + 1);
    for _ in 0..10 {
        pages.add_by_coin(1, [0.0, 1.0], &mut rng);
    }
    // these pages are of the pair with the earlier control
    let claim = pages.claim(1, Side::Harm);
    assert_eq!((claim.pages, claim.decided_after), (0, None));
}

/// How often any claim of a side is made in so many runs at the limit: conversions of all rankers
/// are equally likely, and the leader is the one that looks worst.
fn found_at_the_limit(runs: u64, difference: f64) -> [u64; 2] {
    let mut found = [0, 0];
    for run in 0..runs {
        let mut rng = step_rng(run, 3);
        let metric = Metric { difference: Some(difference), ..CONVERSION };
        let mut pages = Alone::new(metric, 4, run);
        let mut worse = [0.0; 4];
        for _ in 0..1_500 {
            let leader = if worse[1] >= worse[2] && worse[1] >= worse[3] {
                1
            } else if worse[2] >= worse[3] {
                2
            } else {
                3
            };
            let is_leader: bool = rng.random();
            let rate = if is_leader { 0.2 } else { 0.2 + difference };
            let value = if rng.random_bool(rate) { 1.0 } else { 0.0 };
            worse[usize::from(leader)] += (rate - value) * if is_leader { 1.0 } else { -1.0 };
            pages.add([leader, if is_leader { leader } else { 0 }], None, Some(value));
        }
        for (found, side) in found.iter_mut().zip([Side::Harm, Side::Safe]) {
            *found += u64::from((1..4).any(|ranker| pages.is_decided(ranker, side)));
        }
    }
    found
}

/// Median and 90 % of the pages until harm is proven.
fn pages_until_harm(runs: u64, rates: [f64; 2]) -> [u64; 2] {
    let pages = |run| {
        let mut rng = step_rng(run, 4);
        let mut pages = Alone::new(CONVERSION, 2, run);
        loop {
            pages.add_by_coin(1, rates, &mut rng);
            if let Some(after) = pages.claim(1, Side::Harm).decided_after {
                return after;
            }
        }
    };
    let mut found: Vec<u64> = (0..runs).map(pages).collect();
    found.sort_unstable();
    [0.5, 0.9].map(|share| found[(share * runs as f64) as usize])
}

#[test]
fn at_the_limit_hardly_ever_a_claim_is_made() {
    const RUNS: u64 = 1_000;
    let found = found_at_the_limit(RUNS, 0.0);
    let ends = found.map(|found| at_most(found, RUNS));
    println!("at the limit: {found:?} of {RUNS} runs, at most {ends:?}");
    assert!(ends.into_iter().all(|end| end <= ERROR), "{found:?}");
}

/// The median of a simulation by other code is 2,020. It has the whole error, of which a tenth is
/// kept here for later rankers, and another one for other controls.
#[test]
fn harm_is_found_in_the_pages_that_it_takes() {
    let [median, most] = pages_until_harm(201, [0.15, 0.2]);
    println!("from .20 to .15: a median of {median} pages, 90 % {most}");
    assert!(median <= 2_020 * 115 / 100, "{median} pages");
}

#[test]
#[ignore = "a table for crates/lab/notes/claims.md: the command is there"]
fn figures() {
    for difference in [0.0, 0.05] {
        let found = found_at_the_limit(4_000, difference);
        let ends = found.map(|found| 100.0 * at_most(found, 4_000));
        println!("at the limit {difference}: {found:?} of 4000 runs, at most {ends:.1?} %");
    }
    let [median, most] = pages_until_harm(1_000, [0.15, 0.2]);
    println!("from .20 to .15: a median of {median} pages, 90 % {most}");
}
