//! Properties of every method, checked on all pairs of short lists and for every sequence of coins.

use std::collections::BTreeMap;

use interleaving::methods::probabilistic;
use interleaving::{
    Click, CreditSheet, CreditSlot, DuelCoins, Lists, Outcome, Page, Request, Spec, Team, Uncached,
    credit, draft, interleave,
};
use proptest::prelude::*;

use super::exact::{every_branch, name};

const METHODS: [&str; 17] = [
    "team-draft",
    "team-draft:shared=credit-all",
    "team-draft:shared=ignore-prefix",
    "team-draft:shared=ignore-same-rank",
    "team-draft:shared=ignore-round",
    "team-draft:shared=credit-all,verdict=score",
    "balanced",
    "balanced:credit=debiased",
    "balanced:credit=debiased,verdict=score",
    "probabilistic",
    "probabilistic:verdict=sign",
    "probabilistic:verdict=drawn",
    "probabilistic:credit=expected-clicks,tau=1",
    "optimized:depth=4",
    "optimized:depth=4,verdict=sign",
    "optimized:depth=3,credit=linear",
    "optimized:depth=4,max_lists=2",
];

/// Methods that prefer a side under random clicks; `searchers` in the vectors has the numbers.
const UNFAIR: [&str; 2] = ["balanced", "team-draft:shared=ignore-same-rank"];

fn spec(text: &str) -> Spec {
    Spec::from_text(text).expect(text)
}

/// Pairs of lists: all orders of three documents, and lists that share only some documents.
pub(super) fn pairs() -> Vec<(Vec<String>, Vec<String>)> {
    let mut pairs = Vec::new();
    for documents in [[0, 1, 2], [1, 2, 3], [2, 3, 4]] {
        pairs.extend(permutations(&documents).into_iter().map(|right| (vec![0, 1, 2], right)));
    }
    for right in [[1, 2, 3, 0], [3, 2, 1, 0], [0, 1, 3, 2], [4, 0, 1, 5], [4, 5, 6, 7]] {
        pairs.push((vec![0, 1, 2, 3], right.to_vec()));
    }
    pairs.iter().map(|(left, right)| (names(left), names(right))).collect()
}

fn permutations(items: &[u32]) -> Vec<Vec<u32>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, &first) in items.iter().enumerate() {
        let rest: Vec<u32> = [&items[..at], &items[at + 1..]].concat();
        all.extend(permutations(&rest).into_iter().map(|tail| [&[first], &tail[..]].concat()));
    }
    all
}

pub(super) fn names(list: &[u32]) -> Vec<String> {
    list.iter().map(u32::to_string).collect()
}

fn request<'a>(left: &'a [String], right: &'a [String], length: usize) -> Request<'a, String> {
    Request { left, right, offset: 0, length, pinned: &[] }
}

/// Every page with its probability.
fn pages<'a>(spec: &Spec, request: &Request<'a, String>) -> Vec<(Page<'a>, f64)> {
    every_branch(|coins| interleave(spec, request, coins, &Uncached).expect("a valid request"))
        .into_iter()
        .map(|(page, probability)| (page, probability.value()))
        .collect()
}

