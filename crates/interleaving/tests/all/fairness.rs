//! Fairness to clicks that do not depend on the page: for every set of clicked positions, the two
//! sides win equally often over all pages, and the mean share is 1/2. Any searcher whose clicks
//! depend on positions alone is a mixture of such sets.

use std::collections::BTreeMap;

use interleaving::{
    Click, CreditSheet, DepthPolicy, Method, Outcome, Request, Share, Spec, Team, Uncached, credit,
    interleave, random_clicks_favour_a_side,
};
use num_rational::Ratio;

use super::exact::every_branch;
use super::properties::{names, pairs};

/// How far from even a rule is on its worst case.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Unfairness {
    /// `|P(left) - P(right)|`, rounded.
    outcome: f64,
    /// The mean of `2 x - 1`, rounded.
    share: f64,
    /// Whether both are 0 in rational arithmetic. Only fair coins have exact probabilities.
    is_exactly_fair: bool,
}

/// A page that can be shown, and its probability, exact and rounded.
type Weighted = (CreditSheet, Ratio<i64>, f64);

/// All pages. Credit of probabilistic interleaving depends on ranks alone, so pages that differ in
/// their teams are one.
fn sheets(spec: &Spec, request: &Request<'_, String>) -> Vec<Weighted> {
    let by_rank = matches!(spec.method, Method::Probabilistic(_));
    let mut sheets: BTreeMap<String, Weighted> = BTreeMap::new();
    for (page, probability) in
        every_branch(|coins| interleave(spec, request, coins, &Uncached).expect("a valid request"))
    {
        let mut sheet = page.sheet;
        if by_rank {
            sheet.slots.iter_mut().for_each(|slot| slot.team = Some(Team::Both));
        }
        let (_, exact, rounded) = sheets
            .entry(format!("{sheet:?}"))
            .or_insert_with(|| (sheet, Ratio::from_integer(0), 0.0));
        *exact += probability.exact;
        *rounded += probability.value();
    }
    sheets.into_values().collect()
}

/// The largest unfairness over all pairs of lists, lengths of pages and sets of clicks, for both
/// fair treatments of the longer list. The events have the weights 1, 4, 7 and so on, or 1. The
/// spec itself says whether there is any.
fn worst(text: &str) -> Unfairness {
    let found = worst_in(text, &[DepthPolicy::Max, DepthPolicy::Min]);
    let says = random_clicks_favour_a_side(&Spec::from_text(text).expect(text));
    assert_eq!(says, found.outcome > 2e-7, "{text}: {found:?}");
    found
}

fn worst_in(text: &str, depths: &[DepthPolicy]) -> Unfairness {
    let mut spec = Spec::from_text(text).expect(text);
    // Probabilistic interleaving has too many branches for a long page.
    let longest = if text.starts_with("probabilistic") { 4 } else { 5 };
    let mut worst = Unfairness { outcome: 0.0, share: 0.0, is_exactly_fair: true };
    let unequal = [(&[0][..], &[1, 2, 3][..]), (&[0, 1, 2, 3], &[3, 4])]
        .map(|(left, right)| (names(left), names(right)));
    let pairs: Vec<_> = pairs().into_iter().chain(unequal).collect();
    for (&depth, (left, right)) in depths.iter().flat_map(|at| pairs.iter().map(move |it| (at, it)))
    {
        spec.depth_policy = depth;
        for length in 1..=longest {
            let request = Request { left, right, offset: 0, length, pinned: &[] };
            let sheets = sheets(&spec, &request);
            for (clicked, step) in (1..1_usize << length).flat_map(|set| [(set, 0), (set, 3)]) {
                let shown = sheets[0].0.slots.len();
                let clicks: Vec<Click> = (0..length.min(shown))
                    .filter(|at| clicked >> at & 1 == 1)
                    .map(|position| Click { position, weight: 1 + step * position as u32 })
                    .collect();
                let found = mean(&spec, &sheets, &clicks);
                worst.outcome = worst.outcome.max(found.outcome.abs());
                worst.share = worst.share.max(found.share.abs());
                worst.is_exactly_fair &= found.is_exactly_fair;
            }
        }
    }
    worst
}

