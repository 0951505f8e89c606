//! Which answers the verdict counts, and when.

mod belief;

use dueling_bandits::evidence::balance::Cell;
use dueling_bandits::evidence::cohorts::Reason;
use dueling_bandits::evidence::{Added, Admission, Cohorts, Score, Target, TimedAnswer};
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, Duel, InFlight, Outcome, PolicySpec, step_rng};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const WINDOW: i64 = 3_600_000;

fn answer(issued_at: i64, nonce: u128, unit: Option<u64>, outcome: Outcome) -> TimedAnswer {
    TimedAnswer { duel: Duel::new(0, 1), outcome, score: None, issued_at, nonce, unit, segment: 0 }
}

/// First wins, second wins and halves that count, of each cohort.
fn counted(cohorts: &mut Cohorts, until: i64) -> Vec<(u32, u32, u32)> {
    let completed = cohorts.complete(until);
    let sums = completed.iter().map(|(_, cohort)| {
        let of = |outcome| {
            let counts = cohort.iter().filter(|row| row.counts && row.answers.outcome == outcome);
            counts.map(|row| row.answers.count).sum()
        };
        (of(Outcome::First), of(Outcome::Second), of(Outcome::Half))
    });
    sums.collect()
}

#[test]
fn without_a_window_every_answer_counts_as_it_arrives() {
    let mut cohorts = Cohorts::new(0);
    for nonce in 0..5 {
        let added = cohorts.add(&answer(10, nonce, None, Outcome::First));
        assert_eq!(added, Admission::Counted.into());
    }
    assert_eq!((cohorts.waiting(), cohorts.answers()), (0, (0, 5)));
}

/// A duel keeps the window at its issue, cohorts count in the order of issue, and no answer is lost
/// or counted twice, however often the window changes.
#[test]
fn a_changed_window_is_that_of_later_duels() {
    let mut cohorts = Cohorts::new(WINDOW);
    let width = cohorts.width_ms();
    assert!(cohorts.change_window(60_000, 10 * width + 1));
    let since = 11 * width;
    assert_eq!((cohorts.window_ms_at(since - 1), cohorts.window_ms_at(since)), (WINDOW, 60_000));
    for (nonce, issued_at) in [since - 1, since, since + 999, since + 1000].into_iter().enumerate()
    {
        cohorts.add(&answer(issued_at, nonce as u128, None, Outcome::First));
    }
    // the later ones wait for the earlier ones, whose window is longer
    assert_eq!(cohorts.ended_until(since + 120_000), 0);
    let oldest = since - width;
    assert_eq!(cohorts.waiting_for_verdict(), Some((4, oldest)));
    assert_eq!(cohorts.window_end_of(oldest), since + WINDOW);
    let until = cohorts.ended_until(since + WINDOW - 1);
    assert_eq!(counted(&mut cohorts, until), []);
    let now = since + WINDOW;
    assert_eq!(cohorts.ended_until(now), now - 60_000);
    let until = cohorts.ended_until(now);
    let all = counted(&mut cohorts, until);
    assert_eq!(
        all,
        [(1, 0, 0), (2, 0, 0), (1, 0, 0)],
        "the cohorts of a second begin at the change"
    );
    // a longer one, and a change of mind before it begins
    assert!(cohorts.change_window(WINDOW, now + 1) && cohorts.change_window(120_000, now + 2));
    assert_eq!(cohorts.windows(), 3);
    assert_eq!(cohorts.window_ms_at(now + 2000), 120_000);
    assert_eq!(cohorts.ended_until(now + 2000 + 60_000), now + 1000);
    assert_eq!(cohorts.longest_window_ms(), 120_000);
    // no order of issue is known of answers that counted as they arrived
    assert!(!cohorts.change_window(0, now + 3) && !Cohorts::new(0).change_window(60_000, 0));
}

