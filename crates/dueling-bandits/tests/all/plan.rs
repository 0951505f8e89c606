//! Plans of experiments, against simulated experiments.

use dueling_bandits::evidence::Target;
use dueling_bandits::forecast::plan::{Plan, Question, plan};
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, InFlight, Outcome, PolicySpec, Setup, step_rng};
use rand::RngExt;

const TARGET: Target = Target { confidence: 0.95, margin: 0.01 };

fn planned(question: &Question, budget: u64) -> Plan {
    plan(question, budget, || true, &mut step_rng(1, 0)).expect("valid")
}

/// Median steps until the verdict on this matrix.
fn simulated(matrix: &PreferenceMatrix, experiments: u64) -> f64 {
    let spec = PolicySpec::from_text("d-ts-verdict").expect("a policy");
    let mut ends: Vec<u64> = (0..experiments)
        .map(|seed| {
            let mut run = Run::of(spec.start(Setup { rankers: matrix.rankers(), seed }));
            let mut rng = step_rng(seed, 7);
            while run.verdict().verdict().is_none() {
                let selection = run.select(&InFlight::new(), &mut rng);
                let duel = selection.duel;
                if duel.is_self() {
                    run.observe_self_duels(duel.first, 1);
                } else if rng.random_bool(matrix.win_probability(duel.first, duel.second)) {
                    run.observe(&selection.observed(Outcome::First));
                } else {
                    run.observe(&selection.observed(Outcome::Second));
                }
            }
            run.tally().steps()
        })
        .collect();
    ends.sort_unstable();
    ends[ends.len() / 2] as f64
}

#[test]
fn a_plan_is_about_as_long_as_experiments_are() {
    let pair = PreferenceMatrix::from_pairs(2, |_, _| 0.55).expect("probabilities");
    let arxiv = PreferenceMatrix::load("arxiv-6").expect("built in");
    for (name, matrix, difference) in [("a pair", pair, 0.05), ("arxiv-6", arxiv, 0.04)] {
        let question =
            Question { rankers: matrix.rankers(), difference, target: TARGET, counting: 1.0 };
        let pages = planned(&question, 2_000_000).pages.expect("most simulations end");
        let ratio = simulated(&matrix, 31) / pages.median;
        // the medians of 40 and of 31 are noisy, by some 15 % each
        assert!((0.6..1.8).contains(&ratio), "{name}: {ratio}");
        let high = pages.high.expect("nine of ten end");
        assert!(high > 1.2 * pages.median && high < 6.0 * pages.median, "{name}: {pages:?}");
        assert!(pages.regret < pages.median * 0.2 && pages.regret > 0.0, "{name}: {pages:?}");
    }
}

#[test]
fn a_plan_follows_its_question() {
    let question = Question { rankers: 3, difference: 0.1, target: TARGET, counting: 1.0 };
    let plan = planned(&question, 1_000_000);
    let pages = plan.pages.expect("all end");
    // the curve has the asked difference, ascends, and smaller differences take longer
    assert!(plan.curve.contains(&pages) && plan.curve.len() >= 5, "{plan:?}");
    assert!(plan.curve.windows(2).all(|pair| pair[0].difference < pair[1].difference));
    assert!(plan.curve[0].median > 4.0 * plan.curve[plan.curve.len() - 1].median, "{plan:?}");
    // the smallest difference of so many pages takes so many pages
    let smallest = |pages: f64| plan.smallest_difference(pages).expect("a curve");
    assert!((smallest(pages.median) / 0.1 - 1.0).abs() < 1e-9, "{plan:?}");
    assert!(smallest(1000.0) > smallest(2000.0) && smallest(1e9) < 0.01, "{plan:?}");
    assert!(smallest(1.0) <= 0.45);
    // the pages of comparisons that do not count are added
    let half = planned(&Question { counting: 0.5, ..question }, 1_000_000).pages.expect("all end");
    assert!((1.9..=2.0).contains(&(half.median / pages.median)), "{half:?} {pages:?}");
    assert!((half.regret / pages.regret - 2.0).abs() < 1e-9);
}

#[test]
fn a_plan_keeps_its_budget() {
    let question = Question { rankers: 50, difference: 1e-4, target: TARGET, counting: 0.5 };
    let reached = planned(&question, 10_000).pages.expect_err("nothing ends");
    // 40 draws share the budget, and each of their steps takes two pages
    assert!((2.0..2.0 * 10_000.0).contains(&reached), "{reached}");
    let plan = plan(&question, u64::MAX, || false, &mut step_rng(1, 0)).expect("valid");
    assert!(plan.pages.is_err() && plan.curve.is_empty());
    assert_eq!(plan.smallest_difference(1e6), None);
    let wrong = Question { target: Target { confidence: 2.0, margin: 0.0 }, ..question };
    assert!(
        dueling_bandits::forecast::plan::plan(&wrong, 1, || true, &mut step_rng(1, 0)).is_err()
    );
}
