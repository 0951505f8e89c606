//! Even truths: how often a ranker is proven by orders though none is better.

use dueling_bandits::claims::drift::Drift;
use dueling_bandits::evidence::Target;
use dueling_bandits::orders::{Baskets, By, Line, Order, Page};
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, Duel, PolicySpec, Setup};
use interleaving::FastRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use serde::Serialize;

use super::shop::{Habits, Seen, Shop, Taste, first_page, name, rules};
use super::worlds::World;
use super::{Sides, Tried, wilson};
use crate::simulate::Progress;

/// The error of a verdict for one ranker.
const ERROR: f64 = 0.05;

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
    /// Only the top of a page is looked at.
    Top,
    /// A window of six hours, in which four of ten orders come.
    Short,
    /// The second ranker shows on a refined query what the first one showed before, and searchers
    /// look at positions alone.
    Refined,
    /// The same on six pages in turn.
    Split,
    /// Three rankers; those who like the first one like the third as well. Homes of any two.
    Pairs,
    /// Three rankers, or five: the same, and the policy of the service chooses homes.
    Homes(usize),
    /// A few units order often and prefer the first ranker, the others prefer the second one.
    Regulars,
    /// The same of very few units, which order very often.
    Crawlers,
    /// More units come after clicks for the first ranker.
    Rush,
    /// By money: the first ranker sells few expensive pieces, and the second many cheap ones.
    Jackpot,
    /// By money: few prices are most of the money.
    Tails,
    /// Orders become fewer from day to day.
    Falling,
    /// Three rankers, and units that keep buying what they bought first.
    Habit,
    /// Three of five orders are cancelled; those of one ranker are placed and cancelled later.
    Cancelled,
    /// Clicks arrive two days after their page, and after most orders.
    LateClicks,
    /// Three rankers, of which the third is bad.
    OneBad,
    /// As `Slow`, but a window of one week cuts off one in eight of these orders.
    Cut,
}

impl Null {
    /// By name.
    pub const ALL: [(&str, Self); 24] = [
        ("even", Self::Even),
        ("money", Self::Money),
        ("popularity", Self::Popularity),
        ("heavy", Self::Heavy),
        ("multiline", Self::Multiline),
        ("slow", Self::Slow),
        ("top", Self::Top),
        ("short", Self::Short),
        ("refined", Self::Refined),
        ("split", Self::Split),
        ("pairs", Self::Pairs),
        ("homes-3", Self::Homes(3)),
        ("homes-5", Self::Homes(5)),
        ("regulars", Self::Regulars),
        ("crawlers", Self::Crawlers),
        ("rush", Self::Rush),
        ("jackpot", Self::Jackpot),
        ("tails", Self::Tails),
        ("falling", Self::Falling),
        ("habit", Self::Habit),
        ("cancelled", Self::Cancelled),
        ("late-clicks", Self::LateClicks),
        ("one-bad", Self::OneBad),
        ("cut", Self::Cut),
    ];

    /// The row of the table of worlds; `None` of a truth with a page of its own.
    fn world(self) -> Option<World> {
        Some(match self {
            Self::Pairs => World::kinds("uniform", 3),
            Self::Homes(rankers) => World::kinds("d-ts-verdict", rankers),
            Self::Regulars => World::REGULARS,
            Self::Crawlers => World::CRAWLERS,
            Self::Rush => World::RUSH,
            Self::Jackpot => World::JACKPOT,
            Self::Tails => World::TAILS,
            Self::Falling => World::FALLING,
            Self::Habit => World::HABIT,
            Self::Cancelled => World::CANCELLED,
            Self::LateClicks => World::LATE_CLICKS,
            Self::OneBad => World::ONE_BAD,
            _ => return None,
        })
    }
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
    /// The share with an alarm about drift.
    pub drifted: [f64; 3],
    /// The mean score of baskets with one, and the mean number of them.
    pub mean_score: f64,
    /// See `mean_score`.
    pub baskets: f64,
}

