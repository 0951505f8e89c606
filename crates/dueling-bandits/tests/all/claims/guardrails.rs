//! Guardrails: which pages count, and how often and how soon claims are made.

use dueling_bandits::claims::betting::Side;
use dueling_bandits::claims::guardrails::{Claim, Guardrails, Kind, Metric, Page, PageState};
use dueling_bandits::{PolicyRng, step_rng};
use rand::RngExt;

use super::{at_most, claim};

const WINDOW_MS: i64 = 60_000;
const ERROR: f64 = 0.05;
const FAILURES: Metric = Metric {
    cap: 1.0,
    of_page: false,
    higher_is_better: false,
    limit: Some(0.05),
    difference: None,
};
const LATENCY: Metric = Metric { limit: None, difference: Some(0.01), ..FAILURES };

fn guardrails(metric: Metric, rankers: usize, control: Option<usize>, run: u64) -> Guardrails {
    Guardrails::new(&[metric], WINDOW_MS, ERROR, run, rankers, control)
}

/// Adds pages of one cohort after the other.
struct Pages {
    rails: Guardrails,
    issued: i64,
}

impl Pages {
    fn new(rails: Guardrails) -> Self {
        Self { rails, issued: 0 }
    }

    fn add(&mut self, pair: [u16; 2], unit: Option<u64>, values: [Option<f64>; 2]) {
        let values = values.each_ref().map(std::slice::from_ref);
        assert!(self.rails.add(self.issued as u128, page(pair, unit, self.issued), values));
        self.issued += 1000;
        self.rails.complete(self.issued);
    }

    fn claim(&self, ranker: usize, side: Side) -> Claim {
        claim(&self.rails, ranker, side)
    }

    fn is_decided(&self, ranker: usize, side: Side) -> bool {
        self.claim(ranker, side).decided_after.is_some()
    }
}

#[test]
fn silence_proves_neither_claim() {
    let both = Metric { difference: Some(0.2), ..FAILURES };
    for control in [None, Some(0)] {
        let metric = if control.is_some() { both } else { FAILURES };
        let mut pages = Pages::new(guardrails(metric, 2, control, 1));
        for _ in 0..200 {
            pages.add([0, 1], None, [Some(0.0), None]);
        }
        assert!(pages.is_decided(0, Side::Safe) && !pages.is_decided(0, Side::Harm));
        assert!(pages.rails.decided().all(|claim| claim.ranker == 0));
        let claims = pages.rails.claims().filter(|claim| claim.ranker == 1);
        for claim in claims {
            assert_eq!((claim.pages, claim.missing, claim.mean), (200, 200, None));
            assert!([0.05, 0.2].contains(&claim.missing_bearable), "{claim:?}");
        }
        // values that come prove harm for all that
        for _ in 0..200 {
            pages.add([0, 1], None, [Some(0.0), Some(1.0)]);
        }
        assert!(pages.is_decided(1, Side::Harm) && !pages.is_decided(1, Side::Safe));
    }
}

fn page(pair: [u16; 2], unit: Option<u64>, issued_at: i64) -> Page {
    Page { issued_at, pair, alone: None, unit }
}

#[test]
fn values_may_come_in_parts_and_the_first_stands() {
    let mut rails = guardrails(FAILURES, 2, None, 1);
    let issued = page([0, 1], None, 5_000);
    let parts: [[&[_]; 2]; 3] = [[&[], &[]], [&[Some(1.0)], &[]], [&[Some(0.0)], &[Some(0.0)]]];
    for values in parts {
        assert!(rails.add(7, issued, values));
    }
    assert_eq!(rails.due(WINDOW_MS + 5_999), None);
    assert_eq!(rails.due(WINDOW_MS + 6_000), Some(6_000));
    rails.complete(6_000);
    let means: Vec<_> = rails.claims().map(|claim| (claim.pages, claim.mean)).collect();
    assert_eq!(means, [(1, Some(1.0)), (1, Some(1.0)), (1, Some(0.0)), (1, Some(0.0))]);
    assert!(!rails.add(8, issued, [&[]; 2]), "it is late");
}

