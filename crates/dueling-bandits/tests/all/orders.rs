//! Baskets of orders: every order of arrival, the evidence of their scores, homes, the join, lift.

use dueling_bandits::claims::alone::Arm;
use dueling_bandits::evidence::Target;
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::scores::{Levels, ScoreCounts};
use dueling_bandits::orders::{
    Alone, Arms, Baskets, By, Changed, Closed, Document, Home, Line, Order, Page, Placed, Rules,
    baskets, lift,
};
use dueling_bandits::run::Run;
use dueling_bandits::{Duel, Outcome, PolicySpec, Setup};

const HOUR: i64 = 3_600_000;
const RULES: Rules = Rules { window_ms: 168 * HOUR, arrival_ms: 36 * HOUR, by: By::Orders };
const UNIT: u64 = 0x7f3a_09c1_d2e4_b586;
/// Time of the first page.
const T0: i64 = 1_796_000_000_000;

fn new() -> Baskets {
    Baskets::new(RULES, 7, 2)
}

fn page(at: i64) -> Page {
    Page { duel: Duel::new(0, 1), issued_at: at, segment: 0 }
}

fn document(name: u8) -> Document {
    [name; 5]
}

fn order(order: u64, at: i64, documents: &[u8]) -> Order {
    let line = |&name: &u8| Line { document: document(name), value: 10.0, quantity: 1 };
    Order { order, at, lines: documents.iter().map(line).collect() }
}

/// A fact about a unit.
#[derive(Debug, Clone)]
enum Fact {
    Link(Page, u8, i8),
    Order(Order),
    Cancel(u64),
    Home(Home),
}

fn fold(baskets: &mut Baskets, facts: impl IntoIterator<Item = Fact>) {
    for fact in facts {
        match fact {
            Fact::Link(page, name, credit) => {
                baskets.link(UNIT, &page, &[(document(name), credit)], false);
            }
            Fact::Order(order) => {
                assert!(matches!(baskets.order(UNIT, order, false), Placed::Recorded(_)));
            }
            Fact::Cancel(order) => {
                baskets.cancel(order, T0 + 9 * HOUR);
            }
            Fact::Home(home) => {
                baskets.choose_home(UNIT, home);
            }
        }
    }
}

/// All orders of these facts.
fn permutations(facts: &[Fact]) -> Vec<Vec<Fact>> {
    if facts.is_empty() {
        return vec![Vec::new()];
    }
    (0..facts.len())
        .flat_map(|first| {
            let mut rest = facts.to_vec();
            let fact = rest.remove(first);
            permutations(&rest).into_iter().map(move |mut order| {
                order.push(fact.clone());
                order
            })
        })
        .collect()
}

/// The state before and after closing, and the closed baskets, which are the same in every order.
fn in_every_order(rankers: usize, facts: &[Fact]) -> Vec<Closed> {
    let mut found: Option<(String, Vec<Closed>, String)> = None;
    for facts in permutations(facts) {
        let mut baskets = Baskets::new(RULES, 7, rankers);
        fold(&mut baskets, facts);
        let before = state(&baskets);
        let closed = baskets.close(T0 + HOUR);
        let all = (before, closed, state(&baskets));
        match &found {
            None => found = Some(all),
            Some(first) => assert_eq!(first, &all),
        }
    }
    found.expect("an order").1
}

fn state(baskets: &Baskets) -> String {
    format!("{:?}", postcard::to_allocvec(baskets).expect("a state"))
}

#[test]
fn all_720_orders_of_arrival_are_one_state() {
    let closed = in_every_order(
        2,
        &[
            Fact::Link(page(T0), 1, 127),
            Fact::Link(page(T0 + 2 * HOUR), 2, -127),
            Fact::Order(order(1, T0 + 5 * HOUR, &[1, 3])),
            Fact::Order(order(2, T0 + 6 * HOUR, &[2])),
            Fact::Order(order(3, T0 + 7 * HOUR, &[1])),
            Fact::Cancel(2),
        ],
    );
    assert_eq!(closed.len(), 1);
    assert_eq!((closed[0].credit, closed[0].issued_at), (Some(1.0), T0));
    assert_eq!(closed[0].score.map(|score| score.weight()), Some(1.0));
}

