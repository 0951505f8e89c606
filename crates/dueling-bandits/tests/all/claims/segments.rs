//! The claims about segments.

use dueling_bandits::claims::ladder::Progress;
use dueling_bandits::claims::segments::SegmentClaims;
use dueling_bandits::evidence::{EqualAnswers, Target, TimedAnswer};
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::Run;
use dueling_bandits::{Duel, Outcome, PolicyRng, PolicySpec, Tally, step_rng};
use rand::RngExt;

use super::at_most;

const TARGET: Target = Target { confidence: 0.95, margin: 0.01 };
const ERROR: f64 = 0.05;
/// The winner and the control.
const PAIR: Duel = Duel { first: 0, second: 1 };

fn claims(margin: f64, segments: usize) -> SegmentClaims {
    let mut claims = SegmentClaims::new(Target { margin, ..TARGET }, segments);
    claims.follow(Some(0), Some(1), &|_, _| 0.0, &[0, 1]);
    claims
}

/// Counts answers to pages of a segment, from 1.
fn count(claims: &mut SegmentClaims, segment: u8, duel: Duel, outcome: Outcome, count: u32) {
    claims.count(&EqualAnswers { segment, ..EqualAnswers::by_outcome(duel, outcome, count) });
}

/// A page of a random segment; `beats(segment)` is the share that the control wins there.
fn page(claims: &mut SegmentClaims, beats: &dyn Fn(usize) -> f64, rng: &mut PolicyRng) {
    let segment = rng.random_range(0..claims.segments());
    let lost = rng.random::<f64>() < beats(segment);
    let outcome = if lost { Outcome::Second } else { Outcome::First };
    count(claims, segment as u8 + 1, PAIR, outcome, 1);
    claims.counted(1);
}

/// Wrong alarms in `runs` experiments with segments that are all at the edge.
fn false_alarms(segments: usize, margin: f64, pages: usize, runs: u64) -> u64 {
    let is_wrong = |run: &u64| {
        let (mut claims, mut rng) = (claims(margin, segments), step_rng(*run, 0));
        (0..pages).any(|_| {
            page(&mut claims, &|_| 0.5 + margin, &mut rng);
            claims.hurt_segments().next().is_some()
        })
    };
    (0..runs).filter(is_wrong).count() as u64
}

/// Pages until all of the segments that the control wins with .60 are told, of so many; in the
/// others it wins with .44.
fn pages_until_told(bad: usize, segments: usize, runs: u64) -> Vec<usize> {
    let mut pages: Vec<usize> = (0..runs)
        .map(|run| {
            let (mut claims, mut rng) = (claims(0.01, segments), step_rng(run, 1));
            let beats = |segment| if segment < bad { 0.6 } else { 0.44 };
            let told = (1..60_000).find(|_| {
                page(&mut claims, &beats, &mut rng);
                claims.hurt_segments().filter(|&segment| segment < bad).count() == bad
            });
            told.unwrap_or(60_000)
        })
        .collect();
    pages.sort_unstable();
    pages
}

#[test]
fn eight_segments_at_the_edge_seldom_raise_an_alarm_and_a_bad_one_is_found() {
    let wrong = false_alarms(8, 0.0, 1500, 300);
    assert!(wrong as f64 <= ERROR * 300.0, "{wrong} of 300");
    let pages = pages_until_told(1, 4, 60);
    assert!((900..1600).contains(&pages[30]), "{pages:?}");
}

#[test]
#[ignore = "prints the figures of docs/claims.md"]
fn figures() {
    for (margin, pages) in [(0.0, 2500), (0.01, 2500)] {
        let (runs, wrong) = (2000, false_alarms(8, margin, pages, 2000));
        println!("8 at the edge, margin {margin}: {wrong} of {runs}, ≤ {}", at_most(wrong, runs));
    }
    for (bad, segments) in [(1, 4), (3, 4), (1, 16), (3, 16)] {
        let pages = pages_until_told(bad, segments, 300);
        println!("{bad} of {segments}: {} ({})", pages[150], pages[270]);
    }
}