#[test]
fn of_a_unit_the_first_page_with_the_ranker_counts() {
    let mut pages = Pages::new(guardrails(FAILURES, 3, None, 1));
    for pair in [[0, 1], [1, 2], [1, 2], [0, 2]] {
        pages.add(pair, Some(9), [Some(0.0), Some(1.0)]);
    }
    let counted = [0, 1, 2].map(|ranker| pages.claim(ranker, Side::Harm));
    assert_eq!(counted.map(|claim| claim.pages), [1, 1, 1]);
    // ranker 1 was second on its first page
    assert_eq!(counted.map(|claim| claim.mean), [Some(0.0), Some(1.0), Some(1.0)]);
}

#[test]
fn a_cohort_in_any_order_gives_one_state() {
    let mut rng = step_rng(3, 0);
    let both = Metric { limit: Some(0.3), difference: Some(0.1), ..FAILURES };
    let pages: Vec<(u128, Page, [Option<f64>; 2])> = (0..300)
        .map(|nonce| {
            let pair = [[0, 1], [1, 0], [1, 2]][rng.random_range(0..3)];
            let values = [Some(rng.random()), rng.random_bool(0.9).then(|| rng.random())];
            let issued_at = rng.random_range(0..3_000);
            (nonce, page(pair, Some(nonce as u64 / 3), issued_at), values)
        })
        .collect();
    let folded = |order: &mut dyn Iterator<Item = &(u128, Page, [Option<f64>; 2])>| {
        let mut rails = guardrails(both, 3, Some(1), 8);
        for (nonce, page, values) in order {
            rails.add(*nonce, *page, values.each_ref().map(std::slice::from_ref));
        }
        rails.complete(10_000);
        rails
    };
    let one = folded(&mut pages.iter());
    assert_eq!(one, folded(&mut pages.iter().rev()));
    let restored = |rankers| one.clone().restored(&[both], WINDOW_MS, ERROR, 8, rankers);
    assert_eq!(restored(3), Some(one.clone()));
    assert!(restored(2).is_none());
}

/// The errors of all claims of a family are at most δ, also when rankers and controls come.
#[test]
fn the_errors_of_all_claims_are_at_most_that_of_the_family() {
    let both = Metric { limit: Some(0.3), difference: Some(0.1), ..FAILURES };
    let mut rails = Guardrails::new(&[both, FAILURES], WINDOW_MS, ERROR, 1, 3, Some(2));
    let (mut of_limits, mut of_differences) = (0.0, 0.0);
    for nth in 0..10 {
        let of = |kind| {
            let claims =
                rails.claims().filter(|claim| claim.kind == kind && claim.side == Side::Harm);
            claims.map(|claim| claim.error).sum::<f64>()
        };
        of_limits = of(Kind::Limit);
        of_differences += of(Kind::Difference);
        assert!(of_limits + of_differences <= ERROR, "{of_limits} {of_differences} after {nth}");
        rails.enlist();
        rails.name_control(if nth % 2 == 0 { 3 } else { 0 }, nth * 100_000);
        rails.complete(nth * 100_000 + 50_000);
    }
    assert!(of_limits + of_differences > 0.9 * ERROR);
}

/// Another control takes effect with the next cohort, and nothing of the earlier one stays.
#[test]
fn another_control_starts_anew() {
    let mut pages = Pages::new(guardrails(LATENCY, 3, Some(0), 1));
    for _ in 0..100 {
        pages.add([0, 1], None, [Some(0.1), Some(0.4)]);
    }
    assert!(pages.is_decided(1, Side::Harm));
    pages.rails.name_control(2, pages.issued + 1);
    for _ in 0..10 {
        pages.add([1, 2], None, [Some(0.1), Some(0.1)]);
    }
    let claim = pages.claim(1, Side::Harm);
    // the cohort that is open when it is named is still of the other control
    assert_eq!((claim.pages, claim.decided_after), (9, None));
}

