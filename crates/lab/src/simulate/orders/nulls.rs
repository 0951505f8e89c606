//! Even truths: how often a ranker is proven by orders though none is better.

use dueling_bandits::evidence::Target;
use dueling_bandits::orders::{Baskets, By, Closed, Home, Line, Order, Page};
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, Duel, PolicySpec, Setup};
use interleaving::FastRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use serde::Serialize;

use super::shop::{Habits, Seen, Shop, Taste, first_page, name, rules};
use super::{Sides, homes, wilson};
use crate::simulate::Progress;

/// The error of a verdict for one ranker.
const ERROR: f64 = 0.05;
/// Units for each ranker, where the policy chooses homes: a third of them order.
const HOMES: u64 = 2_000;

/// An even truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Null {
    /// Equal rankers.
    Even,
    /// By money, cut at four times the mean price.
    Money,
    /// Most documents are of both rankers.
    Popularity,
    /// Some units have ten times the pages, and units have tastes.
    Heavy,
    /// Orders have several lines, and units have tastes.
    Multiline,
    /// Orders of one ranker take five times as long, in a window of three weeks.
    Slow,
    /// The second ranker shows on a refined query what the first one showed before, and searchers
    /// look at positions alone.
    Refined,
    /// Three rankers; those who like the first one like the third as well. A coin chooses homes.
    Pairs,
    /// Three rankers, or five: the same, and the policy of the service chooses homes.
    Homes(usize),
    /// As `Slow`, but a window of one week cuts off one in eight of these orders.
    Cut,
}

impl Null {
    /// By name.
    pub const ALL: [(&str, Self); 11] = [
        ("even", Self::Even),
        ("money", Self::Money),
        ("popularity", Self::Popularity),
        ("heavy", Self::Heavy),
        ("multiline", Self::Multiline),
        ("slow", Self::Slow),
        ("refined", Self::Refined),
        ("pairs", Self::Pairs),
        ("homes-3", Self::Homes(3)),
        ("homes-5", Self::Homes(5)),
        ("cut", Self::Cut),
    ];
}

/// Rankers that were proven.
#[derive(Debug, Clone, Serialize)]
pub struct NullFound {
    /// The truth.
    pub null: Null,
    /// Experiments.
    pub runs: u64,
    /// The share in which the first ranker was proven, with its interval of 95 %.
    pub first: [f64; 3],
    /// The same of the second ranker.
    pub second: [f64; 3],
    /// The same of any ranker without a doubt about orders that were cut off.
    pub undoubted: Option<[f64; 3]>,
    /// The mean score of baskets with one, and the mean number of them.
    pub mean_score: f64,
    /// See `mean_score`.
    pub baskets: f64,
}

#[derive(Default, Clone, Copy)]
struct Tried {
    proven: [bool; 2],
    undoubted: bool,
    sum: f64,
    count: u64,
}

/// Runs so many experiments.
pub fn run(null: Null, runs: u64, seed: u64, progress: &Progress) -> NullFound {
    let even = Taste { quality: 1.0, attraction: 0.0, noise: 1.2, shared: 0.0 };
    let popular = Taste { quality: 0.6, noise: 0.6, shared: 2.5, ..even };
    let taste = if null == Null::Popularity { popular } else { even };
    let shop = Shop::new(2000, 1, 0.5, &[taste; 2]);
    let tried: Vec<Tried> = (0..runs)
        .into_par_iter()
        .map(|run| {
            let mut rng = FastRng::seed_from_u64(seed ^ (run * 7919 + 1));
            let tried = match null {
                Null::Refined => positions_alone(&mut rng),
                Null::Pairs => three_rankers(&mut rng),
                Null::Homes(rankers) => {
                    let units = HOMES * rankers as u64;
                    let found = homes::even(rankers, units, ERROR, &mut rng);
                    let (proven, [won, lost]) = found.unwrap_or_default();
                    let (sum, count) = (won - lost, (won + lost) as u64);
                    Tried { proven, sum, count, undoubted: false }
                }
                Null::Cut => cut(&shop, &mut rng),
                _ => one_pair(null, &shop, &mut rng),
            };
            progress.advance(1);
            tried
        })
        .collect();
    let share = |of: &dyn Fn(&Tried) -> bool| {
        wilson(tried.iter().filter(|&it| of(it)).count() as u64, runs)
    };
    NullFound {
        null,
        runs,
        first: share(&|it| it.proven[0]),
        second: share(&|it| it.proven[1]),
        undoubted: (null == Null::Cut).then(|| share(&|it| it.undoubted)),
        mean_score: tried.iter().map(|it| it.sum).sum::<f64>()
            / tried.iter().map(|it| it.count).sum::<u64>().max(1) as f64,
        baskets: tried.iter().map(|it| it.count).sum::<u64>() as f64 / runs as f64,
    }
}

