//! Pages until a verdict: by orders, by clicks, and with two arms.

use dueling_bandits::evidence::Score;
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::orders::{Baskets, By};
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, Duel, InFlight, Outcome, PolicySpec, Setup, step_rng};
use interleaving::FastRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use serde::Serialize;

use super::Sides;
use super::homes::Homes;
use super::shop::{Habits, Seen, Shop, Taste, first_page, rules};
use crate::simulate::Progress;

const WINDOW: f64 = 168.0;
/// Units of each arm from which the conversion is estimated.
const ARM_UNITS: u64 = 400_000;

/// The truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// The first ranker orders by quality with less noise.
    Better,
    /// The first ranker orders by attraction, and the second one by quality.
    Bait,
}

/// Verdicts of one method.
#[derive(Debug, Clone, Serialize)]
pub struct Verdicts {
    /// Clicks, orders, money, or two arms.
    pub by: &'static str,
    /// The first ranker's part of what decided, over all experiments; `None` with three rankers.
    pub share: Option<f64>,
    /// Experiments.
    pub runs: u64,
    /// Those that proved each ranker.
    pub proven: Vec<u64>,
    /// The median number of pages, and that of nine of ten; `None` if fewer were decided.
    pub pages: [Option<u64>; 2],
}

fn verdicts(by: &'static str, share: Option<f64>, mut found: Vec<Decided>) -> Verdicts {
    let runs = found.len();
    let rankers = if share.is_some() { 2 } else { 3 };
    let won = |side| found.iter().flatten().filter(|&&(_, winner)| winner == side).count() as u64;
    let proven = (0..rankers).map(won).collect();
    found.sort_by_key(|it| it.map_or(u64::MAX, |(pages, _)| pages));
    let at = |place: usize| found.get(place).copied().flatten().map(|(pages, _)| pages);
    Verdicts { by, share, runs: runs as u64, proven, pages: [at(runs / 2), at(runs * 9 / 10)] }
}

/// Runs experiments by orders, by clicks and with two arms.
pub fn run(truth: Truth, runs: u64, seed: u64, progress: &Progress) -> Vec<Verdicts> {
    let quality = |noise| Taste { quality: 1.0, attraction: 0.0, noise, shared: 0.0 };
    let (correlation, rankers, buys, most_pages) = match truth {
        Truth::Better => (0.5, [quality(0.9), quality(1.6)], 0.033, 400_000),
        Truth::Bait => {
            let bait = Taste { quality: 0.0, attraction: 0.6, noise: 1.1, shared: 0.0 };
            (0.0, [bait, quality(1.0)], 0.04, 100_000)
        }
    };
    let shop = Shop::new(4000, 1, correlation, &rankers);
    let habits = Habits { buys, even: false, ..Habits::EVEN };
    let both: Vec<_> = (0..runs)
        .into_par_iter()
        .map(|run| {
            let mut rng = FastRng::seed_from_u64(seed ^ (run * 13 + 10_000));
            let found = one(&shop, &habits, most_pages, &mut rng);
            progress.advance(1);
            found
        })
        .collect();
    let of = |place: usize| both.iter().map(|sides| sides[place].won()).sum::<f64>() / runs as f64;
    let shares = [of(0), of(1)];
    let found = |place: usize| both.iter().map(|sides| sides[place].found).collect();
    let (arms_share, arms) = two_arms(&shop, &habits, runs, seed, progress);
    vec![
        verdicts("orders", Some(shares[0]), found(0)),
        verdicts("clicks", Some(shares[1]), found(1)),
        verdicts("two arms", Some(arms_share), arms),
    ]
}

/// Three rankers, of which the first one attracts clicks, and the second one sells most: by orders,
/// where the policy chooses the home of each unit, and by the clicks on its first page with one.
pub fn three(runs: u64, seed: u64, progress: &Progress) -> Vec<Verdicts> {
    let quality = |noise| Taste { quality: 1.0, attraction: 0.0, noise, shared: 0.0 };
    let bait = Taste { quality: 0.0, attraction: 0.6, noise: 1.1, shared: 0.0 };
    let shop = Shop::new(4000, 1, 0.0, &[bait, quality(0.9), quality(2.0)]);
    let habits = Habits { buys: 0.04, even: false, ..Habits::EVEN };
    let all = |one: &(dyn Fn(&mut FastRng) -> Decided + Sync)| {
        let of_run = |run: u64| {
            let found = one(&mut FastRng::seed_from_u64(seed ^ (run * 17 + 20_000)));
            progress.advance(1);
            found
        };
        (0..runs).into_par_iter().map(of_run).collect::<Vec<_>>()
    };
    vec![
        verdicts("orders", None, all(&|rng| by_orders(&shop, &habits, rng))),
        verdicts("clicks", None, all(&|rng| by_clicks(&shop, &habits, rng))),
    ]
}

/// Most pages of an experiment of three rankers.
const MOST_PAGES: u64 = 400_000;