/// Four rankers whose failures are at the limit, and an adversary who shows the pair with the most
/// failures so far: nobody may be found harmful or safe.
#[test]
fn rankers_at_their_limit_are_hardly_ever_found() {
    const RUNS: u64 = 1_000;
    let mut found = [0, 0];
    for run in 0..RUNS {
        let mut rng = step_rng(run, 0);
        let mut pages = Pages::new(guardrails(FAILURES, 4, None, run));
        let mut sums = [0.0; 4];
        for _ in 0..1_000 {
            let mut order = [0, 1, 2, 3_u16];
            order.sort_by(|&one, &other| {
                f64::total_cmp(&sums[usize::from(other)], &sums[usize::from(one)])
            });
            let values = [(); 2].map(|()| if rng.random_bool(0.05) { 1.0 } else { 0.0 });
            for (ranker, value) in order.into_iter().zip(values) {
                sums[usize::from(ranker)] += value - 0.05;
            }
            pages.add([order[0], order[1]], None, values.map(Some));
        }
        for (found, side) in found.iter_mut().zip([Side::Harm, Side::Safe]) {
            *found += u64::from((0..4).any(|ranker| pages.is_decided(ranker, side)));
        }
    }
    let ends = found.map(|found| at_most(found, RUNS));
    println!("at the limit: {found:?} of {RUNS} runs, at most {ends:?}");
    assert!(ends.into_iter().all(|end| end <= ERROR), "{found:?}");
}

/// Seconds of a page of the control, and of a ranker that is slower by so much.
fn latencies(slower: f64, rng: &mut PolicyRng) -> [f64; 2] {
    let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let query = (-1.8 + 0.5 * normal()).exp();
    [0.0, slower].map(|slower| (query * (0.15 * normal()).exp() + slower).min(1.0))
}

#[test]
fn a_difference_at_its_limit_is_hardly_ever_found() {
    const RUNS: u64 = 1_000;
    let mut found = [0, 0];
    for run in 0..RUNS {
        let mut rng = step_rng(run, 1);
        let mut pages = Pages::new(guardrails(LATENCY, 2, Some(0), run));
        for _ in 0..1_500 {
            // the difference has the limit as its mean, and no cut changes it
            let control = rng.random_range(0.1..0.5);
            let own = control + rng.random_range(-0.04..0.06);
            pages.add([0, 1], None, [Some(control), Some(own)]);
        }
        for (found, side) in found.iter_mut().zip([Side::Harm, Side::Safe]) {
            *found += u64::from(pages.is_decided(1, side));
        }
    }
    let ends = found.map(|found| at_most(found, RUNS));
    println!("difference at the limit: {found:?} of {RUNS} runs, at most {ends:?}");
    assert!(ends.into_iter().all(|end| end <= ERROR), "{found:?}");
}

/// A ranker and the control fail on these shares of pages: each has failed or not, nothing between.
fn failures(shares: [f64; 2], run: u64, pages: u64) -> Pages {
    let metric = Metric { limit: None, difference: Some(0.025), ..FAILURES };
    let mut rng = step_rng(run, 3);
    let mut found = Pages::new(guardrails(metric, 2, Some(0), run));
    for _ in 0..pages {
        let values = shares.map(|share| if rng.random_bool(share) { 1.0 } else { 0.0 });
        found.add([0, 1], None, values.map(Some));
    }
    found
}

/// A cut at ten limits would find no harm in three times the limit.
#[test]
fn whole_differences_decide_about_failures() {
    const RUNS: u64 = 200;
    let runs = |shares: [f64; 2], side| {
        (0..RUNS).filter(|&run| failures(shares, run, 1500).is_decided(1, side)).count() as u64
    };
    assert!(at_most(runs([0.025, 0.05], Side::Safe), RUNS) <= ERROR, "at the limit");
    assert!(at_most(runs([0.025, 0.05], Side::Harm), RUNS) <= ERROR, "at the limit");
    let found = [runs([0.025, 0.1], Side::Harm), runs([0.025, 0.025], Side::Safe)];
    println!("after 1,500 pages: harm of three limits {}, safe {} of {RUNS}", found[0], found[1]);
    assert!(found.into_iter().all(|found| found > RUNS / 2), "{found:?}");
}

