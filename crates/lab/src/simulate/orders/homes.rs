//! An experiment as the service runs it: a policy chooses the home of each unit, and learns from
//! orders when they arrive.

use std::collections::BTreeMap;

use dueling_bandits::evidence::Target;
use dueling_bandits::orders::{Baskets, By, Home, Line, Order, Page, Placed, Rules};
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, Duel, InFlight, PolicySpec, Setup, step_rng};
use interleaving::FastRng;
use rand::RngExt;

use super::shop::{name, rules};

const MARGIN: f64 = 0.01;
const DAY_MS: f64 = 86_400_000.0;

/// A fact that is still to come.
enum Fact {
    Links(Page, Vec<([u8; 5], i8)>),
    Order(Order),
    Cancelled(u64),
}

/// An experiment of several rankers.
pub(super) struct Homes {
    pub run: Run,
    baskets: Baskets,
    /// By the time at which they come.
    facts: BTreeMap<(i64, u64), (u64, Fact)>,
    seed: u64,
    /// The unit of now, and when its first page is issued.
    unit: u64,
    now: i64,
    closed: u64,
}

impl Homes {
    /// With this policy; `None` if it cannot have so many rankers.
    pub fn start(policy: &str, rankers: usize, rules: Rules, seed: u64) -> Option<Self> {
        let spec = PolicySpec::from_text(policy).ok()?;
        let target = Target { confidence: 0.95, margin: MARGIN };
        let mut run =
            Run::new(spec.start(Setup { rankers, seed }), target, rules.cohort_window_ms());
        run.look_for_drift();
        let baskets = Baskets::new(rules, seed, rankers);
        Some(Self { run, baskets, facts: BTreeMap::new(), seed, unit: 0, now: 0, closed: 0 })
    }

    /// When the first page of the unit of now is issued.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// The next unit arrives so many milliseconds later: what was to come by then has come. Returns
    /// its home.
    pub fn arrive(&mut self, later_ms: i64) -> Duel {
        self.unit += 1;
        self.now += later_ms;
        let now = self.now;
        let later = self.facts.split_off(&(now, 0));
        for ((at, _), (unit, fact)) in std::mem::replace(&mut self.facts, later) {
            let is_known = self.run.cohorts().knows(unit);
            let changed = match fact {
                Fact::Links(page, links) => self.baskets.link(unit, &page, &links, is_known),
                Fact::Cancelled(order) => self.baskets.cancel(order, at),
                Fact::Order(order) => match self.baskets.order(unit, order, is_known) {
                    Placed::Recorded(changed) => changed,
                    Placed::Late | Placed::Returning => continue,
                },
            };
            self.run.follow(&changed);
        }
        let closed = now - self.baskets.rules().cohort_window_ms();
        self.closed += self.run.close_baskets(&mut self.baskets, closed, now).len() as u64;
        self.run.catch_up();
        let mut rng = step_rng(self.seed, self.unit);
        let Duel { first, second } = self.run.select(&InFlight::new(), &mut rng).duel;
        let duel = Duel::new(first.min(second), first.max(second));
        let pair = (duel.first as u16, duel.second as u16);
        let home = Home { pair, at: now, ticket: 0, chosen_at: 0 };
        let changed = self.baskets.choose_home(self.unit, home);
        self.run.follow(&changed);
        duel
    }

    fn comes(&mut self, at: i64, fact: Fact, rng: &mut FastRng) {
        self.facts.insert((at, rng.random()), (self.unit, fact));
    }

    /// The unit clicks documents of its home on a page that is issued so long after its first one.
    /// They come at this time.
    pub fn clicks(
        &mut self,
        duel: Duel,
        after: i64,
        documents: &[(usize, i8)],
        at: i64,
        rng: &mut FastRng,
    ) {
        let links = documents.iter().map(|&(it, credit)| (name(it), credit)).collect();
        let page = Page { duel, issued_at: self.now + after, segment: 0 };
        self.comes(at, Fact::Links(page, links), rng);
    }

    /// The unit will order a document of this value. Returns the order.
    pub fn buys(&mut self, document: usize, value: f64, at: i64, rng: &mut FastRng) -> u64 {
        let lines = vec![Line { document: name(document), value, quantity: 1 }];
        let order = rng.random();
        self.comes(at, Fact::Order(Order { order, at, lines }), rng);
        order
    }

    /// An order will be cancelled.
    pub fn cancels(&mut self, order: u64, at: i64, rng: &mut FastRng) {
        self.comes(at, Fact::Cancelled(order), rng);
    }

    /// The number of units whose baskets are closed, clicked or not.
    pub fn closed_units(&self) -> u64 {
        self.closed
    }
}

/// The pages until the verdict by orders, with so many pages a day, of which the share `counting`
/// has an order that counts. Orders come half a day after the page in the mean.
pub fn pages(
    matrix: &PreferenceMatrix,
    pages_a_day: f64,
    counting: f64,
    rng: &mut FastRng,
) -> Option<u64> {
    // units without such an order change nothing: each unit stands for those until the next one
    let later_ms = (DAY_MS / (pages_a_day * counting)) as i64;
    let rules = rules(168.0, By::Orders);
    let mut homes = Homes::start("d-ts-verdict", matrix.rankers(), rules, rng.random())?;
    while homes.run.verdict().winner().is_none() {
        let duel = homes.arrive(later_ms);
        if duel.is_self() {
            continue;
        }
        let wins = rng.random_bool(matrix.win_probability(duel.first, duel.second));
        let document = rng.random_range(0..1 << 30);
        homes.clicks(duel, 0, &[(document, if wins { 127 } else { -127 })], homes.now(), rng);
        let days = -0.5 * libm::log(1.0 - rng.random::<f64>());
        homes.buys(document, 1.0, homes.now() + (days.min(7.0) * DAY_MS) as i64, rng);
    }
    Some((homes.closed_units() as f64 / counting) as u64)
}