#[test]
fn with_three_rankers_the_home_and_its_links_commute_too() {
    // of two servers, one that lags chooses later, and at an earlier position
    let home = |pair, after| Home { pair, at: T0 + after, ticket: after as u64, chosen_at: 9 };
    let other = Page { duel: Duel::new(2, 0), ..page(T0 + 1) };
    let closed = in_every_order(
        3,
        &[
            Fact::Home(home((0, 1), 4)),
            Fact::Home(home((0, 2), 5)),
            Fact::Link(other, 1, 127),
            Fact::Link(page(T0 + HOUR / 2), 2, -127),
            Fact::Order(order(1, T0 + 5 * HOUR, &[1, 2])),
        ],
    );
    assert_eq!(closed[0].duel, Some(Duel::new(0, 1)));
    assert_eq!(closed[0].credit, Some(-1.0));
    // without a home its links count for nothing, and the unit is known; with one ranker as well
    let link = || Fact::Link(page(T0 + 5), 1, 127);
    for facts in [vec![link()], vec![link(), Fact::Home(home((1, 1), 4))]] {
        let closed = in_every_order(3, &facts);
        assert_eq!(closed, [Closed { unit: UNIT, ..Closed::default() }]);
    }
}

#[test]
fn the_expected_answers_follow_every_fact() {
    let target = Target { confidence: 0.95, margin: 0.01 };
    let spec = PolicySpec::from_text("d-ts-verdict:margin=0.01").expect("a policy");
    let start =
        || Run::new(spec.start(Setup { rankers: 3, seed: 1 }), target, RULES.cohort_window_ms());
    let (mut run, mut baskets) = (start(), Baskets::new(RULES, 7, 3));
    let check = |run: &Run, baskets: &Baskets, answers: u64| {
        let state = (spec.clone(), Setup { rankers: 3, seed: 1 });
        let roster = dueling_bandits::Roster::new(3);
        let mut restored =
            Run::restore((&state.0, state.1), target, roster, run.saved()).expect("a saved run");
        restored.expect(baskets);
        assert_eq!(restored.expected().scores(), run.expected().scores());
        assert_eq!(run.expected().scores().answers(), answers);
    };
    for unit in 0..90_u64 {
        let (first, second) = [(0, 1), (0, 2), (1, 2)][unit as usize % 3];
        let at = T0 + unit as i64 * HOUR;
        let pages =
            [0, 1].map(|hour| Page { duel: Duel::new(second, first), ..page(at + hour * HOUR) });
        let home = Home { pair: (first as u16, second as u16), at, ticket: 0, chosen_at: 0 };
        let bought = order(unit, at + 2 * HOUR, &[1]);
        // the home comes last, or in between
        let home_first = unit % 2 == 0;
        for late in [!home_first, home_first] {
            if late {
                run.follow(&baskets.choose_home(unit, home));
                continue;
            }
            run.follow(&baskets.link(unit, &pages[0], &[(document(1), -127)], false));
            if let Placed::Recorded(changed) = baskets.order(unit, bought.clone(), false) {
                run.follow(&changed);
            }
            // the document comes back on the other side
            if unit % 5 == 0 {
                run.follow(&baskets.link(unit, &pages[1], &[(document(1), 127)], false));
            }
        }
        if unit % 9 == 1 {
            run.follow(&baskets.cancel(unit, at + 3 * HOUR));
        }
    }
    check(&run, &baskets, 64);
    run.close_baskets(&mut baskets, T0 + 40 * HOUR, 0);
    assert!(run.verdict().comparisons() > 20);
    check(&run, &baskets, 64);
    run.close_baskets(&mut baskets, T0 + 400 * HOUR, 0);
    check(&run, &baskets, 64);
    assert_eq!(run.expected().scores(), run.verdict().counted().scores());
}