/// Worlds in which a ranker is not within its limit, although the values that come look well.
#[derive(Debug, Clone, Copy)]
enum Silence {
    /// Where the ranker fails, its value is missing.
    OfFailures,
    /// Where the ranker fails, the values of both are missing: the page was not shown.
    OfPages,
    /// A random twentieth of the values of the ranker is missing.
    OfSome,
    /// The ranker fails more often than it may, and one value is neither 0 nor the cap.
    OddValue,
}

/// How often a ranker is found safe that is not, if a missing value is the cap.
fn false_safety(silence: Silence, runs: u64) -> u64 {
    let found = |&run: &u64| {
        let mut rng = step_rng(run, 4);
        let metric = match silence {
            Silence::OddValue => Metric { limit: None, difference: Some(0.025), ..FAILURES },
            _ => LATENCY,
        };
        let mut pages = Pages::new(guardrails(metric, 2, Some(0), run));
        for page in 0..1_500 {
            let [control, own] = latencies(0.0, &mut rng);
            let values = match silence {
                Silence::OfFailures if rng.random_bool(0.1) => [Some(control), None],
                Silence::OfPages if rng.random_bool(0.1) => [None, None],
                Silence::OfSome if rng.random_bool(0.05) => [Some(control), None],
                Silence::OddValue if page == 40 => [Some(0.0), Some(0.5)],
                Silence::OddValue => {
                    [0.025, 0.08].map(|share| Some(if rng.random_bool(share) { 1.0 } else { 0.0 }))
                }
                _ => [Some(control), Some(own)],
            };
            pages.add([0, 1], None, values);
        }
        pages.is_decided(1, Side::Safe)
    };
    (0..runs).filter(found).count() as u64
}

#[test]
fn silence_does_not_speak_for_a_ranker() {
    const RUNS: u64 = 100;
    for silence in [Silence::OfFailures, Silence::OfPages, Silence::OfSome, Silence::OddValue] {
        let found = false_safety(silence, RUNS);
        assert!(at_most(found, RUNS) <= ERROR, "{silence:?}: {found} of {RUNS}");
    }
}

/// A limit of the mean, at a load that is correlated in time: this share below the limit in the
/// long run.
fn harm_by_load(below: f64, memory: f64, run: u64) -> bool {
    let metric = Metric { limit: Some(0.4), difference: None, ..FAILURES };
    let mut rng = step_rng(run, 5);
    let mut pages = Pages::new(guardrails(metric, 2, None, run));
    let mut load = 0.0_f64;
    for _ in 0..4_000 {
        let normal = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        load = memory * load + (1.0 - memory * memory).sqrt() * normal;
        let value = 0.4 * (1.0 - below) * (1.0 + 0.3 * load).clamp(0.0, 2.0);
        pages.add([0, 1], None, [Some(value); 2]);
    }
    pages.is_decided(1, Side::Harm)
}

/// Looked at after every tenth page. The mean is on the limit of safety, or within it.
#[test]
fn bounds_hold_whenever_anybody_looks() {
    const RUNS: u64 = 300;
    for (mean, side) in [(0.05, Side::Safe), (0.05, Side::Harm), (0.02, Side::Safe)] {
        let is_missed = |run| {
            let mut rng = step_rng(run, 3);
            let mut pages = Pages::new(guardrails(FAILURES, 2, None, run));
            let mut narrowest: Option<f64> = None;
            let mut missed = false;
            for page in 1..=1_000 {
                let failed = |rng: &mut PolicyRng| f64::from(u8::from(rng.random_bool(mean)));
                pages.add([0, 1], None, [failed(&mut rng), failed(&mut rng)].map(Some));
                if page % 10 > 0 {
                    continue;
                }
                let claim = pages.claim(1, side);
                let Some(bound) = pages.rails.bound(&claim) else { continue };
                let (is_beyond, is_decided) = match side {
                    Side::Harm => (bound > mean, bound >= 0.05),
                    Side::Safe => (bound < mean, bound <= 0.05),
                };
                missed |= is_beyond;
                narrowest = narrowest.into_iter().chain([bound]).reduce(f64::min);
                // checked after each page, and here after every tenth one
                assert!(claim.decided_after.is_none() || is_decided, "{claim:?} {bound}");
                assert!(claim.decided_after.is_some() || !is_decided, "{claim:?} {bound}");
            }
            assert!(side == Side::Harm || narrowest.is_some_and(|it| it < 0.2), "{narrowest:?}");
            missed
        };
        let missed = (0..RUNS).filter(|&run| is_missed(run)).count() as u64;
        assert!(at_most(missed, RUNS) <= 0.05, "{side:?} at {mean}: {missed} of {RUNS}");
    }
}