#[test]
fn a_unit_counts_once_in_the_whole_experiment() {
    for window in [0, WINDOW] {
        let mut cohorts = Cohorts::new(window);
        let first = cohorts.add(&answer(10, 1, Some(7), Outcome::First));
        assert_ne!(first.admission, Admission::LeftOut(Reason::RepeatedUnit));
        cohorts.complete(WINDOW);
        let again = cohorts.add(&answer(2 * WINDOW, 2, Some(7), Outcome::Second));
        assert_eq!(again.admission, Admission::LeftOut(Reason::RepeatedUnit), "window {window}");
        assert_eq!(cohorts.units(), 1);
        assert_eq!(cohorts.left_out().repeated_unit, 1);
    }
}

/// A cohort keeps a few thousand pairs of answers without a unit. If it kept those that arrive
/// first, the answers of one side would count more often where they come sooner.
#[test]
fn what_a_full_cohort_leaves_out_does_not_depend_on_the_order_of_arrival() {
    let rankers = 90;
    let mut rng = StdRng::seed_from_u64(1);
    let ordered = |first: usize| (0..rankers).filter(move |&j| j != first).map(move |j| (first, j));
    let pairs = (0..rankers).flat_map(ordered);
    let answers: Vec<(TimedAnswer, bool)> = pairs
        .flat_map(|(first, second)| {
            let duel = Duel::new(first, second);
            [0, 1].map(|nth| {
                let outcome = if rng.random_bool(0.5) { Outcome::First } else { Outcome::Second };
                let score = (first % 3 == nth)
                    .then(|| Score::rounded(outcome == Outcome::First, 1 << 23, true, |_| false));
                let lower_won = (outcome == Outcome::First) == (first < second);
                (TimedAnswer { duel, score, ..answer(10, 1, None, outcome) }, lower_won)
            })
        })
        .collect();
    let counted = |answers: &[(TimedAnswer, bool)]| {
        let mut cohorts = Cohorts::new(WINDOW);
        let (mut taken_back, mut refused) = (0, 0);
        for (answer, _) in answers {
            let Added { admission, no_longer_expected } = cohorts.add(answer);
            refused += u64::from(admission == Admission::LeftOut(Reason::Full));
            taken_back +=
                no_longer_expected.iter().map(|answers| u64::from(answers.count)).sum::<u64>();
        }
        assert_eq!(cohorts.left_out().full, refused + taken_back);
        assert_eq!(cohorts.waiting(), answers.len() as u64 - refused - taken_back);
        assert_eq!(cohorts.answers(), (0, cohorts.waiting()));
        (cohorts.complete(WINDOW), taken_back)
    };
    let (as_issued, _) = counted(&answers);
    let mut lower_sooner = answers.clone();
    lower_sooner.sort_by_key(|&(_, lower_won)| !lower_won);
    let (sooner, taken_back) = counted(&lower_sooner);
    assert_eq!(sooner, as_issued);
    assert!(taken_back > 1000, "{taken_back} lost their place");
    let kept: u32 = sooner.iter().flat_map(|(_, cohort)| cohort).map(|row| row.answers.count).sum();
    assert!((7000..answers.len() as u32 - 5000).contains(&kept), "{kept}");
}

#[test]
fn an_answer_after_its_cohort_is_complete_does_not_count() {
    let mut cohorts = Cohorts::new(WINDOW);
    let width = cohorts.width_ms();
    assert!(cohorts.complete(width - 1).is_empty(), "no cohort ends by then");
    assert_eq!(
        cohorts.add(&answer(width - 1, 1, None, Outcome::First)).admission,
        Admission::Waits
    );
    assert_eq!(cohorts.oldest_end(), Some(width));
    assert_eq!(counted(&mut cohorts, width), [(1, 0, 0)]);
    let late = cohorts.add(&answer(width - 1, 2, None, Outcome::Second));
    assert_eq!(late.admission, Admission::LeftOut(Reason::Late));
    assert_eq!(cohorts.add(&answer(width, 3, None, Outcome::Second)).admission, Admission::Waits);
    assert!(cohorts.complete(width).is_empty(), "twice is as once");
}