/// The closed basket of one unit.
fn closed(rules: Rules, facts: impl IntoIterator<Item = Fact>) -> (Closed, Baskets) {
    let mut baskets = Baskets::new(rules, 7, 2);
    fold(&mut baskets, facts);
    let closed = baskets.close(T0 + HOUR);
    (closed[0], baskets)
}

#[test]
fn the_mean_of_the_evidence_of_12_baskets_is_1_at_the_edge() {
    let credit = |bought: &[u8]| {
        let links = [(1, 127), (2, -127), (3, 0)];
        let links = links.map(|(name, credit)| Fact::Link(page(T0), name, credit));
        closed(RULES, links.into_iter().chain([Fact::Order(order(1, T0, bought))])).0
    };
    let baskets = [credit(&[1]), credit(&[2, 3]), credit(&[9])];
    assert_eq!(baskets.map(|it| it.credit), [Some(1.0), Some(-0.5), None]);
    let edge = 0.49;
    let lost = 0.5;
    let won = edge * 0.5 * lost / (1.0 - edge);
    let probabilities = [won, lost, 1.0 - won - lost];
    let evidence = LeadEvidence::over(0.5 - edge);
    // the evidence is a function of how many baskets have each score
    let mut known = std::collections::BTreeMap::new();
    let mut mean = 0.0;
    for mut path in 0..3_usize.pow(12) {
        let (mut probability, mut counts) = (1.0, [0_u32; 3]);
        for _ in 0..12 {
            probability *= probabilities[path % 3];
            counts[path % 3] += 1;
            path /= 3;
        }
        mean += probability
            * *known.entry(counts).or_insert_with(|| {
                let mut scores = ScoreCounts::default();
                for (basket, &count) in baskets.iter().zip(&counts) {
                    if let (Some(duel), Some(score)) = (basket.duel, basket.score) {
                        scores.add(duel, score, count);
                    }
                }
                let of = |x, y| scores.levels(x, y).copied().unwrap_or_default();
                evidence.ln_with_scores(0.0, 0.0, &of(0, 1), &of(1, 0)).exp()
            });
    }
    assert!((mean - 1.0).abs() < 1e-11, "{mean}");
    // beyond the edge it grows: the test can fail
    let one = |levels: (usize, usize)| {
        let mut of: [Levels; 2] = Default::default();
        of[levels.0][levels.1] = 1;
        evidence.ln_with_scores(0.0, 0.0, &of[0], &of[1]).exp()
    };
    let (up, down) = (one((0, 8)), one((1, 6)));
    assert!((1.1 * won * up + lost * down + (1.0 - 1.1 * won - lost)) > 1.001);
}

#[test]
fn credit_is_split_over_the_pages_that_came_before_the_order() {
    let links = || {
        [(0, 127), (2, -127), (8, -127)]
            .map(|(hours, credit)| Fact::Link(page(T0 + hours * HOUR), 1, credit))
    };
    let at = |hours: i64| {
        let bought = Fact::Order(order(1, T0 + hours * HOUR, &[1]));
        closed(RULES, links().into_iter().chain([bought])).0.credit
    };
    assert_eq!([at(1), at(3), at(168)], [Some(1.0), Some(0.0), Some(-1.0 / 3.0)]);
    assert_eq!((at(169), at(-1)), (None, None));
}

#[test]
fn pieces_are_cut_and_money_is_capped() {
    let line = |name, value, quantity| Line { document: document(name), value, quantity };
    let facts = || {
        let lines = vec![line(1, 40.0, 100), line(2, 100.0, 10)];
        [
            Fact::Link(page(T0), 1, 127),
            Fact::Link(page(T0), 2, -127),
            Fact::Order(Order { order: 1, at: T0, lines }),
        ]
    };
    assert_eq!(closed(RULES, facts()).0.credit, Some(0.0));
    let money = |cap| closed(Rules { by: By::Money { cap }, ..RULES }, facts()).0.credit;
    assert_eq!((money(6000.0), money(100.0)), (Some(0.5), Some(1.0)));
}

