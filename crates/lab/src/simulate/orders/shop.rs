//! A shop whose orders decide: searchers click and buy, and the baskets of the service count it.
//!
//! Each ranker lists ten of 24 documents of a query. Documents have a quality, which is why they
//! are bought, an attraction, which is why they are clicked, and a price. Queries come in pairs
//! that share their documents. Pages are drafted and credited by `interleaving`, and everything of
//! a unit reaches [`Baskets`] in a random order. Units are counted in the order of their first
//! page, one by one, so that each look of the verdict is taken.

use dueling_bandits::orders::{Baskets, By, Line, Order, Page, Rules};
use dueling_bandits::{Duel, Outcome};
use interleaving::{Click, FastCoins, FastRng, Request, Spec, Uncached, credit, interleave};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// Documents of a query, and the length of a list.
const DOCUMENTS: usize = 24;
const LENGTH: usize = 10;
const HOUR_MS: f64 = 3_600_000.0;
/// Time between the first pages of two units.
const SPACE_MS: i64 = 60_000;

/// By what a ranker orders the documents of a query.
#[derive(Debug, Clone, Copy)]
pub struct Taste {
    /// Weight of the quality, and of the attraction.
    pub quality: f64,
    /// See `quality`.
    pub attraction: f64,
    /// Standard deviation of its own noise, and of noise that all rankers share.
    pub noise: f64,
    /// See `noise`.
    pub shared: f64,
}

/// The documents, and the lists of all rankers.
#[derive(Debug)]
pub struct Shop {
    quality: Vec<f64>,
    attraction: Vec<f64>,
    price: Vec<f64>,
    names: Vec<String>,
    /// By ranker and query.
    lists: Vec<Vec<Vec<usize>>>,
    spec: Spec,
}

/// How people search and buy.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    /// Mean number of pages of a unit, and the share of units with ten times as many.
    pub pages: f64,
    /// See `pages`.
    pub heavy: f64,
    /// Probability to buy a document of quality 1 after a click.
    pub buys: f64,
    /// Probability that an order takes other clicked documents along.
    pub multi: f64,
    /// Mean hours from click to order, and by what factor that of the first ranker is longer.
    pub delay: f64,
    /// See `delay`.
    pub slow: f64,
    /// Standard deviation of the units' tastes for one of the two rankers.
    pub taste: f64,
    /// By how much less each further position is looked at.
    pub steep: f64,
    /// Whether each unit has the two rankers in a random order: then they are even.
    pub even: bool,
}

impl Habits {
    /// Even rankers, and two of five units that order.
    pub const EVEN: Self = Self {
        pages: 4.0,
        heavy: 0.0,
        buys: 0.5,
        multi: 0.0,
        delay: 12.0,
        slow: 1.0,
        taste: 0.0,
        steep: 0.45,
        even: true,
    };
}

/// A clicked document of a page.
pub(super) struct Clicked {
    pub document: usize,
    pub credit: i8,
}

/// All that a unit does.
#[derive(Default)]
pub struct Visit {
    /// Pages issued.
    pub pages: u64,
    /// Milliseconds of pages with clicks, after the first page.
    pub(super) clicked: Vec<(i64, Vec<Clicked>)>,
    /// Documents bought, with milliseconds after the first page.
    pub(super) bought: Vec<(usize, i64)>,
}

impl Visit {
    /// Whether it has ordered, within this time after the first click.
    pub fn orders_within(&self, window_ms: i64) -> bool {
        let first = self.clicked.first().map_or(0, |(at, _)| *at);
        self.bought.iter().any(|&(_, at)| at <= first + window_ms)
    }

    /// The winner of the clicks on the first page that has one: the answer that clicks would be.
    pub fn click_winner(&self) -> Option<Outcome> {
        self.clicked.iter().find_map(|(_, page)| {
            match page.iter().map(|it| i32::from(it.credit)).sum::<i32>().signum() {
                1 => Some(Outcome::First),
                -1 => Some(Outcome::Second),
                _ => None,
            }
        })
    }
}

/// The pages that a unit sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Of two rankers, interleaved.
    Both([usize; 2]),
    /// Of one ranker alone.
    Alone(usize),
}

