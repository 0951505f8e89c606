//! Split credit over several pages is fair: a searcher who looks at positions alone, on two pages
//! that can show the same documents, and buys one of the places clicked, favours neither ranker.
//! Each clicked place has the credit of a click on it alone, and a purchase the mean over the
//! clicked places with its document.

use std::collections::BTreeMap;

use interleaving::{Click, DepthPolicy, Request, Share, Spec, Uncached, credit, interleave};
use num_rational::Ratio;

use super::exact::every_branch;
use super::properties::pairs;

type Exact = Ratio<i128>;

/// A page that can be shown: its documents, each with the mean credit of a click on it alone.
type Shown = Vec<(String, Exact)>;

/// All pages, with their probabilities, exact and rounded.
fn pages(
    spec: &Spec,
    (left, right): &(Vec<String>, Vec<String>),
    length: usize,
) -> Vec<(Shown, Exact, f64)> {
    let request = Request { left, right, offset: 0, length, pinned: &[] };
    let mut pages: BTreeMap<Shown, (Exact, f64)> = BTreeMap::new();
    let branches =
        every_branch(|coins| interleave(spec, &request, coins, &Uncached).expect("valid"));
    for (page, probability) in branches {
        let earned = |position| {
            let clicks = [Click::at(position)];
            let drawn =
                every_branch(|coins| credit(spec, &page.sheet, &clicks, coins).expect("valid"));
            let one = i128::from(Share::ONE);
            let tilt = |(credit, by): &(interleaving::Credit, super::exact::Probability)| {
                let left = 2 * i128::from(credit.share.numerator()) - one;
                let exact = Ratio::new((*by.exact.numer()).into(), (*by.exact.denom()).into());
                Ratio::new(left, one) * exact
            };
            drawn.iter().map(tilt).sum::<Exact>()
        };
        let shown = page.slots.iter();
        let shown = shown.map(|slot| (slot.document.to_owned(), earned(slot.position))).collect();
        let (exact, rounded) = pages.entry(shown).or_default();
        let (numer, denom) = (*probability.exact.numer(), *probability.exact.denom());
        *exact += Ratio::new(numer.into(), denom.into());
        *rounded += probability.value();
    }
    pages.into_iter().map(|(shown, (exact, rounded))| (shown, exact, rounded)).collect()
}

/// The credit of a purchase among clicked places, in the order of the clicks.
type Rule = fn(&[&(String, Exact)], &str) -> Exact;

fn split(clicked: &[&(String, Exact)], bought: &str) -> Exact {
    let of: Vec<Exact> =
        clicked.iter().filter(|(it, _)| it == bought).map(|(_, credit)| *credit).collect();
    of.iter().sum::<Exact>() / of.len() as i128
}

fn last_click(clicked: &[&(String, Exact)], bought: &str) -> Exact {
    clicked.iter().rfind(|(it, _)| it == bought).map(|(_, credit)| *credit).unwrap_or_default()
}

/// The clicks on two pages, and the probability of these pages, exact and rounded.
type Case<'a> = (Vec<&'a (String, Exact)>, Exact, f64);

/// All pairs of two pages and sets of clicks, each as its cases.
fn every_set(text: &str, depth: DepthPolicy, length: usize, mut set_of: impl FnMut(&[Case<'_>])) {
    let spec = Spec { depth_policy: depth, ..Spec::from_text(text).expect(text) };
    let all: Vec<_> = pairs().iter().map(|lists| pages(&spec, lists, length)).collect();
    for (at, first) in all.iter().enumerate() {
        // the second query has other lists of the same documents
        let second = &all[(at + 7) % all.len()];
        let places = first[0].0.len() + second[0].0.len();
        for set in (1..1_usize << places).filter(|set| set.count_ones() <= 3) {
            let cases = first.iter().flat_map(|(one, exact_one, rounded_one)| {
                second.iter().map(move |(two, exact_two, rounded_two)| {
                    let shown = one.iter().chain(two).enumerate();
                    let clicked = shown.filter(|(place, _)| set >> place & 1 == 1);
                    let clicked = clicked.map(|(_, place)| place).collect();
                    (clicked, exact_one * exact_two, rounded_one * rounded_two)
                })
            });
            set_of(&cases.collect::<Vec<_>>());
        }
    }
}

/// The largest mean score of a uniform purchase, in rational arithmetic.
fn worst(text: &str, rule: Rule) -> Exact {
    let mut worst = Exact::default();
    for depth in [DepthPolicy::Max, DepthPolicy::Min] {
        every_set(text, depth, 4, |cases| {
            let mean = cases.iter().map(|(clicked, probability, _)| {
                let bought = clicked.iter().map(|(bought, _)| rule(clicked, bought));
                bought.sum::<Exact>() / clicked.len() as i128 * probability
            });
            let mean = mean.sum::<Exact>();
            worst = worst.max(mean.max(-mean));
        });
    }
    worst
}

/// The same with split credit, rounded.
fn worst_rounded(text: &str) -> f64 {
    let mut worst = 0.0_f64;
    every_set(text, DepthPolicy::Max, 3, |cases| {
        let mean = cases.iter().map(|(clicked, _, probability)| {
            let credit = |credit: &Exact| *credit.numer() as f64 / *credit.denom() as f64;
            let split = clicked.iter().map(|(bought, _)| {
                let of = clicked.iter().filter(|(it, _)| it == bought);
                let sum: f64 = of.clone().map(|(_, it)| credit(it)).sum();
                sum / of.count() as f64
            });
            split.sum::<f64>() / clicked.len() as f64 * probability
        });
        worst = worst.max(mean.sum::<f64>().abs());
    });
    worst
}

#[test]
fn split_credit_of_fair_coins_is_exactly_fair() {
    for text in ["team-draft", "team-draft:shared=ignore-round", "balanced:credit=debiased"] {
        assert_eq!(worst(text, split), Exact::default(), "{text}");
    }
}

#[test]
fn split_credit_is_fair_up_to_rounding() {
    for text in [
        "team-draft:shared=credit-all,verdict=score",
        "team-draft:shared=ignore-prefix,verdict=score",
        "probabilistic",
        "probabilistic:credit=expected-clicks",
        "optimized:depth=4",
        "optimized:credit=linear",
    ] {
        let worst = worst_rounded(text);
        assert!(worst < 2e-7, "{text}: {worst}");
    }
}

#[test]
fn last_click_favours_the_ranker_that_shows_a_document_again() {
    let worst = worst("team-draft", last_click);
    assert!(worst > Ratio::new(1, 20), "{worst}");
}