#[test]
fn an_answer_that_decides_nothing_takes_no_place() {
    let mut cohorts = Cohorts::new(WINDOW);
    for outcome in [Outcome::Void, Outcome::None] {
        assert_eq!(cohorts.add(&answer(1, 1, Some(7), outcome)).admission, Admission::Counted);
    }
    assert_eq!((cohorts.answers(), cohorts.units()), ((2, 0), 0), "it came with a unit");
    assert_eq!(cohorts.add(&answer(1, 2, Some(7), Outcome::First)).admission, Admission::Waits);
}

#[test]
fn a_verdict_that_starts_again_counts_later_duels_and_nothing_is_dropped() {
    let mut cohorts = Cohorts::new(WINDOW);
    let width = cohorts.width_ms();
    cohorts.add(&answer(1, 1, Some(7), Outcome::First));
    cohorts.complete(WINDOW);
    cohorts.add(&answer(WINDOW + 1, 2, None, Outcome::First));
    cohorts.add(&answer(WINDOW + 1, 5, Some(8), Outcome::First));
    cohorts.add_duels(Cell { issued: 10, answered: 4 });
    cohorts.start_verdict_again(2 * WINDOW + 1);
    assert_eq!((cohorts.waiting(), cohorts.expected(), cohorts.unanswered()), (2, vec![], None));
    assert_eq!(cohorts.waiting_for_verdict(), None);
    let before = cohorts.add(&answer(2 * WINDOW - 1, 3, None, Outcome::First));
    assert_eq!(before.admission, Admission::WaitsUnexpected, "the claims count it");
    for unit in [7, 8] {
        let again = cohorts.add(&answer(3 * WINDOW, 4, Some(unit), Outcome::First));
        let (known, waits) = (Admission::LeftOut(Reason::RepeatedUnit), Admission::WaitsUnexpected);
        assert_eq!(again.admission, if unit == 7 { known } else { waits });
    }
    assert_eq!(
        cohorts.add(&answer(3 * WINDOW, 6, None, Outcome::First)).admission,
        Admission::Waits
    );
    cohorts.add_duels(Cell { issued: 8, answered: 4 });
    assert_eq!(counted(&mut cohorts, 2 * WINDOW + width), [(2, 0, 0), (1, 0, 0)]);
    cohorts.add_duels(Cell { issued: 4, answered: 3 });
    assert_eq!(cohorts.unanswered(), Some(0.25), "of the duels that the verdict counts");
    assert_eq!(counted(&mut cohorts, 4 * WINDOW), [(1, 0, 0)], "a unit counts once");
}

proptest! {
    /// The winner of an answer never decides whether an answer counts.
    #[test]
    fn what_counts_does_not_depend_on_who_won(
        answers in vec((0..200_000i64, proptest::option::of(0..30u64)), 1..120),
        winners in vec(any::<bool>(), 120),
    ) {
        let run = |first_wins: &dyn Fn(usize) -> bool| {
            let mut cohorts = Cohorts::new(WINDOW);
            for (index, &(issued_at, unit)) in answers.iter().enumerate() {
                let outcome = if first_wins(index) { Outcome::First } else { Outcome::Second };
                cohorts.add(&answer(issued_at, index as u128, unit, outcome));
            }
            let sums = counted(&mut cohorts, WINDOW);
            let numbers: Vec<u32> = sums.iter().map(|&(a, b, _)| a + b).collect();
            (numbers, cohorts.left_out())
        };
        prop_assert_eq!(run(&|_| true), run(&|index| winners[index]));
    }
}

/// The policy shows the winner alone while the answers that wait are expected to bring the verdict.
/// If later ones speak against it, the policy must compare again at once: the experiment would
/// otherwise learn of it after a window.
#[test]
fn a_policy_gives_its_expectation_up_while_the_answers_wait() {
    let spec = PolicySpec::from_text("d-ts-verdict").expect("a spec");
    let target = Target { confidence: 0.95, margin: 0.0 };
    let mut run = Run::new(spec.start(Setup { rankers: 2, seed: 1 }), target, WINDOW);
    let mut number = 0;
    let mut answers = |outcome, count: u32| {
        for _ in 0..count {
            number += 1;
            run.observe_timed(&answer(10, number, None, outcome), None, 0, 10);
        }
        run.catch_up();
        let alone = (0..500)
            .filter(|&step| run.select(&InFlight::new(), &mut step_rng(2, step)).duel.is_self());
        (alone.count(), run.verdict().verdict().is_some())
    };
    let (alone, decided) = answers(Outcome::First, 400);
    assert!(alone > 400 && !decided, "it expects the verdict: alone on {alone} of 500");
    let (alone, _) = answers(Outcome::Second, 380);
    assert!(alone < 250, "it does not any more: alone on {alone} of 500");
}

