//! All baskets of an experiment, from facts in any order.
//!
//! Links, orders and cancellations are sets, a basket opens at a minimum, and everything is read at
//! [`Baskets::close`]. So facts that arrive before their basket closes give one state, byte for
//! byte, whatever their order.
//!
//! - A basket has one pair. With two rankers it is theirs. With more it is the *home* of the unit,
//!   which its first page decides before anything of the unit is seen. The home may be one ranker
//!   alone: then nothing of the unit counts. Links of other pairs never count.
//! - An order may come before the click: orders of units without a basket are kept until everything
//!   that is open was issued after them.
//! - A cancelled order was never placed. A cancellation is kept until its order would be late.
//! - A change of the rankers drops nothing. A basket that opened before it belongs to a cohort that
//!   the verdict does not count any more and that the claims go on to count, as other answers do.
//!
//! # Memory
//!
//! Above [`MOST_BYTES`] the baskets of half of the units are dropped, and their later facts are
//! ignored. A hash of the unit chooses the half, which knows no pair and no outcome: the rest has
//! the means that all have, and only the pace is less. Clicks and orders themselves could not be
//! refused: which of them are lost would depend on when people buy.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::evidence::{EqualAnswers, Score};
use crate::orders::basket::{Basket, CREDIT, Link, Meeting};
use crate::orders::beside::Beside;
use crate::orders::facts::{Alone, By, CLOCK_MS, Document, Home, Order, Page, Rules};
use crate::orders::join::{Delays, Join};
use crate::orders::lift::Lifts;
use crate::rng::mix;
use crate::{Duel, Outcome};

/// Most bytes in memory, as [`Baskets::bytes`] estimates them.
pub const MOST_BYTES: usize = 64 << 20;
/// Most lines of a unit times its links, up to which each of its facts looks at all of them: about
/// a tenth of a millisecond. One id for many people, such as `guest`, has more, and held up all
/// others for seconds. It counts when its basket closes, as every unit does.
const MOST_LOOKED_AT: u64 = 20_000;
/// Bytes that a map takes for each entry beside the entry itself, and an allocation, about.
const MAP_BYTES: usize = 24;
/// Salts of hashes: of the sample, and of the coins that round a score and an amount and that make
/// a score a win.
const SAMPLE: u64 = 0x51a3_7e0d_9b2c_46f8;
const SCORE: u64 = 0x3c6e_f372_fe94_f82b;
const AMOUNT: u64 = 0xa54f_f53a_5f1d_36f1;
const DRAWN: u64 = 0x510e_527f_ade6_82d1;

/// The lower ranker and the higher one.
type Pair = (u16, u16);

/// The baskets that are open, and what closed ones left.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Baskets {
    rules: Rules,
    seed: u64,
    /// Everything of pages issued before this time is closed.
    closed_until: i64,
    /// Whether units have homes: there were three rankers or more from the start.
    has_homes: bool,
    /// The sample is a share of `2^-halvings` of all units.
    halvings: u8,
    baskets: BTreeMap<(u64, Pair), Basket>,
    homes: BTreeMap<u64, Home>,
    /// By unit, and by their hashes.
    orders: BTreeMap<u64, Vec<Order>>,
    unit_of: BTreeMap<u64, u64>,
    /// Cancelled orders, with the time at which that was received.
    cancelled: BTreeMap<u64, i64>,
    alone: BTreeMap<u64, Alone>,
    left: Left,
    /// Numbers of links, of lines, and of open baskets with an order. Follow from the rest.
    #[serde(skip)]
    links: usize,
    #[serde(skip)]
    lines: usize,
    #[serde(skip)]
    ordering: u64,
    /// When the page was issued that opened the oldest basket, home or alone unit. Follows too.
    #[serde(skip)]
    oldest: Option<i64>,
}

/// The counts that closed baskets left.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Left {
    closed: u64,
    ordered: u64,
    /// How lines found their pages.
    pub join: Join,
    /// How long after the first page lines came.
    pub delays: Delays,
    /// The clicks beside the orders, and the lines that the window cut off.
    pub beside: Beside,
    /// The lift of rankers against the control.
    pub lifts: Lifts,
}

