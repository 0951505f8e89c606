//! Even truths as a table: people of two kinds, who buy from each page of their home or do not.
//!
//! In every world the rankers 0 and 1 are even: over all people, the baskets of their pair have as
//! much credit for the one as for the other, given everything of the units before.

use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::scores::{Levels, WEIGHTS};
use dueling_bandits::orders::By;
use interleaving::FastRng;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::Tried;
use super::homes::Homes;
use super::shop::rules;

const HOUR_MS: f64 = 3_600_000.0;

/// People of one kind.
#[derive(Debug, Clone, Copy)]
struct People {
    /// The probability that a unit orders, if both rankers of its pair have an even number, if one
    /// of them has, and if none has.
    orders: [f64; 3],
    /// The mean number of orders of a unit that orders.
    mean: f64,
    /// The share of the orders of a mixed pair that are of its ranker with an even number.
    even: f64,
}

impl People {
    const fn of(orders: f64, mean: f64, even: f64) -> Self {
        Self { orders: [orders; 3], mean, even }
    }
}

/// A world. Where there are two values, the first one is of rankers with an even number.
#[derive(Debug, Clone, Copy)]
pub(super) struct World {
    policy: &'static str,
    rankers: usize,
    /// Baskets with credit, of all pairs.
    credited: u64,
    by: By,
    /// The two kinds, and the share of the first one.
    people: [People; 2],
    share: f64,
    /// Probability that each further order of a unit is of the side of the one before.
    sticks: f64,
    /// How often the last ranker is preferred, in times of the others.
    last: f64,
    /// Mean hours from a page to an order, the price of a piece, and the hours until the next unit
    /// comes after one that clicked first on this side.
    hours: [f64; 2],
    price: [f64; 2],
    next: [f64; 2],
    /// Standard deviation of the logarithm of prices.
    tail: f64,
    /// Hours after which clicks arrive.
    late: f64,
    /// Share of orders that are cancelled, within a day.
    cancelled: f64,
    /// The part of its orders that the shop loses from the first unit to the last one.
    falls: f64,
}

impl World {
    const EVEN: Self = Self {
        policy: "uniform",
        rankers: 2,
        credited: 400,
        by: By::Orders,
        people: [People::of(0.3, 1.5, 0.5); 2],
        share: 0.5,
        sticks: 0.5,
        last: 1.0,
        hours: [12.0; 2],
        price: [1.0; 2],
        next: [0.5; 2],
        tail: 0.0,
        late: 0.0,
        cancelled: 0.0,
        falls: 0.0,
    };

    /// Half of the units like rankers with an even number, and half the others; who likes both
    /// rankers of a pair buys more often. Orders for one kind take three times as long.
    pub const fn kinds(policy: &'static str, rankers: usize) -> Self {
        let even = People { orders: [0.5, 0.2, 0.05], mean: 1.5, even: 0.7 };
        let odd = People { orders: [0.05, 0.2, 0.5], mean: 1.5, even: 0.3 };
        let (people, credited) = ([even, odd], 400 * (rankers as u64 - 1));
        Self { policy, rankers, credited, people, hours: [12.0, 36.0], ..Self::EVEN }
    }

    /// A tenth of the units, nine of ten of which order twenty times, prefer the first ranker; one
    /// in ten of the others orders, and prefers the second.
    pub const REGULARS: Self = Self {
        people: [People::of(0.9, 20.0, 0.74), People::of(0.1, 1.5, 0.26)],
        share: 0.1,
        ..Self::EVEN
    };
    /// One in a hundred units orders a hundred times, nine of ten of the first ranker.
    pub const CRAWLERS: Self = Self {
        people: [
            People::of(1.0, 100.0, 0.9),
            People::of(0.3, 1.5, 0.5 - 0.4 * 0.01 / (0.99 * 0.3)),
        ],
        share: 0.01,
        ..Self::EVEN
    };
    /// The next unit comes at once after a click for the first ranker, else an hour later.
    pub const RUSH: Self = Self {
        people: [People::of(0.3, 3.0, 0.5); 2],
        sticks: 0.9,
        next: [0.0, 1.0],
        ..Self::EVEN
    };
    /// By money: the first ranker sells one in twenty pieces, at nineteen times the price.
    pub const JACKPOT: Self = Self {
        people: [People::of(0.3, 1.0, 0.05); 2],
        price: [1.0, 1.0 / 19.0],
        by: By::Money { cap: 1.0 },
        ..Self::EVEN
    };
    /// By money, with prices whose mean is 90 times their median.
    pub const TAILS: Self = Self {
        tail: 3.0,
        people: [People::of(0.3, 4.0, 0.5); 2],
        by: By::Money { cap: 10.0 },
        ..Self::EVEN
    };
    /// The last unit orders a twentieth as often as the first one.
    pub const FALLING: Self = Self { falls: 0.95, ..Self::RUSH };
    /// A unit buys from the side that it bought from first, and who likes both rankers buys more.
    pub const HABIT: Self = Self { sticks: 1.0, ..Self::kinds("d-ts-verdict", 3) };
    /// Three of five orders are cancelled.
    pub const CANCELLED: Self = Self { cancelled: 0.6, hours: [4.0, 40.0], ..Self::EVEN };
    /// Clicks arrive two days after the page, most of them after the orders.
    pub const LATE_CLICKS: Self = Self { late: 48.0, hours: [4.0, 40.0], ..Self::EVEN };
    /// Three rankers, of which the third is preferred by one in six.
    pub const ONE_BAD: Self = Self {
        last: 0.2,
        people: [People::of(0.3, 1.5, 0.5); 2],
        ..Self::kinds("d-ts-verdict", 3)
    };