/// Probability of each outcome, and the mean score. `clicks` returns the clicks of a searcher on a
/// page, with their probabilities.
fn outcomes(
    spec: &Spec,
    request: &Request<'_, String>,
    clicks: impl Fn(&Page<'_>) -> Vec<(Vec<Click>, f64)>,
) -> (BTreeMap<&'static str, f64>, f64) {
    let mut outcomes = BTreeMap::from([("left", 0.0), ("right", 0.0), ("tie", 0.0), ("none", 0.0)]);
    let mut mean = 0.0;
    for (page, probability) in pages(spec, request) {
        for (clicks, share) in clicks(&page) {
            for (earned, drawn) in every_branch(|coins| {
                credit(spec, &page.sheet, &clicks, coins).expect("valid clicks")
            }) {
                let weight = probability * share * drawn.value();
                *outcomes.entry(name(earned.outcome)).or_default() += weight;
                mean += weight * if earned.outcome == Outcome::None { 0.0 } else { earned.score() };
            }
        }
    }
    (outcomes, mean)
}

/// The searcher who clicks those of these documents that are shown.
fn clicks_on(documents: &[impl AsRef<str>]) -> impl Fn(&Page<'_>) -> Vec<(Vec<Click>, f64)> {
    |page| {
        let shown = documents.iter().filter_map(|id| page.position_of(id.as_ref()).ok());
        vec![(shown.map(Click::at).collect(), 1.0)]
    }
}

fn one_random_click(page: &Page<'_>) -> Vec<(Vec<Click>, f64)> {
    let shown = page.slots.len();
    (0..shown).map(|position| (vec![Click::at(position)], 1.0 / shown as f64)).collect()
}

#[test]
fn property_1_pages_are_full_and_show_each_document_once() {
    for method in METHODS {
        for (left, right) in pairs() {
            let all: std::collections::BTreeSet<&String> = left.iter().chain(&right).collect();
            // Probabilistic interleaving has too many branches for a long page.
            let longest = if method.starts_with("probabilistic") { 4 } else { 9 };
            for length in 1..=longest {
                for (page, _) in pages(&spec(method), &request(&left, &right, length)) {
                    let mut shown: Vec<&str> =
                        page.slots.iter().map(|slot| slot.document).collect();
                    assert_eq!(shown.len(), length.min(all.len()), "{method} {left:?} {right:?}");
                    assert_eq!(page.total, all.len());
                    assert!(shown.iter().all(|id| all.contains(&id.to_string())));
                    shown.sort_unstable();
                    shown.dedup();
                    assert_eq!(shown.len(), page.slots.len(), "{method}: {:?}", page.slots);
                }
            }
        }
    }
}

#[test]
fn property_2_the_next_document_is_the_top_remaining_one_of_a_side() {
    for method in METHODS.iter().filter(|method| !method.starts_with("probabilistic")) {
        for (left, right) in pairs() {
            for (page, _) in pages(&spec(method), &request(&left, &right, 9)) {
                let mut shown: Vec<&str> = Vec::new();
                for slot in &page.slots {
                    let top = |list: &[String]| {
                        list.iter().find(|id| !shown.contains(&id.as_str())).cloned()
                    };
                    let tops = [top(&left), top(&right)];
                    assert!(
                        tops.contains(&Some(slot.document.to_string())),
                        "{method}: {:?}",
                        page.slots
                    );
                    shown.push(slot.document);
                }
            }
        }
    }
}

#[test]
fn property_3_exchanging_the_sides_exchanges_the_outcomes() {
    for method in METHODS {
        for (left, right) in pairs() {
            for length in [2, 3, 4] {
                for clicked in [&["0"][..], &["1"], &["2"], &["0", "2"], &["1", "2", "3"]] {
                    let (one, mean) = outcomes(
                        &spec(method),
                        &request(&left, &right, length),
                        clicks_on(clicked),
                    );
                    let (other, mirrored) = outcomes(
                        &spec(method),
                        &request(&right, &left, length),
                        clicks_on(clicked),
                    );
                    let id = format!(
                        "{method} {left:?} {right:?} {length} {clicked:?}: {one:?} {other:?}"
                    );
                    for (here, there) in
                        [("left", "right"), ("right", "left"), ("tie", "tie"), ("none", "none")]
                    {
                        assert!((one[here] - other[there]).abs() < 1e-9, "{id}");
                    }
                    assert!((mean + mirrored).abs() < 1e-9, "{id}");
                }
            }
        }
    }
}

#[test]
fn property_4_random_clicks_prefer_neither_side() {
    for method in METHODS.iter().filter(|method| !UNFAIR.contains(method)) {
        for (left, right) in pairs() {
            for length in 1..=4 {
                let request = request(&left, &right, length);
                if pages(&spec(method), &request).iter().any(|(page, _)| page.note.is_some()) {
                    // There is no unbiased distribution, and the page has a note about it.
                    continue;
                }
                let (one, mean) = outcomes(&spec(method), &request, one_random_click);
                assert!(mean.abs() < 1e-9, "{method} {left:?} {right:?} {length}: {mean} {one:?}");
                // Where credit counts clicks, its sign is fair too.
                if method.starts_with("team-draft") || method.ends_with("drawn") {
                    assert!(
                        (one["left"] - one["right"]).abs() < 1e-9,
                        "{method} {left:?} {right:?}: {one:?}"
                    );
                }
            }
        }
    }
}

/// Pairs of lists, and documents that the right list ranks higher than the left list.
fn dominated() -> Vec<(Vec<String>, Vec<String>, Vec<String>)> {
    let left = vec![0, 1, 2, 3];
    let mut found = Vec::new();
    for right in permutations(&left) {
        let rank = |document: u32| right.iter().position(|&other| other == document).unwrap_or(9);
        let gains: Vec<u32> =
            (0..4).filter(|&document| rank(document) < document as usize).collect();
        let sets = gains.iter().map(|&document| vec![document]);
        let sets = sets.chain((gains.len() > 1).then(|| gains.clone()));
        found.extend(sets.map(|set| (names(&left), names(&right), names(&set))));
    }
    found
}

#[test]
fn property_5_the_side_that_ranks_the_clicked_documents_higher_is_preferred() {
    for method in
        ["probabilistic", "probabilistic:credit=expected-clicks", "optimized:depth=4", "balanced"]
    {
        let mut undetected = Vec::new();
        for (left, right, clicked) in dominated() {
            let request = request(&left, &right, 4);
            if pages(&spec(method), &request).iter().any(|(page, _)| page.note.is_some()) {
                continue;
            }
            let (_, mean) = outcomes(&spec(method), &request, clicks_on(&clicked));
            assert!(mean < 1e-9, "{method} {left:?} {right:?} {clicked:?}: {mean}");
            if mean > -1e-9 {
                undetected.push((right, clicked));
            }
        }
        assert!(undetected.is_empty(), "{method} does not detect {undetected:?}");
    }
}

#[test]
fn property_5_team_draft_misses_some_preferences_but_never_reverses_one() {
    let mut missed = 0;
    for (left, right, clicked) in dominated() {
        for method in ["team-draft", "team-draft:shared=credit-all"] {
            let request = request(&left, &right, 4);
            let (_, mean) = outcomes(&spec(method), &request, clicks_on(&clicked));
            assert!(mean < 1e-9, "{method} {left:?} {right:?} {clicked:?}: {mean}");
            missed += usize::from(mean > -1e-9);
        }
    }
    assert!(missed > 0);
}

#[test]
fn property_6_identical_lists_give_no_signal() {
    for method in METHODS {
        for list in [vec![0], vec![0, 1], vec![0, 1, 2, 3]] {
            let list = names(&list);
            for length in 1..=4 {
                let request = request(&list, &list, length);
                for (page, _) in pages(&spec(method), &request) {
                    assert!(!page.is_informative(), "{method}");
                }
                let (outcomes, _) = outcomes(&spec(method), &request, one_random_click);
                assert!((outcomes["none"] - 1.0).abs() < 1e-9, "{method}: {outcomes:?}");
            }
        }
    }
}

#[test]
fn property_7_a_seed_gives_the_same_list_on_every_server_and_page() {
    let left: Vec<String> = (0..30).map(|n| format!("d{n}")).collect();
    let right: Vec<String> = (0..30).map(|n| format!("d{}", (n * 7 + 3) % 37)).collect();
    for method in METHODS {
        let spec = spec(method);
        for seed in 0..20_u8 {
            let page = |offset, length| {
                let request = Request { left: &left, right: &right, offset, length, pinned: &[] };
                interleave(&spec, &request, &mut DuelCoins::drafting([seed; 32]), &Uncached)
                    .expect(method)
            };
            let whole = page(0, 40);
            assert_eq!(whole, page(0, 40), "{method}");
            let mut pieces = Vec::new();
            for offset in (0..40).step_by(7) {
                pieces.extend(page(offset, 7).slots);
            }
            pieces.truncate(whole.slots.len());
            let shown = |slots: &[interleaving::Slot<'_>]| -> Vec<(String, usize, Option<Team>)> {
                slots
                    .iter()
                    .map(|slot| (slot.document.to_string(), slot.position, slot.team))
                    .collect()
            };
            assert_eq!(shown(&whole.slots), shown(&pieces), "{method}, seed {seed}");
        }
    }
}

#[test]
fn property_7_the_coins_of_a_seed_never_change() {
    // A duel issued before an upgrade must be credited in the same way after it.
    let left = names(&[0, 1, 2, 3, 4, 5]);
    let right = names(&[5, 3, 1, 0, 2, 4]);
    let shown = |method: &str| -> String {
        let mut coins = DuelCoins::drafting([7; 32]);
        let page = interleave(&spec(method), &request(&left, &right, 6), &mut coins, &Uncached)
            .expect(method);
        page.slots.iter().map(|slot| slot.document).collect()
    };
    let found: Vec<String> = ["team-draft", "balanced", "probabilistic", "optimized"]
        .iter()
        .map(|method| shown(method))
        .collect();
    assert_eq!(found, ["053124", "051324", "052134", "501324"]);
}

#[test]
fn property_8_the_order_and_the_number_of_click_events_do_not_matter() {
    let (left, right) = (names(&[0, 1, 2, 3]), names(&[3, 1, 0, 2]));
    for method in METHODS {
        let spec = spec(method);
        for (page, _) in pages(&spec, &request(&left, &right, 4)) {
            let earned = |clicks: &[Click]| {
                credit(&spec, &page.sheet, clicks, &mut DuelCoins::crediting([1; 32]))
                    .expect(method)
            };
            let [a, b, c] = [0, 1, 3].map(Click::at);
            let heavy = Click { position: 1, weight: 5 };
            assert_eq!(earned(&[a, b, c]), earned(&[c, a, b, a, a, c]), "{method}");
            // A document counts once, with the largest weight of its events.
            assert_eq!(earned(&[a, heavy, c]), earned(&[b, c, heavy, a, b, heavy]), "{method}");
        }
    }
}

#[test]
fn property_9_teams_have_equally_many_competitive_slots() {
    for method in METHODS.iter().filter(|method| method.starts_with("team-draft")) {
        // Documents with the same rank leave their rounds half empty.
        let exact = !method.ends_with("same-rank");
        for (left, right) in pairs() {
            for length in 1..=8 {
                for (page, _) in pages(&spec(method), &request(&left, &right, length)) {
                    let of = |team: Team| {
                        page.slots
                            .iter()
                            .filter(|slot| slot.competitive && slot.team == Some(team))
                            .count()
                    };
                    let difference = of(Team::Left).abs_diff(of(Team::Right));
                    let most = if *method == "team-draft" { 0 } else { 1 };
                    assert!(
                        !exact || difference <= most,
                        "{method} {left:?} {right:?}: {:?}",
                        page.slots
                    );
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn property_10_the_convolution_equals_the_sum_over_all_assignments(
        ranks in Just((1_u32..=12).collect::<Vec<_>>()).prop_shuffle(),
        shuffled in Just((1_u32..=12).collect::<Vec<_>>()).prop_shuffle(),
        clicked in prop::collection::vec(any::<bool>(), 12),
        weights in prop::collection::vec(1_u32..4, 12),
        tau in prop::sample::select(vec![0.5, 1.0, 3.0, 10.0]),
    ) {
        // Probabilistic interleaving can show twelve documents with any ranks.
        let slots = ranks
            .iter()
            .zip(&shuffled)
            .map(|(&left, &right)| CreditSlot { ranks: [left, right], team: Some(Team::Left), competitive: true })
            .collect();
        let sheet = CreditSheet { depths: [12, 12], informative: true, fell_back: false, slots };
        let clicks: Vec<Click> = (0..12)
            .filter(|&position| clicked[position])
            .map(|position| Click { position, weight: weights[position] })
            .collect();
        let spec = spec(&format!("probabilistic:tau={tau}"));
        let earned = credit(&spec, &sheet, &clicks, &mut DuelCoins::crediting([0; 32])).expect("valid clicks");
        let q: Vec<f64> = clicks
            .iter()
            .map(|click| probabilistic::left_posterior(&sheet, click.position, tau).expect("both lists can fill it"))
            .collect();
        let (mut left, mut right) = (0.0, 0.0);
        for owners in 0..1_u32 << clicks.len() {
            let mut difference = 0_i64;
            let mut probability = 1.0;
            for (at, click) in clicks.iter().enumerate() {
                let is_left = owners >> at & 1 == 1;
                difference += if is_left { i64::from(click.weight) } else { -i64::from(click.weight) };
                probability *= if is_left { q[at] } else { 1.0 - q[at] };
            }
            if difference > 0 {
                left += probability;
            } else if difference < 0 {
                right += probability;
            }
        }
        prop_assert!((earned.left - left).abs() < 1e-12, "{} {}", earned.left, left);
        prop_assert!((earned.right - right).abs() < 1e-12, "{} {}", earned.right, right);
    }
}

#[test]
fn the_posterior_of_a_slot_matches_the_coins() {
    // Compute the posterior by enumeration: among all branches that lead to a page, the share in
    // which the left side drafted a slot.
    let lists = Lists::new(&[0, 1, 2, 3], &[2, 0, 4, 1], 5, Default::default());
    let spec = spec("probabilistic:tau=2");
    let mut by_page: BTreeMap<Vec<u32>, (CreditSheet, f64, Vec<f64>)> = BTreeMap::new();
    for (page, probability) in every_branch(|coins| draft(&spec, &lists, 3, coins, &Uncached)) {
        let documents = page.slots.iter().map(|slot| slot.document).collect();
        let (_, total, from_left) = by_page
            .entry(documents)
            .or_insert_with(|| (CreditSheet::of(&spec, &lists, &page), 0.0, vec![0.0; 3]));
        *total += probability.value();
        for (share, slot) in from_left.iter_mut().zip(&page.slots) {
            *share += if slot.team == Team::Left { probability.value() } else { 0.0 };
        }
    }
    for (documents, (sheet, total, from_left)) in by_page {
        for (position, share) in from_left.iter().enumerate() {
            let q = probabilistic::left_posterior(&sheet, position, 2.0)
                .expect("both lists have documents left");
            assert!((share / total - q).abs() < 1e-12, "{documents:?} {position}");
        }
    }
}