/// A basket that has closed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Closed {
    /// The unit, which is known from now on.
    pub unit: u64,
    /// The lower ranker and the higher one; `None` if the unit clicked no page of its home pair.
    /// The other fields are 0 then.
    pub duel: Option<Duel>,
    /// Unix milliseconds at which its first clicked page was issued.
    pub issued_at: i64,
    /// The segment of that page.
    pub segment: u8,
    /// S, before rounding; `None` without a line that counts.
    pub credit: Option<f64>,
    /// S, rounded; `None` if it is 0 or there is none.
    pub score: Option<Score>,
    /// The sign of the clicks on the first page: 1 for the lower ranker.
    pub clicks: i32,
}

/// The first credit of a unit, for the policy to learn from. It is no evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credited {
    /// The lower ranker and the higher one.
    pub duel: Duel,
    /// Whose credit it is.
    pub outcome: Outcome,
    /// Of the home, or 0.
    pub ticket: u64,
}

/// The answer that an open basket would be now, with the issue of its first page.
pub type Expected = (i64, EqualAnswers);

/// The effect of a fact on its unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changed {
    /// The answer that its basket would have been before, and the one that it would be now.
    pub answers: [Option<Expected>; 2],
    /// The first credit of the unit, if this fact brought it.
    pub credited: Option<Credited>,
    /// Whether the baskets of half of the units were dropped.
    pub halved: bool,
}

/// The decision on an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// It is in the baskets, or cancelled, or of a unit outside the sample.
    Recorded(Changed),
    /// It was placed before everything that is open.
    Late,
    /// The basket of its unit has closed.
    Returning,
}

impl Baskets {
    /// No baskets. The `seed` is that of the experiment, with so many `rankers`.
    pub fn new(rules: Rules, seed: u64, rankers: usize) -> Self {
        let left = Left { lifts: Lifts::new(rankers), ..Left::default() };
        Self { rules, seed, has_homes: rankers > 2, left, ..Self::default() }
    }

    /// Decoded baskets, complete; `None` if they do not fit this many rankers.
    pub fn restored(mut self, rules: Rules, rankers: usize) -> Option<Self> {
        let fits = |&(x, y): &Pair| x < y && usize::from(y) < rankers;
        let is_home = |&(x, y): &Pair| x <= y && usize::from(y) < rankers;
        let is_sound = self.rules == rules
            && self.halvings < 64
            && self.baskets.iter().all(|((_, pair), basket)| fits(pair) && basket.is_sound())
            && self.homes.values().all(|home| is_home(&home.pair))
            && self.orders.values().all(|orders| orders.is_sorted_by_key(|order| order.order))
            && self
                .alone
                .values()
                .all(|alone| usize::from(alone.leader.max(alone.control)) < rankers)
            && self.left.delays.is_sound()
            && self.left.beside.is_sound(rankers)
            && self.left.lifts.is_sound(rankers);
        is_sound.then_some(())?;
        self.recount();
        Some(self)
    }