/// Counts a closed basket of the pair of the rankers 0 and 1.
fn count(basket: &Closed, sides: &mut Sides, tried: &mut Tried) {
    if let (Some(score), Some(credit)) = (basket.score, basket.credit)
        && basket.duel == Some(Duel::new(0, 1))
    {
        tried.sum += credit;
        tried.count += 1;
        let now = sides.count(score, credit > 0.0);
        tried.proven = [0, 1].map(|side| tried.proven[side] || now[side]);
    }
}

fn one_pair(null: Null, shop: &Shop, rng: &mut FastRng) -> Tried {
    let (mut habits, mut window, mut by) = (Habits::EVEN, 168.0, By::Orders);
    match null {
        Null::Money => by = By::Money { cap: 120.0 },
        Null::Heavy => habits = Habits { heavy: 0.05, taste: 0.8, ..habits },
        Null::Multiline => habits = Habits { multi: 0.5, taste: 0.8, ..habits },
        Null::Slow => {
            window = 504.0;
            habits = Habits { slow: 5.0, delay: 16.0, pages: 1.6, ..habits };
        }
        _ => {}
    }
    let mut baskets = Baskets::new(rules(window, by), rng.random(), 2);
    let (mut sides, mut tried) = (Sides::new(0.0, ERROR), Tried::default());
    let mut unit = 0;
    while tried.count < 400 && tried.proven != [true; 2] {
        unit += 1;
        let visit = shop.visit(&habits, Seen::Both([0, 1]), window, rng);
        let Some(until) = shop.fold(&mut baskets, unit, &visit, rng) else { continue };
        for basket in baskets.close(until) {
            count(&basket, &mut sides, &mut tried);
        }
    }
    tried
}

/// A verdict, and whether it ever stood without a doubt.
fn cut(shop: &Shop, rng: &mut FastRng) -> Tried {
    let habits = Habits { slow: 5.0, delay: 16.0, pages: 1.6, ..Habits::EVEN };
    let rules = rules(168.0, By::Orders);
    let mut baskets = Baskets::new(rules, rng.random(), 2);
    let target = Target { confidence: 1.0 - ERROR, margin: 0.0 };
    let Ok(spec) = PolicySpec::from_text("uniform") else { return Tried::default() };
    let setup = Setup { rankers: 2, seed: 1 };
    let mut run = Run::new(spec.start(setup), target, rules.cohort_window_ms());
    let mut tried = Tried::default();
    for unit in 1..800 {
        let visit = shop.visit(&habits, Seen::Both([0, 1]), 168.0, rng);
        let Some(until) = shop.fold(&mut baskets, unit, &visit, rng) else { continue };
        for basket in run.close_baskets(&mut baskets, until, until) {
            tried.sum += basket.credit.unwrap_or_default();
            tried.count += u64::from(basket.credit.is_some());
        }
        if let Some(winner) = run.verdict().winner() {
            tried.proven[winner] = true;
            let (tally, active) = (run.tally(), run.roster().active());
            if !baskets.left().beside.cuts_off(run.verdict(), tally, active, winner) {
                tried.undoubted = true;
                break;
            }
        }
    }
    tried
}