#[test]
fn every_line_is_found_in_the_join() {
    let mut baskets = new();
    let link = |baskets: &mut Baskets, unit, at, documents: &[(Document, i8)]| {
        baskets.link(unit, &page(at), documents, false);
    };
    link(&mut baskets, 1, T0, &[(document(1), 127), (document(2), 0)]);
    link(&mut baskets, 1, T0 + 20 * HOUR, &[(document(4), 127)]);
    baskets.order(1, order(1, T0 + HOUR, &[1, 2, 3, 4]), false);
    baskets.order(2, order(2, T0 + HOUR * 3 / 2, &[1]), false);
    assert_eq!(baskets.close(T0 + HOUR).len(), 1);
    // cohorts after the order have not closed yet: its page may come
    assert_eq!(baskets.left().join.unit_unknown, 0);
    baskets.close(T0 + 2 * HOUR);
    assert_eq!(baskets.order(1, order(3, T0 + 3 * HOUR, &[1]), true), Placed::Returning);
    assert_eq!(baskets.order(1, order(4, T0, &[1]), true), Placed::Late);
    let join = &baskets.left().join;
    assert_eq!((join.credited, join.of_both, join.not_clicked, join.before_page), (1, 1, 1, 1));
    assert_eq!((join.unit_unknown, join.returning, join.late, join.alone), (1, 1, 1, 0));
    let within = baskets.left().delays.quantile(0.9).expect("lines");
    assert!((HOUR..HOUR * 6 / 5).contains(&within), "{within}");
    assert_eq!((baskets.bytes(), baskets.oldest()), (0, None));
}

fn run() -> Run {
    let spec = PolicySpec::from_text("uniform").expect("a policy");
    let target = Target { confidence: 0.95, margin: 0.01 };
    Run::new(spec.start(Setup { rankers: 2, seed: 1 }), target, RULES.cohort_window_ms())
}

/// Folds units, of which ranker 0 gets the order of most, and closes their baskets.
fn shop(units: u64, learns: bool) -> (Run, Baskets) {
    let (mut run, mut baskets) = (run(), new());
    for unit in 0..units {
        let credit = if unit % 4 == 0 { -127 } else { 127 };
        let at = T0 + unit as i64 * HOUR;
        baskets.link(unit, &page(at), &[(document(1), credit)], run.cohorts().knows(unit));
        if let Placed::Recorded(changed) =
            baskets.order(unit, order(unit, at, &[1]), run.cohorts().knows(unit))
            && learns
        {
            run.follow(&changed);
        }
    }
    run.expect(&baskets);
    (run, baskets)
}

#[test]
fn a_basket_counts_once_when_its_cohort_closes_whatever_the_policy_has_learned() {
    let (mut run, mut baskets) = shop(200, true);
    assert_eq!(run.verdict().comparisons(), 0);
    assert_eq!(run.expected().scores().answers(), 200);
    let steps = run.policy().tally().steps();
    assert_eq!(steps, 200);
    let closed = run.close_baskets(&mut baskets, T0 + 100 * HOUR, 0);
    assert_eq!(run.verdict().comparisons(), closed.len() as u64);
    assert!((99..=100).contains(&closed.len()), "{}", closed.len());
    assert_eq!(run.expected().scores().answers(), 200);
    run.close_baskets(&mut baskets, T0 + 300 * HOUR, 0);
    assert_eq!(run.verdict().winner(), Some(0));
    let (mut silent, mut same) = shop(200, false);
    silent.close_baskets(&mut same, T0 + 100 * HOUR, 0);
    silent.close_baskets(&mut same, T0 + 300 * HOUR, 0);
    assert_eq!(silent.verdict().counted().scores(), run.verdict().counted().scores());
    assert_eq!(silent.verdict().winner(), Some(0));
    assert_eq!(format!("{same:?}"), format!("{baskets:?}"));
}

