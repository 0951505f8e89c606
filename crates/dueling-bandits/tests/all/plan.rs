//! Plans of experiments, against simulated experiments.

use dueling_bandits::evidence::Target;
use dueling_bandits::forecast::plan::{Pages, Plan, Question, Rivals, plan};
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, InFlight, Outcome, PolicySpec, Setup, step_rng};
use rand::RngExt;

const TARGET: Target = Target { confidence: 0.95, margin: 0.01 };

fn question(rankers: usize, difference: f64) -> Question {
    Question { rankers, difference, others: Vec::new(), target: TARGET, counting: 1.0, late: 0.0 }
}

fn planned(question: &Question, budget: u64) -> Vec<Plan> {
    plan(question, budget, || true, &mut step_rng(1, 0)).expect("valid").expect("it may go on")
}

fn pages(plan: &Plan, difference: f64) -> Pages {
    plan.pages(difference).expect("it can be shown")
}

/// The preferences where the rivals are this far behind the best ranker.
fn matrix(behind: &[f64]) -> PreferenceMatrix {
    let of = |ranker: usize| ranker.checked_sub(1).map_or(0.0, |rival| behind[rival]);
    PreferenceMatrix::from_pairs(behind.len() + 1, |i, j| 0.5 + of(j) - of(i))
        .expect("probabilities")
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

/// The median of experiments is within 0.8 to 1.25 of its plan, whichever the rivals are. `lab plans`
/// compares more sets, and more experiments of each.
#[test]
fn each_roster_takes_about_as_long_as_its_plan() {
    let plans = planned(&question(5, 0.1), 400_000);
    let of = |rivals: Rivals, behind: [f64; 4]| {
        let plan = plans.iter().find(|plan| plan.rivals() == rivals).expect("planned");
        assert_eq!(plan.simulated(), 0.1);
        let took = simulated(&matrix(&behind), 151);
        let pages = pages(plan, 0.1);
        let ratio = took / pages.median;
        assert!((0.8..1.25).contains(&ratio), "{rivals:?} {behind:?}: {ratio}");
        assert!(pages.high > 1.2 * pages.median && pages.high < 6.0 * pages.median, "{pages:?}");
        assert!(pages.regret < pages.median * 0.2 && pages.regret > 0.0, "{pages:?}");
        took
    };
    let close = of(Rivals::OneClose, [0.1, 0.3, 0.3, 0.3]);
    of(Rivals::Ladder, [0.1, 0.16, 0.25, 0.4]);
    let equal = of(Rivals::AllEqual, [0.1; 4]);
    assert!(equal > 2.5 * close, "one plan cannot be right for both: {close} {equal}");
    let given = Question { others: vec![0.1, 0.4, 0.4], ..question(5, 0.1) };
    let plans = planned(&given, 400_000);
    assert_eq!(plans.iter().map(Plan::rivals).collect::<Vec<_>>(), [Rivals::Given]);
    let ratio = simulated(&matrix(&[0.1, 0.1, 0.4, 0.4]), 151) / pages(&plans[0], 0.1).median;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

/// Beyond the budget, pages follow from larger differences.
#[test]
fn a_plan_on_a_small_budget_is_near_the_whole_one() {
    let whole = planned(&question(4, 0.05), 1_000_000);
    let part = planned(&question(4, 0.05), 60_000);
    assert!(part[2].simulated() > 0.05, "{part:?}");
    for (whole, part) in whole.iter().zip(&part) {
        assert_eq!(whole.simulated(), 0.05);
        let ratio = pages(part, 0.05).median / pages(whole, 0.05).median;
        assert!((0.7..1.4).contains(&ratio), "{ratio}: {part:?} {whole:?}");
    }
}

#[test]
fn a_plan_follows_its_question() {
    let asked = question(3, 0.1);
    let plan = &planned(&asked, 1_000_000)[0];
    let own = pages(plan, 0.1);
    let median = |difference: f64| pages(plan, difference).median;
    assert!(median(0.05) > 2.0 * median(0.1) && median(0.1) > 2.0 * median(0.2), "{plan:?}");
    // the smallest difference of so many pages takes so many pages
    let smallest = |pages: f64| plan.smallest_difference(pages);
    assert!((smallest(own.median).expect("shown") / 0.1 - 1.0).abs() < 1e-9, "{plan:?}");
    assert!(smallest(1000.0) > smallest(2000.0) && smallest(1e9) < Some(0.01), "{plan:?}");
    // a few pages show no difference, however large
    assert_eq!(smallest(0.9 * median(0.45)), None);
    assert_eq!(smallest(1.0), None);
    // the pages of comparisons that do not count are added
    let half = planned(&Question { counting: 0.5, ..asked }, 1_000_000);
    let half = pages(&half[0], 0.1);
    assert!((1.9..=2.0).contains(&(half.median / own.median)), "{half:?} {own:?}");
    assert!((half.regret / own.regret - 2.0).abs() < 1e-9);
    // whoever learns late meets rivals that are far behind more often
    let five = question(5, 0.1);
    let late = planned(&Question { late: 200.0, ..five.clone() }, 1_000_000);
    let [late, soon] = [&late[0], &planned(&five, 1_000_000)[0]].map(|it| pages(it, 0.1).median);
    assert!((1.2..4.0).contains(&(late / soon)), "{late} {soon}");
}

#[test]
fn a_difference_below_all_evidence_has_no_plan() {
    let strict = Question { target: Target { margin: 0.0, ..TARGET }, ..question(2, 0.001) };
    let plan = &planned(&strict, 10_000)[0];
    assert!(plan.pages(0.001).is_none() && plan.pages(0.02).is_some(), "{plan:?}");
}

/// A plan that is not finished is none.
#[test]
fn a_plan_goes_on_as_long_as_it_may() {
    let stopped = plan(&question(50, 1e-4), u64::MAX, || false, &mut step_rng(1, 0));
    assert_eq!(stopped, Ok(None));
    let wrong = Question { target: Target { confidence: 2.0, margin: 0.0 }, ..question(2, 0.1) };
    assert!(plan(&wrong, 1, || true, &mut step_rng(1, 0)).is_err());
}