impl Shop {
    /// With so many queries. `correlation` is between quality and attraction.
    pub fn new(queries: usize, seed: u64, correlation: f64, rankers: &[Taste]) -> Self {
        let mut rng = FastRng::seed_from_u64(seed);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let logistic = |x: f64| 1.0 / (1.0 + libm::exp(-x));
        let (mut quality, mut attraction, mut price) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..queries * DOCUMENTS {
            let good = normal();
            let bright = correlation * good + (1.0 - correlation * correlation).sqrt() * normal();
            quality.push(logistic(1.6 * good - 1.0));
            attraction.push(logistic(1.2 * bright - 0.6));
            price.push(30.0 * libm::exp(0.8 * normal() - 0.32));
        }
        let logit = |p: f64| libm::log(p / (1.0 - p));
        let list = |query: usize, taste: &Taste, own: &mut FastRng, shared: &mut FastRng| {
            let documents = (query & !1) * DOCUMENTS..((query & !1) + 1) * DOCUMENTS;
            let mut scored: Vec<(f64, usize)> = documents
                .map(|document| {
                    let (own, shared): (f64, f64) =
                        (StandardNormal.sample(own), StandardNormal.sample(shared));
                    let score = taste.quality * logit(quality[document])
                        + taste.attraction * logit(attraction[document])
                        + taste.noise * own
                        + taste.shared * shared;
                    (-score, document)
                })
                .collect();
            scored.sort_by(|one, next| one.0.total_cmp(&next.0));
            scored.into_iter().take(LENGTH).map(|(_, document)| document).collect()
        };
        let lists = rankers.iter().enumerate().map(|(ranker, taste)| {
            let mut own = FastRng::seed_from_u64(seed + 11 + ranker as u64);
            let mut shared = FastRng::seed_from_u64(seed + 77);
            (0..queries).map(|query| list(query, taste, &mut own, &mut shared)).collect()
        });
        let lists = lists.collect();
        let names = (0..quality.len()).map(|document| document.to_string()).collect();
        Self { quality, attraction, price, names, lists, spec: Spec::default() }
    }

    /// Documents of a page, with the credit of a click on each alone.
    fn page(&self, lists: [&[usize]; 2], seen: Seen, rng: &mut FastRng) -> Vec<(usize, i8)> {
        if let Seen::Alone(_) = seen {
            return lists[0].iter().map(|&document| (document, 0)).collect();
        }
        let [left, right] =
            lists.map(|list| list.iter().map(|&it| self.names[it].as_str()).collect::<Vec<_>>());
        let request =
            Request { left: &left, right: &right, offset: 0, length: LENGTH, pinned: &[] };
        let page = interleave(&self.spec, &request, &mut FastCoins(rng), &Uncached);
        let Ok(page) = page else { return Vec::new() };
        let slots = page.slots.iter().map(|slot| {
            let [left, right] = [slot.rank_left, slot.rank_right];
            let rank = |list: &[usize], rank: Option<u32>| rank.map(|it| list[it as usize - 1]);
            let document = rank(lists[0], left).or_else(|| rank(lists[1], right));
            let clicks = [Click::at(slot.position)];
            let earned = credit(&self.spec, &page.sheet, &clicks, &mut FastCoins(rng));
            let share = earned.map_or(0.5, |earned| earned.share.value());
            // team draft has the credits -1, 0 and 1
            (document.unwrap_or_default(), ((2.0 * share - 1.0) * 127.0) as i8)
        });
        slots.collect()
    }