/// People begin to buy of the other ranker.
#[test]
fn a_change_of_what_people_buy_is_drift() {
    for turns in [false, true] {
        let (mut run, mut baskets) = (run(), new());
        run.look_for_drift();
        for unit in 0..1200 {
            let is_first = (unit % 4 != 0) == (unit < 600 || !turns);
            let (at, credit) = (T0 + unit as i64 * HOUR, if is_first { 127 } else { -127 });
            // half of the credit: a coin makes one basket of two a win
            let links = [(document(1), credit), (document(2), 0)];
            baskets.link(unit, &page(at), &links, false);
            baskets.order(unit, order(unit, at, &[1, 2]), false);
        }
        run.close_baskets(&mut baskets, T0 + 2000 * HOUR, 0);
        let drift = run.drift().expect("who looks");
        assert_eq!(drift.raised(), u32::from(turns), "{drift:?}");
        assert_eq!(run.verdict().comparisons(), 1200);
        let counted = run.verdict().counted();
        let [x, y] = [(0, 1), (1, 0)].map(|(x, y)| counted.wins(run.policy().tally(), x, y));
        assert!(x + y == 600.0 && (run.policy().tally().steps() == 0), "{x} {y}");
    }
}

#[test]
fn a_unit_without_an_order_is_known_once_its_basket_has_closed() {
    let (mut run, mut baskets) = (run(), new());
    baskets.link(5, &page(T0), &[(document(1), 127)], false);
    assert_eq!(baskets.units(), (1, 0));
    run.close_baskets(&mut baskets, T0 + HOUR, 0);
    assert!(run.cohorts().knows(5) && run.verdict().comparisons() == 0);
    let later = page(T0 + 9 * HOUR);
    baskets.link(5, &later, &[(document(1), 127)], run.cohorts().knows(5));
    assert_eq!(baskets.units(), (0, 1));
}

#[test]
fn a_basket_that_opens_after_its_home_is_the_oldest_one() {
    let mut baskets = Baskets::new(RULES, 7, 3);
    baskets.choose_home(UNIT, Home { pair: (0, 1), at: T0, ticket: 0, chosen_at: 0 });
    assert_eq!(baskets.oldest(), Some(T0));
    baskets.link(UNIT, &page(T0 + 9 * HOUR), &[(document(1), 127)], false);
    assert!(baskets.close(T0 + HOUR).is_empty());
    assert_eq!(baskets.oldest(), Some(T0 + 9 * HOUR));
    assert_eq!(baskets.close(T0 + 10 * HOUR)[0].duel, Some(Duel::new(0, 1)));
    assert_eq!(baskets.oldest(), None);
}

#[test]
fn the_first_credit_of_a_unit_is_for_the_policy() {
    let mut baskets = new();
    let credited = |changed: Changed| changed.credited.map(|it| it.outcome);
    let nothing = Placed::Recorded(Changed::default());
    assert_eq!(baskets.order(UNIT, order(1, T0, &[1]), false), nothing);
    let second = baskets.link(UNIT, &page(T0), &[(document(1), -127)], false);
    assert_eq!(credited(second), Some(Outcome::Second));
    assert_eq!(credited(baskets.link(UNIT, &page(T0), &[(document(2), -127)], false)), None);
}