/// Two pages; the first three documents of the first ranker on the first page are those of the
/// second ranker on the second page. Each place is clicked with a probability of its own, and one
/// of the clicked places is bought.
fn positions_alone(rng: &mut FastRng) -> Tried {
    let mut baskets = Baskets::new(rules(168.0, By::Orders), rng.random(), 2);
    let (mut sides, mut tried) = (Sides::new(0.0, ERROR), Tried::default());
    let mut unit = 0;
    while tried.count < 600 && tried.proven != [true; 2] {
        unit += 1;
        let start = first_page(unit);
        let mut clicked = Vec::new();
        for page in 0..2 {
            let issued_at = start + page as i64 * 20_000;
            let mut links = Vec::new();
            for round in 0..5 {
                // team draft of two lists without a common document
                let left_first = rng.random_bool(0.5);
                for (place, left) in [(0, left_first), (1, !left_first)] {
                    let position = (2 * round + place) as f64;
                    if !rng.random_bool(0.5 / (1.0 + 0.3 * position)) {
                        continue;
                    }
                    let list = match (page, left) {
                        (1, false) if round < 3 => 0,
                        (page, left) => 200 * page + 100 * usize::from(!left),
                    };
                    links.push((name(list + round), if left { 127 } else { -127 }));
                }
            }
            clicked.extend(links.iter().map(|&(document, _)| document));
            let page = Page { duel: Duel::new(0, 1), issued_at, segment: 0 };
            baskets.link(unit, &page, &links, false);
        }
        if !clicked.is_empty() {
            let document = clicked[rng.random_range(0..clicked.len())];
            let lines = vec![Line { document, value: 1.0, quantity: 1 }];
            let order = Order { order: rng.random(), at: start + 50_000, lines };
            baskets.order(unit, order, false);
        }
        for basket in baskets.close(first_page(unit + 1)) {
            count(&basket, &mut sides, &mut tried);
        }
    }
    tried
}

/// Rankers x, y and w. Half of the units like x and w, and half like y; over all, x and y are even.
/// On the pair of x and w, those who like both click and buy more often.
fn three_rankers(rng: &mut FastRng) -> Tried {
    let mut baskets = Baskets::new(rules(168.0, By::Orders), rng.random(), 3);
    let (mut sides, mut tried) = (Sides::new(0.0, ERROR), Tried::default());
    let mut unit = 0;
    while tried.count < 1500 && tried.proven != [true; 2] {
        unit += 1;
        let likes_x = rng.random_bool(0.5);
        let start = first_page(unit);
        let mut at = start;
        while rng.random_bool(0.8) || at == start {
            // two processes can select at once: the home that was chosen first is the pair
            if at == start || baskets.home(unit).is_none() {
                let second = 1 + rng.random_range(0..2);
                let home = Home { pair: (0, second), at, ticket: 0, chosen_at: unit };
                baskets.choose_home(unit, home);
            }
            let Some(&Home { pair: (x, y), .. }) = baskets.home(unit) else { break };
            let duel = Duel::new(x.into(), y.into());
            let (click, buy) = match (duel.second, likes_x) {
                (1, _) => (0.6, 0.04),
                (_, true) => (0.8, 0.2),
                (_, false) => (0.4, 0.02),
            };
            if rng.random_bool(click) {
                let of_first = rng.random_bool(if likes_x { 0.7 } else { 0.3 });
                let document = name(rng.random_range(0..1 << 30));
                let credit = if of_first { 127 } else { -127 };
                let page = Page { duel, issued_at: at, segment: 0 };
                baskets.link(unit, &page, &[(document, credit)], false);
                if rng.random_bool(buy) {
                    let lines = vec![Line { document, value: 1.0, quantity: 1 }];
                    baskets.order(unit, Order { order: rng.random(), at, lines }, false);
                }
            }
            at += 2_000;
        }
        // every unit has its first page within its minute
        for basket in baskets.close(first_page(unit + 1)) {
            count(&basket, &mut sides, &mut tried);
        }
    }
    tried
}