    /// A unit searches, clicks and buys.
    pub fn visit(&self, habits: &Habits, seen: Seen, window: f64, rng: &mut FastRng) -> Visit {
        let mut visit = Visit::default();
        let heavy = habits.heavy > 0.0 && rng.random_bool(habits.heavy);
        let mean = habits.pages * if heavy { 10.0 } else { 1.0 };
        let mut pages = 1;
        while pages < 200 && rng.random_bool(1.0 - 1.0 / mean) {
            pages += 1;
        }
        visit.pages = pages;
        let swapped = habits.even && rng.random_bool(0.5);
        let normal: f64 = StandardNormal.sample(rng);
        let taste = habits.taste * normal;
        let buys = habits.buys * if heavy { 1.5 } else { 1.0 };
        let exponential =
            |mean: f64, rng: &mut FastRng| -mean * libm::log(1.0 - rng.random::<f64>());
        let queries = self.lists[0].len();
        let (mut query, mut hours) = (rng.random_range(0..queries), 0.0);
        for page in 0..pages {
            if page > 0 {
                if !rng.random_bool(0.4) {
                    query = rng.random_range(0..queries);
                } else if rng.random_bool(0.5) {
                    query ^= 1;
                }
                hours += exponential(window * 0.6 / pages as f64, rng);
            }
            if hours > window {
                break;
            }
            let pair = match seen {
                Seen::Both([x, y]) if swapped => [y, x],
                Seen::Both(pair) => pair,
                Seen::Alone(ranker) => [ranker; 2],
            };
            let lists = pair.map(|ranker| &self.lists[ranker][query][..]);
            let at = (hours * HOUR_MS) as i64;
            let mut clicked = Vec::new();
            for (position, (document, credit)) in
                self.page(lists, seen, rng).into_iter().enumerate()
            {
                let looks = 0.55 / (1.0 + habits.steep * position as f64);
                if !rng.random_bool(looks * self.attraction[document]) {
                    continue;
                }
                clicked.push(Clicked { document, credit });
                let side = f64::from(credit.signum());
                let liked = libm::exp(taste * side - habits.taste * habits.taste / 2.0);
                let probability = (buys * self.quality[document] * liked).min(0.95);
                let has = visit.bought.iter().any(|&(bought, _)| bought == document);
                if !has && rng.random_bool(probability) {
                    let slow = if credit > 0 { habits.slow } else { 1.0 };
                    let after = exponential(habits.delay * slow, rng);
                    visit.bought.push((document, at + (after * HOUR_MS) as i64));
                }
            }
            if !clicked.is_empty() {
                visit.clicked.push((at, clicked));
            }
        }
        if let (true, Some(&(_, at))) =
            (habits.multi > 0.0 && rng.random_bool(habits.multi), visit.bought.last())
        {
            let all: Vec<usize> =
                visit.clicked.iter().flat_map(|(_, page)| page).map(|it| it.document).collect();
            for _ in 0..rng.random_range(1..5) {
                let more = all[rng.random_range(0..all.len())];
                if visit.bought.iter().all(|&(bought, _)| bought != more) {
                    visit.bought.push((more, at));
                }
            }
        }
        visit
    }

    /// Folds everything of a unit in a random order. Returns the time until which baskets are to be
    /// closed then; `None` without a click.
    pub fn fold(
        &self,
        baskets: &mut Baskets,
        unit: u64,
        visit: &Visit,
        rng: &mut FastRng,
    ) -> Option<i64> {
        let first = visit.clicked.first()?.0;
        let start = first_page(unit);
        let mut facts: Vec<(bool, usize)> = (0..visit.clicked.len()).map(|at| (true, at)).collect();
        facts.extend((0..visit.bought.len()).map(|at| (false, at)));
        facts.shuffle(rng);
        for (is_link, at) in facts {
            if is_link {
                let (after, clicked) = &visit.clicked[at];
                let issued_at = start + after - first;
                let page = Page { duel: Duel::new(0, 1), issued_at, segment: 0 };
                let links: Vec<_> =
                    clicked.iter().map(|it| (name(it.document), it.credit)).collect();
                baskets.link(unit, &page, &links, false);
            } else {
                let (document, after) = visit.bought[at];
                let value = self.price[document];
                let line = Line { document: name(document), value, quantity: 1 };
                let at = start + after - first;
                let order = Order { order: rng.random(), at, lines: vec![line] };
                baskets.order(unit, order, false);
            }
        }
        Some(start + SPACE_MS)
    }
}

/// When the first clicked page of a unit is issued.
pub fn first_page(unit: u64) -> i64 {
    unit as i64 * SPACE_MS
}

/// The rules of a window of so many hours.
pub fn rules(hours: f64, by: By) -> Rules {
    let arrival_ms = (36.0 * HOUR_MS) as i64;
    Rules { window_ms: (hours * HOUR_MS) as i64, arrival_ms, by }
}

/// The name of a document.
pub fn name(document: usize) -> [u8; 5] {
    let [_, _, _, name @ ..] = (document as u64).to_be_bytes();
    name
}