#[test]
fn one_id_for_many_people_counts_once_and_is_not_looked_at_before() {
    let mut baskets = new();
    let pages = |of: std::ops::Range<i64>| of.map(|at| Fact::Link(page(T0 + at * 1000), 1, 127));
    fold(&mut baskets, pages(0..100));
    let orders = |of: std::ops::Range<u64>| of.map(|at| Fact::Order(order(at, T0 + HOUR, &[1, 2])));
    fold(&mut baskets, orders(0..100));
    assert_eq!((baskets.expected().count(), baskets.ordered()), (1, (1, 0)));
    fold(&mut baskets, orders(100..101));
    assert_eq!((baskets.expected().count(), baskets.ordered()), (0, (0, 0)));
    let saved = postcard::to_allocvec(&baskets).expect("postcard");
    let restored: Baskets = postcard::from_bytes(&saved).expect("the same");
    assert_eq!(restored.restored(RULES, 2).expect("sound"), baskets);
    fold(&mut baskets, [Fact::Cancel(7)]);
    assert_eq!(baskets.expected().count(), 1);
    fold(&mut baskets, orders(101..300));
    let closed = baskets.close(T0 + HOUR);
    assert_eq!((closed.len(), closed[0].credit), (1, Some(1.0)));
    assert_eq!(baskets.ordered(), (0, 1));
}

#[test]
fn saved_baskets_go_on_as_they_were() {
    let (_, mut baskets) = shop(50, false);
    let saved = postcard::to_allocvec(&baskets).expect("postcard");
    let restored: Baskets = postcard::from_bytes(&saved).expect("the same");
    assert!(restored.clone().restored(Rules { window_ms: 1, ..RULES }, 2).is_none());
    assert!(restored.clone().restored(RULES, 1).is_none());
    let mut restored = restored.restored(RULES, 2).expect("sound");
    assert_eq!(restored, baskets);
    assert_eq!(restored.close(T0 + 30 * HOUR), baskets.close(T0 + 30 * HOUR));
    assert_eq!(restored, baskets);
}

#[test]
fn above_the_bound_half_of_the_units_are_kept_whatever_they_buy() {
    let mut baskets = new();
    let documents: Vec<_> = (0..60).map(|name| (document(name), 127)).collect();
    let mut units = 0;
    while baskets.sampled() == 1.0 {
        units += 1;
        baskets.link(units, &page(T0), &documents, false);
        assert!(baskets.bytes() <= baskets::MOST_BYTES);
    }
    let (kept, _) = baskets.units();
    assert_eq!(baskets.sampled(), 0.5);
    assert!((kept as f64 / units as f64 - 0.5).abs() < 0.01);
    // a unit outside of the sample stays outside, a new order or not
    for unit in 1..=units {
        baskets.order(unit, order(unit, T0, &[1]), false);
        if !baskets.holds(unit) {
            baskets.link(unit, &page(T0), &documents, false);
        }
    }
    assert_eq!((baskets.units(), baskets.ordered()), ((kept, 0), (kept, 0)));
}

#[test]
fn clicks_and_orders_that_differ_are_found() {
    let mut baskets = new();
    let mut scores = ScoreCounts::default();
    for unit in 0..500 {
        // clicks prefer ranker 0 in 65 % of baskets, and every order is ranker 1's
        let names: &[u8] = if unit < 325 { &[1, 1, 2] } else { &[3] };
        let credits = names.iter().zip([127, 127, -127]);
        let own = if unit < 325 { 2 } else { 4 };
        let mut links: Vec<_> = credits.map(|(&name, credit)| (document(name), credit)).collect();
        if unit < 325 {
            links[1].0 = document(5);
        } else {
            links = vec![(document(4), -127)];
        }
        baskets.link(unit, &page(T0), &links, false);
        baskets.order(unit, order(unit, T0, &[own]), false);
    }
    for basket in baskets.close(T0 + HOUR) {
        scores.add(basket.duel.expect("a pair"), basket.score.expect("an order"), 1);
    }
    let beside = &baskets.left().beside;
    assert_eq!((beside.clicks(0, 1), beside.clicks(1, 0)), ([325, 175], [175, 325]));
    let agreement = beside.agreement(0.95);
    assert_eq!((agreement.agree, agreement.disagree), (175, 325));
    let (low, high) = agreement.interval;
    assert!((low - 0.279).abs() < 1e-3 && (high - 0.425).abs() < 1e-3, "{low} {high}");
    assert_eq!(beside.misleading(&scores, 2, 0.95), [Duel::new(0, 1)]);
    assert_eq!(beside.misleading(&ScoreCounts::default(), 2, 0.95), []);
}