/// Runs so many experiments, which are so many `times` as long as they must be for the verdict.
pub fn run(null: Null, times: u64, runs: u64, seed: u64, progress: &Progress) -> NullFound {
    let even = Taste { quality: 1.0, attraction: 0.0, noise: 1.2, shared: 0.0 };
    let popular = Taste { quality: 0.6, noise: 0.6, shared: 2.5, ..even };
    let taste = if null == Null::Popularity { popular } else { even };
    let shop = Shop::new(2000, 1, 0.5, &[taste; 2]);
    let tried: Vec<Tried> = (0..runs)
        .into_par_iter()
        .map(|run| {
            let mut rng = FastRng::seed_from_u64(seed ^ (run * 7919 + 1));
            let tried = match null {
                Null::Refined => positions_alone(2, 600 * times, &mut rng),
                Null::Split => positions_alone(6, 600 * times, &mut rng),
                Null::Cut => cut(&shop, times, &mut rng),
                _ => match null.world() {
                    Some(world) => world.run(times, ERROR, &mut rng).unwrap_or_default(),
                    None => one_pair(null, &shop, 400 * times, &mut rng),
                },
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
        drifted: share(&|it| it.drifted),
        mean_score: tried.iter().map(|it| it.sum).sum::<f64>()
            / tried.iter().map(|it| it.count).sum::<u64>().max(1) as f64,
        baskets: tried.iter().map(|it| it.count).sum::<u64>() as f64 / runs as f64,
    }
}

/// An experiment of the rankers 0 and 1, looked at after every basket.
struct Looks {
    baskets: Baskets,
    sides: Sides,
    drift: Drift,
    tried: Tried,
}

impl Looks {
    fn start(hours: f64, by: By, rng: &mut FastRng) -> Self {
        let baskets = Baskets::new(rules(hours, by), rng.random(), 2);
        let (sides, drift) = (Sides::new(0.0, ERROR), Drift::new(2));
        Self { baskets, sides, drift, tried: Tried::default() }
    }

    /// Nothing of baskets that opened before this time can come any more.
    fn close(&mut self, until: i64) {
        for basket in self.baskets.close(until) {
            let (Some(score), Some(credit)) = (basket.score, basket.credit) else { continue };
            let tried = &mut self.tried;
            tried.sum += credit;
            tried.count += 1;
            let now = self.sides.count(score, credit > 0.0);
            tried.proven = [0, 1].map(|side| tried.proven[side] || now[side]);
            self.drift.count(Duel::new(0, 1), score.by_coin(), 1);
            tried.drifted |= self.drift.check(basket.issued_at, until);
        }
    }
}

fn one_pair(null: Null, shop: &Shop, credited: u64, rng: &mut FastRng) -> Tried {
    let (mut habits, mut window, mut by) = (Habits::EVEN, 168.0, By::Orders);
    match null {
        Null::Money => by = By::Money { cap: 120.0 },
        Null::Heavy => habits = Habits { heavy: 0.05, taste: 0.8, ..habits },
        Null::Multiline => habits = Habits { multi: 0.5, taste: 0.8, ..habits },
        Null::Slow => {
            window = 504.0;
            habits = Habits { slow: 5.0, delay: 16.0, pages: 1.6, ..habits };
        }
        Null::Top => habits = Habits { steep: 100.0, ..habits },
        Null::Short => (habits, window) = (Habits { taste: 0.8, multi: 0.5, ..habits }, 6.0),
        _ => {}
    }
    let mut looks = Looks::start(window, by, rng);
    let mut unit = 0;
    while looks.tried.count < credited {
        unit += 1;
        let visit = shop.visit(&habits, Seen::Both([0, 1]), window, rng);
        let until = shop.fold(&mut looks.baskets, unit, &visit, rng);
        until.into_iter().for_each(|until| looks.close(until));
    }
    looks.tried
}

/// A verdict, and whether it ever stood without a doubt.
fn cut(shop: &Shop, times: u64, rng: &mut FastRng) -> Tried {
    let habits = Habits { slow: 5.0, delay: 16.0, pages: 1.6, ..Habits::EVEN };
    let rules = rules(168.0, By::Orders);
    let mut baskets = Baskets::new(rules, rng.random(), 2);
    let target = Target { confidence: 1.0 - ERROR, margin: 0.0 };
    let Ok(spec) = PolicySpec::from_text("uniform") else { return Tried::default() };
    let setup = Setup { rankers: 2, seed: 1 };
    let mut run = Run::new(spec.start(setup), target, rules.cohort_window_ms());
    run.look_for_drift();
    let mut tried = Tried::default();
    for unit in 1..800 * times {
        let visit = shop.visit(&habits, Seen::Both([0, 1]), 168.0, rng);
        let Some(until) = shop.fold(&mut baskets, unit, &visit, rng) else { continue };
        for basket in run.close_baskets(&mut baskets, until, until) {
            tried.sum += basket.credit.unwrap_or_default();
            tried.count += u64::from(basket.credit.is_some());
        }
        tried.drifted = run.drift().is_some_and(|drift| drift.raised() > 0);
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

/// So many pages; the first three documents of the first ranker on each page are those of the
/// second ranker on the next page. Each place is clicked with a probability of its own, and one of
/// the clicked places is bought.
fn positions_alone(pages: usize, credited: u64, rng: &mut FastRng) -> Tried {
    let mut looks = Looks::start(168.0, By::Orders, rng);
    let mut unit = 0;
    while looks.tried.count < credited {
        unit += 1;
        let start = first_page(unit);
        let mut clicked = Vec::new();
        for page in 0..pages {
            let issued_at = start + page as i64 * 8_000;
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
                        (1.., false) if round < 3 => 200 * (page - 1),
                        (page, left) => 200 * page + 100 * usize::from(!left),
                    };
                    links.push((name(list + round), if left { 127 } else { -127 }));
                }
            }
            clicked.extend(links.iter().map(|&(document, _)| document));
            let page = Page { duel: Duel::new(0, 1), issued_at, segment: 0 };
            looks.baskets.link(unit, &page, &links, false);
        }
        if !clicked.is_empty() {
            let document = clicked[rng.random_range(0..clicked.len())];
            let lines = vec![Line { document, value: 1.0, quantity: 1 }];
            let order = Order { order: rng.random(), at: start + 50_000, lines };
            looks.baskets.order(unit, order, false);
        }
        looks.close(first_page(unit + 1));
    }
    looks.tried
}