fn by_orders(shop: &Shop, habits: &Habits, rng: &mut FastRng) -> Decided {
    // one in eight units is simulated
    let (space, rules) = (8 * first_page(1), rules(WINDOW, By::Orders));
    let mut homes = Homes::start("d-ts-verdict", 3, rules, rng.random())?;
    // pages until each unit
    let mut pages = vec![0];
    while homes.run.verdict().winner().is_none() && *pages.last()? < MOST_PAGES {
        let duel = homes.arrive(space);
        let seen = match duel.is_self() {
            true => Seen::Alone(duel.first),
            false => Seen::Both([duel.first, duel.second]),
        };
        let visit = shop.visit(habits, seen, WINDOW, rng);
        for (after, clicked) in visit.clicked.iter().filter(|_| !duel.is_self()) {
            let clicked: Vec<_> = clicked.iter().map(|it| (it.document, it.credit)).collect();
            homes.clicks(duel, *after, &clicked, homes.now() + after, rng);
        }
        for &(document, after) in &visit.bought {
            homes.buys(document, 1.0, homes.now() + after, rng);
        }
        pages.push(pages.last()? + visit.pages);
    }
    Some((pages[homes.closed_units() as usize], homes.run.verdict().winner()?))
}

fn by_clicks(shop: &Shop, habits: &Habits, rng: &mut FastRng) -> Decided {
    let spec = PolicySpec::from_text("d-ts-verdict").ok()?;
    let mut run = Run::of(spec.start(Setup { rankers: 3, seed: rng.random() }));
    let (mut pages, mut unit) = (0, 0);
    let seed = rng.random();
    while run.verdict().winner().is_none() && pages < MOST_PAGES {
        unit += 1;
        let selection = run.select(&InFlight::new(), &mut step_rng(seed, unit));
        let Duel { first, second } = selection.duel;
        let visit = shop.visit(habits, Seen::Both([first, second]), WINDOW, rng);
        pages += visit.pages;
        run.observe_shown(selection, visit.click_winner().unwrap_or(Outcome::None));
    }
    Some((pages, run.verdict().winner()?))
}

type Decided = Option<(u64, usize)>;

/// The rule that decides an experiment, and its decision.
struct Contest {
    sides: Sides,
    sums: [f64; 2],
    found: Decided,
}

impl Contest {
    fn new() -> Self {
        Self { sides: Sides::new(0.01, 0.05), sums: [0.0; 2], found: None }
    }

    fn count(&mut self, score: Score, won: bool, pages: u64) {
        self.sums[usize::from(!won)] += score.weight();
        let proven = self.sides.count(score, won);
        if self.found.is_none() && proven != [false; 2] {
            self.found = Some((pages, usize::from(proven[1])));
        }
    }

    /// The first ranker's part.
    fn won(&self) -> f64 {
        self.sums[0] / (self.sums[0] + self.sums[1])
    }
}

/// By orders, and by clicks.
fn one(shop: &Shop, habits: &Habits, most_pages: u64, rng: &mut FastRng) -> [Contest; 2] {
    let mut baskets = Baskets::new(rules(WINDOW, By::Orders), rng.random(), 2);
    let mut contests = [Contest::new(), Contest::new()];
    let (mut pages, mut unit) = (0, 0);
    while pages < most_pages && contests.iter().any(|it| it.found.is_none()) {
        unit += 1;
        let visit = shop.visit(habits, Seen::Both([0, 1]), WINDOW, rng);
        pages += visit.pages;
        if let Some(winner) = visit.click_winner() {
            let won = winner == Outcome::First;
            contests[1].count(Score::rounded(won, Score::ONE, false, |_| false), won, pages);
        }
        let Some(until) = shop.fold(&mut baskets, unit, &visit, rng) else { continue };
        for basket in baskets.close(until) {
            if let (Some(score), Some(credit)) = (basket.score, basket.credit) {
                contests[0].count(score, credit > 0.0, pages);
            }
        }
    }
    contests
}

/// Whether a unit orders, with each ranker alone: at any time, by the evidence of the lift.
fn two_arms(
    shop: &Shop,
    habits: &Habits,
    runs: u64,
    seed: u64,
    progress: &Progress,
) -> (f64, Vec<Decided>) {
    let window_ms = rules(WINDOW, By::Orders).window_ms;
    let arms = [0, 1].map(|ranker| {
        const CHUNKS: u64 = 64;
        let of_chunk = |chunk: u64| {
            let mut rng = FastRng::seed_from_u64(seed ^ (chunk * 31 + ranker as u64 + 77));
            let (mut ordered, mut pages) = (0, 0);
            for _ in 0..ARM_UNITS / CHUNKS {
                let visit = shop.visit(habits, Seen::Alone(ranker), WINDOW, &mut rng);
                ordered += u64::from(visit.orders_within(window_ms));
                pages += visit.pages;
            }
            (ordered, pages)
        };
        let add = |one: (u64, u64), two: (u64, u64)| (one.0 + two.0, one.1 + two.1);
        (0..CHUNKS).into_par_iter().map(of_chunk).reduce(|| (0, 0), add)
    });
    let ordered = (arms[0].0 + arms[1].0) as f64;
    let share = arms[0].0 as f64 / ordered;
    let pages_each = (arms[0].1 + arms[1].1) as f64 / ordered;
    let evidence = LeadEvidence::in_room_above(0.5);
    let threshold = libm::log(40.0);
    let arm = |run: u64| {
        let mut rng = FastRng::seed_from_u64(seed ^ (run + 70));
        let mut counts = [0.0; 2];
        for ordering in 1..400_000_u64 {
            counts[usize::from(!rng.random_bool(share))] += 1.0;
            let [won, lost] = counts;
            let proven = [evidence.ln(won, lost), evidence.ln(lost, won)].map(|it| it >= threshold);
            if proven != [false; 2] {
                return Some(((ordering as f64 * pages_each) as u64, usize::from(proven[1])));
            }
        }
        None
    };
    let found = (0..runs).into_par_iter().map(arm).collect();
    progress.advance(runs);
    (share, found)
}