#[test]
fn orders_after_the_window_put_a_verdict_in_doubt() {
    let (mut run, mut baskets) = shop(200, false);
    let cuts_off = |run: &Run, baskets: &Baskets| {
        let tally = run.policy().tally();
        baskets.left().beside.cuts_off(run.verdict(), tally, run.roster().active(), 0)
    };
    for unit in 200..270 {
        let at = T0 + 100 * HOUR;
        baskets.link(unit, &page(at), &[(document(1), -127)], false);
        baskets.order(unit, order(unit, at + 170 * HOUR, &[1]), false);
    }
    run.close_baskets(&mut baskets, T0 + 90 * HOUR, 0);
    assert!(!cuts_off(&run, &baskets));
    run.close_baskets(&mut baskets, T0 + 300 * HOUR, 0);
    assert_eq!(run.verdict().winner(), Some(0));
    assert_eq!(baskets.left().beside.beyond(1, 0), [70, 0]);
    assert!(cuts_off(&run, &baskets));
}

#[test]
fn what_the_ratio_refutes_is_an_interval() {
    let counts: [(f64, f64); 4] = [(0.0, 3.0), (30.0, 2.0), (400.0, 380.0), (2.0, 900.0)];
    let mut levels: [Levels; 2] = Default::default();
    (levels[0][3], levels[1][5]) = (40, 17);
    for (wins, losses) in counts {
        let ln = |null: f64| {
            LeadEvidence::in_room_above(null).ln_with_scores(wins, losses, &levels[0], &levels[1])
        };
        let all: Vec<f64> = (1..100).map(|null| ln(f64::from(null) / 100.0)).collect();
        assert!(all.is_sorted_by(|one, next| one >= next), "{wins} {losses}: {all:?}");
    }
}

#[test]
fn alone_units_give_the_lift_of_their_leader() {
    let rules = Rules { by: By::Money { cap: 50.0 }, ..RULES };
    let mut baskets = Baskets::new(rules, 7, 3);
    for unit in 0..4000_u64 {
        let arm = if unit % 2 == 0 { Arm::Leader } else { Arm::Control };
        baskets.alone(unit, Alone::of(arm, 1, 0, T0));
        // 40 % against 20 % of units order
        if unit % 10 < 4 && (arm == Arm::Leader || unit % 20 < 10) {
            baskets.order(unit, order(unit, T0 + HOUR, &[9]), true);
        }
    }
    baskets.close(T0 + HOUR);
    baskets.order(2, order(9999, T0 + 2 * HOUR, &[9]), true);
    assert_eq!((baskets.left().join.alone, baskets.left().join.returning), (1200, 1));
    let lift = baskets.left().lifts.lift(1, 0, 0.05).expect("units");
    assert_eq!((lift.arms.units, lift.arms.ordered), ([2000, 2000], [800, 400]));
    let (low, high) = lift.orders;
    assert!(low > 0.5 && low < 1.0 && high > 1.0 && high < 2.0, "{low} {high}");
    let (low, high) = lift.money.expect("a cap");
    assert!(low > 0.3 && low < 1.0 && high > 1.0 && high < 2.5, "{low} {high}");
    assert!(lift.error < 0.05 && baskets.left().lifts.lift(2, 0, 0.05).is_none());
    assert_eq!(baskets.bytes(), 0);
    let half = lift::half_width(100_000, 0.11, 0.05);
    assert!((0.05..0.08).contains(&half), "{half}");
    // an even table holds 0, and nothing is said before the first unit
    let even = Arms { ordered: [50, 50], ..Arms::default() };
    assert!(even.orders(0.05).0 < 0.0 && even.orders(0.05).1 > 0.0);
    assert!(Arms::default().orders(0.05).0 < -0.9);
}