#[test]
#[ignore = "a table for crates/lab/notes/claims.md: the command is there"]
fn figures() {
    const RUNS: u64 = 300;
    for silence in [Silence::OfFailures, Silence::OfPages, Silence::OfSome, Silence::OddValue] {
        let found = false_safety(silence, RUNS);
        println!("{silence:?}: safe in {found} of {RUNS}, at most {:.4}", at_most(found, RUNS));
    }
    for (below, memory) in [(0.1, 0.0), (0.1, 0.99), (0.1, 0.999), (0.2, 0.999)] {
        let found = (0..RUNS).filter(|&run| harm_by_load(below, memory, run)).count();
        println!("load {below} below the limit, memory {memory}: harm in {found} of {RUNS}");
    }
}

/// The medians of a simulation by other code, within 15 %.
#[test]
fn claims_on_differences_are_made_in_the_pages_that_they_take() {
    for (slower, side, known) in
        [(0.02, Side::Harm, 200), (0.05, Side::Harm, 30), (0.0, Side::Safe, 600)]
    {
        let pages = |run| {
            let mut rng = step_rng(run, 2);
            let mut pages = Pages::new(guardrails(LATENCY, 2, Some(0), run));
            for _ in 0..5_000 {
                pages.add([0, 1], None, latencies(slower, &mut rng).map(Some));
                if let Some(after) = pages.claim(1, side).decided_after {
                    return after;
                }
            }
            panic!("not decided");
        };
        let mut found: Vec<u64> = (0..400).map(pages).collect();
        found.sort_unstable();
        let (median, most) = (found[200], found[360]);
        println!("{slower} s slower, {side:?}: a median of {median} pages, 90 % {most}");
        assert!(median <= known * 115 / 100, "{median} pages for {slower} s");
    }
}

/// The pages that a cohort keeps of 3,000 in this order, and the claims of it.
fn full_cohort(order: impl Iterator<Item = u64>) -> (Vec<u64>, Vec<Claim>) {
    let mut rails = guardrails(FAILURES, 2, None, 1);
    let of = |number: u64| page([0, 1], Some(number), (number % 1000) as i64);
    let value = |number: u64| Some(number as f64 / 3000.0);
    for number in order {
        rails.add(number.into(), of(number), [&[], &[]]);
        rails.add(number.into(), of(number), [&[value(number)], &[]]);
    }
    let is_kept = |number: u64| match rails.page(number.into(), of(number).issued_at) {
        PageState::Open(known) => {
            assert_eq!([known.get(0, 0), known.get(1, 0)], [value(number), None]);
            true
        }
        PageState::LeftOut => false,
        state => panic!("{number}: {state:?}"),
    };
    let (kept, left_out): (Vec<_>, Vec<_>) = (0..3000).partition(|&number| is_kept(number));
    rails.complete(1000);
    let claims: Vec<_> = rails.claims().collect();
    assert!(claims.iter().all(|claim| claim.pages == 2048));
    // the units of those that were left out are known
    for (at, unit, counted) in [(1000, left_out[0], 2048), (2000, 4000, 2049)] {
        rails.add(at as u128, page([0, 1], Some(unit), at), [&[], &[]]);
        rails.complete(at + 1000);
        assert_eq!(claim(&rails, 0, Side::Harm).pages, counted);
    }
    (kept, claims)
}

#[test]
fn a_full_cohort_keeps_the_same_pages_in_whatever_order_they_come() {
    let ascending = full_cohort(0..3000);
    assert_eq!(ascending.0.len(), 2048);
    assert_eq!(ascending, full_cohort((0..3000).rev()));
}