    /// Find what follows from the rest.
    fn recount(&mut self) {
        self.links = self.baskets.values().map(Basket::links).sum();
        self.lines = self.orders.values().flatten().map(|order| order.lines.len()).sum();
        self.ordering = self.orders.keys().filter_map(|&unit| self.credit(unit)).count() as u64;
        self.oldest = self.find_oldest();
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whether the first page of a unit decides its pair: see [`Self::choose_home`].
    pub fn has_homes(&self) -> bool {
        self.has_homes
    }

    /// The home of this unit, which may be one ranker alone; `None` before its first page.
    pub fn home(&self, unit: u64) -> Option<&Home> {
        self.homes.get(&unit)
    }

    /// A unit has its home. Of several, which servers chose at the same time, the one of the page
    /// that was issued first is: later pages exist only if the unit came back.
    pub fn choose_home(&mut self, unit: u64, home: Home) -> Changed {
        if home.at < self.closed_until || !self.samples(unit) {
            return Changed::default();
        }
        self.change(unit, |baskets| {
            let order = |home: &Home| (home.at, home.chosen_at, home.ticket, home.pair);
            let known = baskets.homes.entry(unit).or_insert(home);
            if order(&home) < order(known) {
                *known = home;
            }
            baskets.opened(home.at);
        })
    }

    /// Makes a change of one unit.
    fn change(&mut self, unit: u64, change: impl FnOnce(&mut Self)) -> Changed {
        let before = self.credit(unit);
        let answer = before.and_then(|credit| self.answer(unit, credit));
        self.ordering -= u64::from(before.is_some());
        change(self);
        let now = self.credit(unit);
        self.ordering += u64::from(now.is_some());
        let halved = self.limit();
        let now = now.filter(|_| self.samples(unit));
        let is_first = before.is_none_or(|credit| credit == 0.0);
        let credited = now.filter(|_| is_first).and_then(|credit| self.credited(unit, credit));
        Changed {
            answers: [answer, now.and_then(|credit| self.answer(unit, credit))],
            credited,
            halved,
        }
    }

    fn opened(&mut self, at: i64) {
        self.oldest = Some(self.oldest.map_or(at, |oldest| oldest.min(at)));
    }

    /// Documents of a page were clicked, with the credit of a click on each alone, from -127 to 127
    /// and positive for the first ranker of the page. `is_known` says whether the unit is known to
    /// the [cohorts](crate::evidence::Cohorts::knows).
    pub fn link(
        &mut self,
        unit: u64,
        page: &Page,
        documents: &[(Document, i8)],
        is_known: bool,
    ) -> Changed {
        if is_known || page.issued_at < self.closed_until || !self.samples(unit) {
            return Changed::default();
        }
        let Duel { first, second } = page.duel;
        let (pair, sign) = match first < second {
            true => ((first as u16, second as u16), 1),
            false => ((second as u16, first as u16), -1),
        };
        if documents.is_empty() {
            return Changed::default();
        }
        self.change(unit, |baskets| {
            let basket = baskets.baskets.entry((unit, pair)).or_insert_with(|| Basket::new(page));
            for &(document, credit) in documents {
                let link = Link::new(document, sign * credit.max(-CREDIT), page.issued_at);
                baskets.links += usize::from(basket.add(page, link));
            }
            baskets.opened(page.issued_at);
        })
    }

    /// A unit has placed an order. `is_known` as in [`Self::link`], or because it saw one ranker
    /// alone before.
    pub fn order(&mut self, unit: u64, order: Order, is_known: bool) -> Placed {
        let lines = order.lines.len() as u64;
        if order.at + CLOCK_MS < self.closed_until {
            self.left.join.late += lines;
            return Placed::Late;
        }
        if is_known && self.basket(unit).is_none() && !self.alone.contains_key(&unit) {
            self.left.join.returning += lines;
            return Placed::Returning;
        }
        if !self.samples(unit)
            || self.cancelled.contains_key(&order.order)
            || self.unit_of.contains_key(&order.order)
        {
            return Placed::Recorded(Changed::default());
        }
        Placed::Recorded(self.change(unit, |baskets| {
            baskets.unit_of.insert(order.order, unit);
            baskets.lines += order.lines.len();
            let orders = baskets.orders.entry(unit).or_default();
            let place = orders.partition_point(|known| known.order < order.order);
            orders.insert(place, order);
        }))
    }

    /// An order is cancelled, whether it has come or not; received at this time.
    pub fn cancel(&mut self, order: u64, received_at: i64) -> Changed {
        if received_at + CLOCK_MS >= self.closed_until {
            self.cancelled.entry(order).or_insert(received_at);
        }
        let Some(&unit) = self.unit_of.get(&order) else { return Changed::default() };
        self.change(unit, |baskets| drop(baskets.take_order(order)))
    }

    /// The first page of a unit that sees one ranker alone. Of several, the one issued first
    /// counts. Returns whether the baskets of half of the units were dropped.
    pub fn alone(&mut self, unit: u64, alone: Alone) -> bool {
        if alone.issued_at < self.closed_until || !self.samples(unit) {
            return false;
        }
        let order = |it: &Alone| (it.issued_at, it.leader, it.control, it.sees_leader);
        let known = self.alone.entry(unit).or_insert(alone);
        if order(&alone) < order(known) {
            *known = alone;
        }
        self.opened(alone.issued_at);
        self.limit()
    }

    /// Nothing of baskets that opened before this time can come any more. Returns them, by unit.
    /// The time is the start of a cohort; see
    /// [`Run::close_baskets`](crate::run::Run::close_baskets), which calls this.
    pub fn close(&mut self, issued_before: i64) -> Vec<Closed> {
        if issued_before <= self.closed_until {
            return Vec::new();
        }
        self.closed_until = issued_before;
        let ended = self.baskets.iter().filter(|(_, basket)| basket.first.0 < issued_before);
        let mut units: BTreeSet<u64> = ended.map(|(&(unit, _), _)| unit).collect();
        let homes = self.homes.iter().filter(|(_, home)| home.at < issued_before);
        units.extend(homes.map(|(&unit, _)| unit));
        let closed: Vec<Closed> =
            units.into_iter().filter_map(|unit| self.close_unit(unit)).collect();
        self.close_alone();
        self.drop_late();
        self.oldest = self.find_oldest();
        closed
    }

    fn close_unit(&mut self, unit: u64) -> Option<Closed> {
        let home = self.homes.get(&unit).copied();
        let is_open = match (self.basket(unit), home) {
            (Some((_, basket)), _) => basket.first.0 >= self.closed_until,
            (None, home) => home.is_some_and(|home| home.at >= self.closed_until),
        };
        if is_open {
            return None;
        }
        let mut join = self.left.join;
        let meeting = self.meeting(unit, &mut join);
        self.left.join = join;
        let is_looked_at = self.is_looked_at(unit);
        let found = self.basket(unit).map(|(pair, basket)| (pair, basket.first, basket.clicks()));
        for (_, basket) in self.baskets.extract_if(of_unit(unit), |_, _| true) {
            self.links -= basket.links();
        }
        self.homes.remove(&unit);
        let orders = self.take_orders(unit);
        let Some((pair, (issued_at, segment), clicks)) = found else {
            // pages without a click, or of another pair than the unit's home
            let sees_one = home.is_some_and(|home| home.pair.0 == home.pair.1);
            let join = &mut self.left.join;
            *if sees_one { &mut join.alone } else { &mut join.not_clicked } += lines(&orders);
            return Some(Closed { unit, ..Closed::default() });
        };
        self.left.closed += 1;
        meeting.delays.iter().for_each(|&delay| self.left.delays.count(delay));
        let credit = meeting.score(&self.rules);
        self.left.ordered += u64::from(credit.is_some());
        self.ordering -= u64::from(is_looked_at && credit.is_some());
        self.left.beside.count(pair, clicks, credit.unwrap_or(0.0), meeting.beyond);
        let score = credit.and_then(|credit| self.rounded(unit, SCORE, credit));
        let duel = Some(Duel::new(pair.0.into(), pair.1.into()));
        Some(Closed { unit, duel, issued_at, segment, credit, score, clicks })
    }

    fn close_alone(&mut self) {
        let until = self.closed_until;
        let ended: Vec<_> = self.alone.extract_if(.., |_, it| it.issued_at < until).collect();
        for (unit, alone) in ended {
            let window = alone.issued_at - CLOCK_MS..=alone.issued_at + self.rules.window_ms;
            let orders = self.orders.get(&unit).map_or(&[][..], |orders| orders);
            let ordered = orders.iter().filter(|order| window.contains(&order.at));
            let values = ordered.clone().flat_map(|order| &order.lines);
            let value: f64 = values.map(|line| f64::from(line.quantity) * line.value).sum();
            let amount = match self.rules.by {
                By::Orders => None,
                By::Money { cap } => {
                    let share = (value / cap).min(1.0);
                    Some(self.rounded(unit, AMOUNT, share).map_or(0, Score::level))
                }
            };
            if alone.leader != alone.control {
                self.left.lifts.count(&alone, ordered.count() > 0, amount);
            }
            if self.basket(unit).is_none() && !self.homes.contains_key(&unit) {
                self.left.join.alone += lines(&self.take_orders(unit));
            }
        }
    }

    /// Orders that nothing open can count, and cancellations of such.
    fn drop_late(&mut self) {
        let until = self.closed_until;
        let waits = |unit: u64| {
            self.baskets.range(of_unit(unit)).next().is_some()
                || self.homes.contains_key(&unit)
                || self.alone.contains_key(&unit)
        };
        let mut late = Vec::new();
        for (&unit, orders) in &self.orders {
            let is_late = |order: &&Order| order.at + CLOCK_MS < until;
            if orders.iter().any(|order| is_late(&order)) && !waits(unit) {
                late.extend(orders.iter().filter(is_late).map(|order| order.order));
            }
        }
        for order in late {
            self.left.join.unit_unknown += lines(self.take_order(order).as_slice());
        }
        self.cancelled.retain(|_, received_at| *received_at + CLOCK_MS >= until);
    }

    fn take_order(&mut self, order: u64) -> Option<Order> {
        let unit = self.unit_of.remove(&order)?;
        let orders = self.orders.get_mut(&unit)?;
        let place = orders.binary_search_by_key(&order, |known| known.order).ok()?;
        let order = orders.remove(place);
        self.lines -= order.lines.len();
        if orders.is_empty() {
            self.orders.remove(&unit);
        }
        Some(order)
    }

    fn take_orders(&mut self, unit: u64) -> Vec<Order> {
        let orders = self.orders.remove(&unit).unwrap_or_default();
        for order in &orders {
            self.unit_of.remove(&order.order);
            self.lines -= order.lines.len();
        }
        orders
    }

    /// The basket of a unit that counts, with its pair.
    fn basket(&self, unit: u64) -> Option<(Pair, &Basket)> {
        if let Some(home) = self.homes.get(&unit) {
            return self.baskets.get(&(unit, home.pair)).map(|basket| (home.pair, basket));
        }
        let mut all = self.baskets.range(of_unit(unit)).map(|(&(_, pair), basket)| (pair, basket));
        all.next().filter(|_| !self.has_homes)
    }

    fn meeting(&self, unit: u64, join: &mut Join) -> Meeting {
        let orders = self.orders.get(&unit).map_or(&[][..], |orders| orders);
        self.basket(unit).map(|(_, it)| it.meet(&self.rules, orders, join)).unwrap_or_default()
    }

    /// Whether each fact of a unit looks at its S so far, which is no evidence.
    fn is_looked_at(&self, unit: u64) -> bool {
        let lines = self.orders.get(&unit).map_or(0, |orders| lines(orders));
        let links = self.basket(unit).map_or(0, |(_, basket)| basket.links());
        lines * links as u64 <= MOST_LOOKED_AT
    }

    /// S so far.
    fn credit(&self, unit: u64) -> Option<f64> {
        let is_looked_at = self.orders.contains_key(&unit) && self.is_looked_at(unit);
        is_looked_at.then(|| self.meeting(unit, &mut Join::default()))?.score(&self.rules)
    }

    /// This S for the policy to learn from; `None` if it is 0.
    fn credited(&self, unit: u64, credit: f64) -> Option<Credited> {
        let ((x, y), _) = self.basket(unit).filter(|_| credit != 0.0)?;
        let duel = Duel::new(x.into(), y.into());
        let outcome = if credit > 0.0 { Outcome::First } else { Outcome::Second };
        let ticket = self.homes.get(&unit).map_or(0, |home| home.ticket);
        Some(Credited { duel, outcome, ticket })
    }

    /// A number from -1 to 1, rounded at random so that its mean stays; `None` for 0.
    fn rounded(&self, unit: u64, salt: u64, credit: f64) -> Option<Score> {
        let weight = (credit.abs() * f64::from(Score::ONE)).round() as u32;
        let coin = |salt: u64| (mix(self.seed ^ mix(unit ^ salt)) >> 40) as u32;
        let is_drawn = coin(salt ^ DRAWN) < weight;
        let is_up = |numerator| coin(salt) < numerator;
        let score = Score::rounded(credit > 0.0, weight, is_drawn, is_up).silent();
        (weight > 0).then_some(score)
    }

    /// The answers that open baskets would be now.
    pub fn expected(&self) -> impl Iterator<Item = Expected> {
        self.orders.keys().filter_map(|&unit| self.answer(unit, self.credit(unit)?))
    }

    /// The answer of this S.
    fn answer(&self, unit: u64, credit: f64) -> Option<Expected> {
        let score = self.rounded(unit, SCORE, credit)?;
        let ((x, y), basket) = self.basket(unit)?;
        let duel = Duel::new(x.into(), y.into());
        let (issued_at, segment) = basket.first;
        let (outcome, score) = (score.outcome(), Some(score));
        Some((issued_at, EqualAnswers { duel, outcome, score, segment, count: 1 }))
    }

    fn samples(&self, unit: u64) -> bool {
        mix(unit ^ SAMPLE).leading_zeros() >= self.halvings.into()
    }

    /// Halves the sample while it takes too much memory. Returns whether it did.
    fn limit(&mut self) -> bool {
        let before = self.halvings;
        while self.bytes() > MOST_BYTES && self.halvings < 63 {
            self.halvings += 1;
            let halvings = u32::from(self.halvings);
            let samples = |unit: u64| mix(unit ^ SAMPLE).leading_zeros() >= halvings;
            self.baskets.retain(|&(unit, _), _| samples(unit));
            self.homes.retain(|&unit, _| samples(unit));
            self.orders.retain(|&unit, _| samples(unit));
            self.unit_of.retain(|_, unit| samples(*unit));
            self.alone.retain(|&unit, _| samples(unit));
            self.recount();
        }
        self.halvings != before
    }

    /// Estimated bytes in memory.
    pub fn bytes(&self) -> usize {
        let map = |entry: usize, entries: usize| (entry + MAP_BYTES) * entries;
        map(size_of::<((u64, Pair), Basket)>() + MAP_BYTES, self.baskets.len())
            + size_of::<Link>() * self.links
            + map(size_of::<(u64, Home)>(), self.homes.len())
            + map(size_of::<(u64, Vec<Order>)>(), self.orders.len())
            + map(size_of::<(u64, u64)>() + size_of::<Order>() + MAP_BYTES, self.unit_of.len())
            + size_of::<crate::orders::Line>() * self.lines
            + map(size_of::<(u64, i64)>(), self.cancelled.len())
            + map(size_of::<(u64, Alone)>(), self.alone.len())
    }

    /// Whether this order has come and has not counted.
    pub fn holds(&self, order: u64) -> bool {
        self.unit_of.contains_key(&order)
    }

    /// The share of all units whose baskets are kept.
    pub fn sampled(&self) -> f64 {
        libm::ldexp(1.0, -i32::from(self.halvings))
    }

    fn find_oldest(&self) -> Option<i64> {
        let baskets = self.baskets.values().map(|basket| basket.first.0);
        let oldest = baskets.chain(self.alone.values().map(|it| it.issued_at)).min();
        // of a unit that came back to its home, the basket tells
        let is_older = |&(&unit, home): &(&u64, &Home)| {
            oldest.is_none_or(|at| home.at < at) && !self.baskets.contains_key(&(unit, home.pair))
        };
        self.homes.iter().filter(is_older).map(|(_, home)| home.at).min().or(oldest)
    }

    /// When the page was issued that opened the oldest basket, home or alone unit.
    pub fn oldest(&self) -> Option<i64> {
        self.oldest
    }

    /// Units that clicked: with open baskets, and with closed ones.
    pub fn units(&self) -> (u64, u64) {
        (self.baskets.len() as u64, self.left.closed)
    }

    /// Units that have ordered a document that they had clicked, in time: open ones, closed ones.
    pub fn ordered(&self) -> (u64, u64) {
        (self.ordering, self.left.ordered)
    }

    /// The counts that closed baskets left.
    pub fn left(&self) -> &Left {
        &self.left
    }
}

/// The keys of the baskets of a unit.
fn of_unit(unit: u64) -> RangeInclusive<(u64, Pair)> {
    (unit, (0, 0))..=(unit, (u16::MAX, u16::MAX))
}

fn lines(orders: &[Order]) -> u64 {
    orders.iter().map(|order| order.lines.len() as u64).sum()
}