/// The mean over all pages of one list and all coins of crediting.
fn mean(spec: &Spec, sheets: &[Weighted], clicks: &[Click]) -> Unfairness {
    let (mut outcome, mut share) = (0.0, 0.0);
    let zero = Ratio::from_integer(0);
    let (mut exact_outcome, mut exact_share) = (zero, zero);
    for (sheet, exact, rounded) in sheets {
        for (earned, drawn) in
            every_branch(|coins| credit(spec, sheet, clicks, coins).expect("valid clicks"))
        {
            let side: i64 = match earned.outcome {
                Outcome::Left => 1,
                Outcome::Right => -1,
                Outcome::Tie | Outcome::None => 0,
            };
            let one = i64::from(Share::ONE);
            let tilt = Ratio::new(2 * i64::from(earned.share.numerator()) - one, one);
            outcome += rounded * drawn.value() * side as f64;
            share += rounded * drawn.value() * (2.0 * earned.share.value() - 1.0);
            exact_outcome += exact * drawn.exact * side;
            exact_share += exact * drawn.exact * tilt;
        }
    }
    let is_exactly_fair = exact_outcome == zero && exact_share == zero;
    Unfairness { outcome, share, is_exactly_fair }
}

#[test]
fn rules_of_fair_coins_are_exactly_fair() {
    for text in [
        "team-draft",
        "team-draft:shared=ignore-round",
        "team-draft:verdict=score",
        "team-draft:shared=ignore-round,verdict=score",
        "balanced:credit=debiased",
        "balanced:credit=debiased,verdict=score",
        r#"team-draft:verdict=score,click_weights={"positions":[1,2,3,4,5,6,7,8,9,9],"lowest":3}"#,
        r#"balanced:credit=debiased,click_weights={"only":2,"highest":1},verdict=score"#,
    ] {
        assert!(worst(text).is_exactly_fair, "{text}: {:?}", worst(text));
    }
}

#[test]
fn scores_are_fair_up_to_the_rounding_of_shares_and_of_linear_programs() {
    for text in [
        "team-draft:shared=credit-all,verdict=score",
        "team-draft:shared=ignore-prefix,verdict=score",
        "probabilistic",
        "probabilistic:credit=expected-clicks",
        r#"probabilistic:credit=expected-clicks,tau=1.5,click_weights={"positions":[9,2,3,4,5,6,7,8,9,9],"highest":3}"#,
        "optimized:depth=4",
        "optimized:credit=linear",
        "optimized:credit=binary",
        r#"optimized:depth=3,click_weights={"positions":[1,2,3,4,5,6,7,8,9,9],"only":3}"#,
    ] {
        let found = worst(text);
        assert!(found.outcome.max(found.share) < 2e-7, "{text}: {found:?}");
    }
}

#[test]
fn the_documented_rules_are_unfair() {
    for (text, least) in [
        ("balanced", 0.9),
        // Unfair only where a list runs out of documents and several are clicked.
        ("team-draft:shared=credit-all", 0.2),
        ("team-draft:shared=ignore-prefix", 0.2),
        ("team-draft:shared=ignore-same-rank", 0.9),
        ("probabilistic:verdict=sign", 0.5),
        // Unfair only where a list runs out of documents and several are clicked.
        ("probabilistic:verdict=drawn", 0.1),
        ("optimized:verdict=sign,depth=4", 0.8),
    ] {
        let found = worst(text);
        assert!(found.outcome >= least, "{text}: {found:?}");
    }
}

#[test]
fn no_rule_is_fair_to_a_list_that_is_shorter_and_not_cut() {
    for text in [
        "team-draft",
        "team-draft:shared=ignore-round",
        "team-draft:shared=credit-all,verdict=score",
        "balanced:credit=debiased",
        "balanced:credit=debiased,verdict=score",
        "probabilistic",
        "probabilistic:credit=expected-clicks",
        "optimized:depth=4",
        "optimized:credit=linear,depth=4",
    ] {
        let uncut = Spec { depth_policy: DepthPolicy::Uncut, ..Spec::from_text(text).expect(text) };
        let found = worst_in(text, &[DepthPolicy::Uncut]);
        assert!(random_clicks_favour_a_side(&uncut) && found.outcome > 0.1, "{text}: {found:?}");
    }
}
