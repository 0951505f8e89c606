//! Three rankers or more: the policy of the service chooses the home of each unit, and learns from
//! orders when they arrive.

use std::collections::BTreeMap;

use dueling_bandits::evidence::Target;
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::scores::{Levels, WEIGHTS};
use dueling_bandits::orders::{Baskets, By, Home, Line, Order, Page, Placed};
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, Duel, InFlight, PolicySpec, Setup, step_rng};
use interleaving::FastRng;
use rand::RngExt;

use super::shop::{first_page, name, rules};

/// Time that a unit of the shop stands for: one in eight units is simulated.
const SPACE: u64 = 8;
const HOUR_MS: f64 = 3_600_000.0;
const MARGIN: f64 = 0.01;

/// An experiment of several rankers.
pub(super) struct Homes {
    pub run: Run,
    baskets: Baskets,
    /// Orders that are still to come, by their time.
    orders: BTreeMap<(i64, u64), (u64, Order)>,
    seed: u64,
    /// The unit of now.
    unit: u64,
}

impl Homes {
    /// With the default policy; `None` if it cannot have so many rankers.
    pub fn start(rankers: usize, seed: u64) -> Option<Self> {
        let spec = PolicySpec::from_text("d-ts-verdict").ok()?;
        let rules = rules(168.0, By::Orders);
        let target = Target { confidence: 0.95, margin: MARGIN };
        let policy = spec.start(Setup { rankers, seed });
        Some(Self {
            run: Run::new(policy, target, rules.cohort_window_ms()),
            baskets: Baskets::new(rules, seed, rankers),
            orders: BTreeMap::new(),
            seed,
            unit: 0,
        })
    }

    /// When the first page of the unit of now is issued.
    pub fn now(&self) -> i64 {
        first_page(SPACE * self.unit)
    }

    /// The next unit arrives: what was to come by then has come. Returns its home.
    pub fn arrive(&mut self) -> Duel {
        self.unit += 1;
        let now = self.now();
        let later = self.orders.split_off(&(now, 0));
        for (_, (unit, order)) in std::mem::replace(&mut self.orders, later) {
            let is_known = self.run.cohorts().knows(unit);
            if let Placed::Recorded(changed) = self.baskets.order(unit, order, is_known) {
                self.run.follow(&changed);
            }
        }
        let closed = now - self.baskets.rules().cohort_window_ms();
        self.run.close_baskets(&mut self.baskets, closed, now);
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

    /// The unit clicks documents of its home on a page that is issued so long after its first one.
    pub fn clicks(&mut self, duel: Duel, after: i64, documents: &[(usize, i8)]) {
        let links: Vec<_> = documents.iter().map(|&(it, credit)| (name(it), credit)).collect();
        let page = Page { duel, issued_at: self.now() + after, segment: 0 };
        let changed = self.baskets.link(self.unit, &page, &links, false);
        self.run.follow(&changed);
    }

    /// The unit will order a document.
    pub fn buys(&mut self, document: usize, at: i64, rng: &mut FastRng) {
        let lines = vec![Line { document: name(document), value: 1.0, quantity: 1 }];
        let order = Order { order: rng.random(), at, lines };
        self.orders.insert((at, order.order), (self.unit, order));
    }

    /// The units whose baskets are closed.
    pub fn closed_units(&self) -> u64 {
        let open = self.baskets.rules().cohort_window_ms() / first_page(SPACE);
        self.unit.saturating_sub(open as u64)
    }
}

/// Rankers of even and of odd numbers: half of the units like the former, and half the latter. Over
/// all, every pair is even. Where both rankers of a pair are of one kind, those who like it click
/// and buy more often, and orders of the second kind take three times as long. Returns whether the
/// orders ever prove ranker 0 against ranker 1, and the other way, and the weights of both.
pub(super) fn even(
    rankers: usize,
    units: u64,
    error: f64,
    rng: &mut FastRng,
) -> Option<([bool; 2], [f64; 2])> {
    let mut homes = Homes::start(rankers, rng.random())?;
    let evidence = LeadEvidence::over(0.0);
    let (mut proven, mut counted, mut weights) = ([false; 2], 0, [0.0; 2]);
    for _ in 0..units {
        let likes_even = rng.random_bool(0.5);
        let duel = homes.arrive();
        let kinds = [duel.first, duel.second].map(|ranker| ranker % 2 == 0);
        let (click, buy, of_first) = match (kinds[0] == kinds[1], kinds[0] == likes_even) {
            (true, true) => (0.8, 0.2, 0.5),
            (true, false) => (0.4, 0.02, 0.5),
            (false, true) => (0.6, 0.06, 0.7),
            (false, false) => (0.6, 0.06, 0.3),
        };
        let mut after = 0;
        while !duel.is_self() && (after == 0 || rng.random_bool(0.8)) {
            if rng.random_bool(click) {
                let is_first = rng.random_bool(of_first);
                let document = rng.random_range(0..1 << 30);
                homes.clicks(duel, after, &[(document, if is_first { 127 } else { -127 })]);
                if rng.random_bool(buy) {
                    let mean = if kinds[usize::from(!is_first)] { 12.0 } else { 36.0 };
                    let hours = -mean * libm::log(1.0 - rng.random::<f64>());
                    homes.buys(document, homes.now() + after + (hours * HOUR_MS) as i64, rng);
                }
            }
            after += 2_000;
        }
        let scores = homes.run.verdict().counted().scores();
        if scores.answers() > counted {
            counted = scores.answers();
            let levels = |x, y| scores.levels(x, y).copied().unwrap_or_default();
            let (of_0, of_1) = (levels(0, 1), levels(1, 0));
            weights = [&of_0, &of_1].map(|levels: &Levels| {
                levels.iter().zip(WEIGHTS).map(|(&count, weight)| f64::from(count) * weight).sum()
            });
            for (proven, (won, lost)) in proven.iter_mut().zip([(&of_0, &of_1), (&of_1, &of_0)]) {
                *proven |= evidence.ln_with_scores(0.0, 0.0, won, lost) >= -libm::log(error);
            }
        }
    }
    Some((proven, weights))
}