/// The policy hears of a repeat as it arrives, before its cohort is complete.
#[test]
fn the_default_policy_is_told_of_a_repeat_at_once() {
    let spec = PolicySpec::from_text("d-ts-verdict").unwrap();
    let target = Target { confidence: 0.95, margin: 0.0 };
    let mut run = Run::new(spec.start(Setup { rankers: 2, seed: 1 }), target, WINDOW);
    let width = run.cohorts().width_ms();
    let mut shown_alone = |answers: std::ops::Range<i64>, unit: &dyn Fn(i64) -> u64| {
        for number in answers {
            let answer =
                answer(number % 400 * width, number as u128, Some(unit(number)), Outcome::First);
            run.observe_timed(&answer, None, 0, number);
        }
        run.catch_up();
        let select = |step| run.select(&InFlight::new(), &mut step_rng(2, step)).duel;
        (0..500).filter(|&step| select(step).is_self()).count()
    };
    let of_five_people = shown_alone(0..400, &|number| number as u64 % 5);
    assert!(of_five_people < 100, "five answers prove nothing: alone on {of_five_people} of 500");
    let of_many = shown_alone(400..800, &|number| number as u64);
    assert!(of_many > 400, "alone on {of_many} of 500");
}

/// The page of an experiment's verdict, if it comes before `limit`. Of the answers, the share
/// `returning` comes from one person, who counts once.
fn page_of_verdict(
    matrix: &PreferenceMatrix,
    returning: f64,
    seed: u64,
    limit: u64,
) -> Option<u64> {
    let target = Target { confidence: 0.95, margin: 0.01 };
    let rankers = matrix.rankers();
    let spec = PolicySpec::from_text("d-ts-verdict:margin=0.01").expect("a spec");
    let mut run = Run::new(spec.start(Setup { rankers, seed }), target, 0);
    let mut rng = StdRng::seed_from_u64(seed);
    for page in 0..limit {
        let selection = run.select(&InFlight::new(), &mut step_rng(seed, page));
        let duel = selection.duel;
        if duel.is_self() {
            run.observe_self_duels(duel.first, 1);
            continue;
        }
        let outcome = match rng.random_bool(matrix.win_probability(duel.first, duel.second)) {
            true => Outcome::First,
            false => Outcome::Second,
        };
        let unit = if rng.random_bool(returning) { 0 } else { page + 1 };
        let nonce = page.into();
        let answer = TimedAnswer {
            duel,
            outcome,
            score: None,
            issued_at: 10,
            nonce,
            unit: Some(unit),
            segment: 0,
        };
        run.observe_timed(&answer, None, selection.ticket, 10);
        run.catch_up();
        if run.verdict().verdict().is_some() {
            return Some(page);
        }
    }
    None
}

/// Where most answers come from people who have answered before, a verdict takes more pages in
/// proportion, and not more. A policy
/// whose explorer is sure of more than what counts must not stop comparing.
#[test]
fn answers_that_do_not_count_delay_a_verdict_by_their_share_only() {
    // without returning people, the slowest of 400 experiments take 1,500 and 8,000 pages
    for (name, returning, slowest, seeds) in
        [("cyclic-4", 0.6, 2000.0, 0..60), ("arxiv-6", 0.824, 9000.0, 20..40)]
    {
        let matrix = PreferenceMatrix::load(name).expect("a built-in matrix");
        let limit = (slowest / (1.0 - returning)) as u64;
        for seed in seeds {
            let page = page_of_verdict(&matrix, returning, seed, limit);
            assert!(page.is_some(), "{name}, seed {seed}: no verdict within {limit} pages");
        }
    }
}