#[test]
fn without_a_control_the_rival_of_a_segment_is_the_ranker_that_did_best_there() {
    let mut claims = SegmentClaims::new(TARGET, 2);
    let mut tally = Tally::new(3);
    for (segment, rival, lost) in [(1, 1, true), (1, 2, false), (2, 1, false), (2, 2, true)] {
        let outcome = if lost { Outcome::Second } else { Outcome::First };
        tally.record_run(Duel::new(0, rival), outcome, 20);
        count(&mut claims, segment, Duel::new(0, rival), outcome, 20);
    }
    let wins = |x: usize, y: usize| tally.wins(x, y);
    claims.counted(80);
    assert!(claims.select(0, &mut step_rng(1, 1)).is_none(), "no winner yet");
    claims.follow(Some(0), None, &wins, &[0, 1, 2]);
    assert_eq!([0, 1].map(|segment| claims.rival(segment)), [Some(1), Some(2)]);
    assert_eq!(claims.wins_and_losses(0), [0.0; 2], "evidence counts from the verdict on");
    let mut rng = step_rng(1, 1);
    let mut met: Vec<usize> =
        (0..40).map(|_| claims.select(0, &mut rng).expect("a duel").duel.second).collect();
    met.sort_unstable();
    met.dedup();
    assert_eq!(met, [1, 2], "each of them, whatever the segment of the page");
    // in the other segment, and against the other rival, nothing is said about this one
    count(&mut claims, 1, Duel::new(0, 2), Outcome::Second, 200);
    count(&mut claims, 0, Duel::new(0, 1), Outcome::Second, 200);
    claims.counted(400);
    assert_eq!(claims.hurt(0), Progress::Open { comparisons: None });
    let fewest = claims.least_pages() as u32;
    count(&mut claims, 1, Duel::new(0, 1), Outcome::Second, fewest - 1);
    claims.counted(1);
    assert!(matches!(claims.hurt(0), Progress::Open { .. }), "one page less than the fewest");
    count(&mut claims, 1, Duel::new(1, 0), Outcome::First, 1);
    claims.counted(1);
    assert_eq!(claims.hurt(0), Progress::Decided { after: 482 });
    assert!(claims.at_most(0).is_some_and(|bound| bound < 0.5));
    // a retired rival ends the claims about its segments alone
    claims.follow(Some(0), None, &wins, &[0, 1]);
    assert_eq!([0, 1].map(|segment| claims.rival(segment)), [Some(1), Some(1)]);
    assert_eq!(claims.hurt(0), Progress::Decided { after: 482 });
    // another control: what was said of the earlier one is dropped
    claims.follow(Some(0), Some(2), &wins, &[0, 1, 2]);
    assert_eq!((claims.rival(0), claims.hurt_segments().count()), (Some(2), 0));
    claims.follow(None, None, &wins, &[1, 2]);
    assert_eq!(claims.winner(), None, "it is retired");
}

#[test]
fn nobody_is_hurt_once_that_is_proven_of_each_segment() {
    let mut claims = claims(0.05, 2);
    count(&mut claims, 1, PAIR, Outcome::First, 400);
    claims.counted(400);
    assert_eq!((claims.unhurt_after(), claims.is_settled(0)), (None, false));
    count(&mut claims, 2, PAIR, Outcome::First, 300);
    count(&mut claims, 2, PAIR, Outcome::Second, 150);
    claims.counted(450);
    assert_eq!((claims.unhurt_after(), claims.is_settled(0)), (Some(850), true));
    assert!(claims.select(0, &mut step_rng(1, 1)).is_none());
}

#[test]
fn a_segment_without_pages_is_not_waited_for() {
    let mut claims = claims(0.01, 2);
    count(&mut claims, 1, PAIR, Outcome::First, 1000);
    claims.counted(1000);
    assert!(!claims.is_settled(0), "its label may still come");
    claims.counted(9000);
    assert_eq!((claims.hurt(1), claims.is_settled(0)), (Progress::OutOfReach, true));
}

#[test]
fn a_cohort_in_any_order_gives_one_state_which_can_be_restored() {
    const WINDOW: i64 = 10_000;
    let spec = PolicySpec::from_text("d-ts-verdict").unwrap();
    let setup = Setup { rankers: 3, seed: 1 };
    let runs = [false, true].map(|reversed| {
        let mut run = Run::new(spec.start(setup), TARGET, WINDOW);
        run.start_with_segments(2);
        let width = run.cohorts().width_ms();
        for cohort in 0..8 {
            let mut answers: Vec<TimedAnswer> = (0..90_u32)
                .map(|number| {
                    let duel = Duel::new(0, 1 + number as usize % 2);
                    // of the segment 2 the winner loses, with and without a unit
                    let outcome = if number % 9 < 7 { Outcome::First } else { Outcome::Second };
                    let segment = if number % 9 < 7 { 1 } else { 2 };
                    let nonce = u128::from(1000 * cohort + number);
                    let unit = (number % 4 == 0).then_some(nonce as u64);
                    let issued_at = i64::from(cohort) * width + i64::from(number);
                    TimedAnswer { duel, outcome, score: None, issued_at, nonce, unit, segment }
                })
                .collect();
            if reversed {
                answers.reverse();
            }
            for answer in &answers {
                run.observe_timed(answer, None, 0, answer.issued_at + 1);
            }
        }
        run.catch_up();
        run.complete(8 * width, WINDOW + 8 * width);
        run
    });
    let states = runs.each_ref().map(|run| run.segments().unwrap().clone());
    assert_eq!(states[0], states[1]);
    let held = runs[0].segments().unwrap();
    assert_eq!((held.winner(), held.hurt_segments().collect::<Vec<_>>()), (Some(0), vec![1]));
    let restored = states[0].clone().restored(TARGET, 3).expect("it fits");
    assert_eq!((restored.hurt(0), restored.is_settled(0)), (held.hurt(0), held.is_settled(0)));
    assert!(states[0].clone().restored(TARGET, 1).is_none(), "of more rankers");
}