    /// Whether the orders ever prove ranker 0 against ranker 1, and the other way.
    pub fn run(&self, times: u64, error: f64, rng: &mut FastRng) -> Option<Tried> {
        let rules = rules(168.0, self.by);
        let mut homes = Homes::start(self.policy, self.rankers, rules, rng.random())?;
        let evidence = LeadEvidence::over(0.0);
        let (mut tried, mut next, credited) = (Tried::default(), 0.0, times * self.credited);
        // a policy that has a verdict may show the winner alone
        for _ in 0..50 * credited {
            let falls = 1.0 - self.falls * (tried.count as f64 / credited as f64).min(1.0);
            next = self.unit(&mut homes, next, falls, rng);
            if tried.count >= credited {
                break;
            }
            let scores = homes.run.verdict().counted().scores();
            if scores.answers() > tried.count {
                tried.count = scores.answers();
                let levels = |x, y| scores.levels(x, y).copied().unwrap_or_default();
                let (of_0, of_1) = (levels(0, 1), levels(1, 0));
                let sides = [(&of_0, &of_1), (&of_1, &of_0)];
                for (proven, (won, lost)) in tried.proven.iter_mut().zip(sides) {
                    *proven |= evidence.ln_with_scores(0.0, 0.0, won, lost) >= -libm::log(error);
                }
                let sum = |levels: &Levels| -> f64 {
                    let weights = levels.iter().zip(WEIGHTS);
                    weights.map(|(&count, weight)| f64::from(count) * weight).sum()
                };
                tried.sum = sum(&of_0) - sum(&of_1);
            }
        }
        tried.drifted = homes.run.drift().is_some_and(|drift| drift.raised() > 0);
        Some(tried)
    }

    /// A unit comes after so many hours. Returns the hours until the next one.
    fn unit(&self, homes: &mut Homes, hours: f64, falls: f64, rng: &mut FastRng) -> f64 {
        let duel = homes.arrive((hours * HOUR_MS) as i64);
        let people = &self.people[usize::from(!rng.random_bool(self.share))];
        let odd = [duel.first, duel.second].map(|ranker| ranker % 2);
        if duel.is_self() {
            return self.next[0];
        }
        let strength = |place: usize| {
            let ranker = [duel.first, duel.second][place];
            let of_kind = if odd[place] == 0 { people.even } else { 1.0 - people.even };
            of_kind * if ranker > 1 && ranker + 1 == self.rankers { self.last } else { 1.0 }
        };
        let first = strength(0) / (strength(0) + strength(1));
        let orders = rng.random_bool(falls * people.orders[odd[0] + odd[1]]);
        let mut of_first = rng.random_bool(first);
        let next = self.next[odd[usize::from(!of_first)]];
        let (mut after, mut is_next) = (0, false);
        while !is_next || (orders && rng.random_bool(1.0 - 1.0 / people.mean)) {
            if is_next && !rng.random_bool(2.0 * self.sticks - 1.0) {
                of_first = rng.random_bool(first);
            }
            is_next = true;
            let document = rng.random_range(0..1 << 30);
            let issued_at = homes.now() + after;
            let credit = if of_first { 127 } else { -127 };
            let arrives = issued_at + (self.late * HOUR_MS) as i64;
            homes.clicks(duel, after, &[(document, credit)], arrives, rng);
            if orders {
                let side = odd[usize::from(!of_first)];
                let normal: f64 = StandardNormal.sample(rng);
                let price = self.price[side] * libm::exp(self.tail * normal);
                let wait = -self.hours[side] * libm::log(1.0 - rng.random::<f64>());
                let at = issued_at + (wait.min(100.0) * HOUR_MS) as i64;
                let order = homes.buys(document, price, at, rng);
                if rng.random_bool(self.cancelled) {
                    homes.cancels(order, at + rng.random_range(0..86_400_000), rng);
                }
            }
            after += 2_000;
        }
        next
    }
}
