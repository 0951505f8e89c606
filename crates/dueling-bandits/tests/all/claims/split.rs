//! A segment that becomes an experiment of its own: what starts again, and who counts.

use dueling_bandits::claims::control::{Claim, Goal};
use dueling_bandits::claims::ladder::Progress;
use dueling_bandits::evidence::{Target, TimedAnswer};
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::Run;
use dueling_bandits::{Duel, Outcome, PolicySpec, step_rng};
use rand::RngExt;

use super::at_most;

const TARGET: Target = Target { confidence: 0.95, margin: 0.0 };
const PAIR: Duel = Duel { first: 0, second: 1 };

fn start(window_ms: i64) -> Run {
    let policy = PolicySpec::from_text("uniform").expect("a policy");
    Run::new(policy.start(Setup { rankers: 2, seed: 1 }), TARGET, window_ms)
}

fn answer(run: &mut Run, unit: u64, wins: bool, (segment, at): (u8, i64)) {
    let outcome = if wins { Outcome::First } else { Outcome::Second };
    let nonce = u128::from(unit);
    let answer = TimedAnswer {
        duel: PAIR,
        outcome,
        score: None,
        issued_at: at,
        nonce,
        unit: Some(unit),
        segment,
    };
    run.observe_timed(&answer, None, 0, at);
}

#[test]
fn a_split_starts_again_what_is_about_all_traffic() {
    let mut run = start(1000);
    run.look_for_drift();
    run.start_with_segments(2);
    run.start_with_control(1, Goal::Best);
    for unit in 0..400 {
        answer(&mut run, unit, unit % 10 > 0, (1 + (unit % 2) as u8, 10));
    }
    run.complete(5000, 7000);
    let segments = |run: &Run| run.segments().expect("segments").clone();
    let better = |run: &Run| run.claims().expect("a control").progress(0, Claim::Better);
    assert_eq!(run.verdict().winner(), Some(0));
    assert!(matches!(better(&run), Progress::Decided { .. }));
    let drift_error = run.drift().expect("it looks").error();
    answer(&mut run, 1000, true, (1, 6000));

    assert!(!run.split(2, 7000), "there is no such segment");
    assert!(run.split(0, 7000));
    assert!(!run.split(0, 7000), "it is split off already");
    assert!(run.verdict().verdict().is_none());
    assert!(run.drift().expect("it looks").error() < drift_error);
    assert!(segments(&run).is_split(0) && !segments(&run).is_split(1));
    assert_eq!((segments(&run).splits(), run.cohorts().waiting()), (1, 1));
    assert!(run.cohorts().known_units().contains(1000), "it waits");
    // of the segment that is another experiment's; and issued before, so that the verdict counts
    // neither
    answer(&mut run, 1001, true, (1, 9000));
    answer(&mut run, 1002, true, (2, 6000));
    assert_eq!((run.cohorts().left_out().late, run.cohorts().waiting()), (1, 2));
    for unit in 2000..2400 {
        answer(&mut run, unit, unit % 10 > 0, (2, 9000));
    }
    run.complete(20_000, 22_000);
    assert_eq!(run.verdict().comparisons(), 400);
    assert_eq!(run.verdict().winner(), Some(0));
    assert!(matches!(better(&run), Progress::Decided { .. }), "the control was named again");
    for unit in 3000..3400 {
        answer(&mut run, unit, unit % 10 > 0, (2, 30_000));
    }
    run.complete(40_000, 42_000);
    assert!(segments(&run).is_settled(0), "one segment is left");
    assert!(segments(&run).unhurt_after().is_some());
}

#[test]
fn units_of_elsewhere_never_count() {
    let mut run = start(1000);
    let mut before = start(0);
    answer(&mut before, 1, true, (0, 0));
    answer(&mut run, 1, true, (0, 10));
    answer(&mut run, 2, true, (0, 10));
    run.exclude_units_seen_elsewhere(before.cohorts().known_units());
    answer(&mut run, 1, true, (0, 2000));
    assert_eq!(run.cohorts().left_out().repeated_unit, 1);
    run.complete(5000, 7000);
    assert_eq!((run.verdict().comparisons(), run.cohorts().left_out().repeated_unit), (1, 2));
    assert_eq!(run.expected().of(run.policy().tally()).plays(0, 1), 1.0, "nothing waits");
}

/// People who answer after a split.
const LATER: u64 = 1500;
/// Most people before it.
const BEFORE: usize = 400;
/// A run looks lucky once the square of its lead is so many times its answers.
const LUCK: i64 = 6;

/// An even pair, and people who prefer one ranker whenever they are asked. Somebody splits the run
/// when it looks lucky, and the same people come first. Whether the new run has a verdict, which is
/// wrong; `None` for a run that never looks lucky.
fn is_wrong(number: u64, knows: bool) -> Option<bool> {
    let (mut rng, mut whole) = (step_rng(number, 0), start(0));
    let (mut tastes, mut lead) = (Vec::new(), 0_i64);
    while tastes.len() < 20 || lead * lead < LUCK * tastes.len() as i64 {
        if tastes.len() == BEFORE {
            return None;
        }
        let wins = rng.random_bool(0.5);
        answer(&mut whole, tastes.len() as u64, wins, (0, 0));
        lead += if wins { 1 } else { -1 };
        tastes.push(wins);
    }
    let mut own = start(0);
    if knows {
        own.exclude_units_seen_elsewhere(whole.cohorts().known_units());
    }
    Some((0..LATER).any(|unit| {
        let taste = tastes.get(unit as usize).copied();
        answer(&mut own, unit, taste.unwrap_or_else(|| rng.random_bool(0.5)), (0, 0));
        own.verdict().verdict().is_some()
    }))
}

/// How many of the lucky ones among so many runs are wrong, and how many are lucky.
fn wrong(runs: u64, knows: bool) -> [u64; 2] {
    let lucky: Vec<bool> = (0..runs).filter_map(|number| is_wrong(number, knows)).collect();
    [lucky.iter().filter(|&&wrong| wrong).count() as u64, lucky.len() as u64]
}

#[test]
fn the_luck_of_the_whole_is_not_heard_twice() {
    let [[wrong, of], [otherwise, _]] = [true, false].map(|knows| self::wrong(400, knows));
    assert!(wrong * 10 <= of, "an error of 5 %: {wrong} of {of}");
    assert!(otherwise >= 2 * wrong, "it would be heard otherwise: {otherwise} and {wrong} of {of}");
}

#[test]
#[ignore = "prints the share of wrong verdicts"]
fn figures() {
    for knows in [true, false] {
        let [wrong, of] = wrong(20_000, knows);
        println!("knows {knows}: {wrong} of {of}, ≤ {}", at_most(wrong, of));
    }
}
