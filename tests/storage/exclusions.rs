//! An excluded unit counts as if it had never answered: for every policy, whenever it is excluded.

use dueling_bandits::{Answer, InFlight, PolicyRng, Selection, TieRule, step_rng};
use interleaving::Team;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::LogEntry;
use rankduel_store::events::*;
use serde_json::json;

use crate::events::{CREATED_AT, SEED, changed, clicks, entry, excludes, fold_all, outcome, sheet};
use crate::pins::pin::every_policy;

/// The unit that is excluded, and one that never answers.
const MACHINE: u64 = 0;
const NOBODY: u64 = 99;

/// An answer of a unit.
#[derive(Debug, Clone)]
struct Step {
    /// 4 is no unit.
    unit: u64,
    answer: Answer,
    first_left: bool,
    /// Milliseconds from its issue to its entry.
    delay: i64,
    /// Whether it comes as clicks.
    clicks: bool,
}

fn steps() -> impl Strategy<Value = Step> {
    let answers = prop_oneof![
        4 => Just(Answer::First),
        3 => Just(Answer::Second),
        1 => Just(Answer::Tie),
        1 => Just(Answer::None),
    ];
    (0..5u64, answers, any::<bool>(), 0..40_000i64, prop::bool::weighted(0.2)).prop_map(
        |(unit, answer, first_left, delay, clicks)| Step {
            unit,
            answer,
            first_left,
            delay,
            clicks,
        },
    )
}

/// Every policy among three rankers, with cohorts or without.
fn specs() -> Vec<ExperimentSpec> {
    let numbered = every_policy(200).into_iter().enumerate();
    numbered
        .map(|(number, policy)| {
            let spec = json!({
                "rankers": ["a", "b", "c"], "policy": policy, "ties": TieRule::Half,
                "duel_ttl_seconds": 60, "answer_window_seconds": 30 * (number % 2), "seed": SEED,
            });
            serde_json::from_value(spec).expect("a spec")
        })
        .collect()
}

/// The spec that excludes a unit.
fn without(spec: &ExperimentSpec, unit: u64) -> ExperimentSpec {
    spec.patched(&excludes(unit)).expect("a valid exclusion")
}

fn folded(spec: &ExperimentSpec, log: &[LogEntry]) -> Fold {
    fold_all(Fold::start(spec, SEED, CREATED_AT), log)
}

/// The log of a service that excludes `MACHINE` after `at` answers, and the spec at its end.
fn log_of(mut spec: ExperimentSpec, script: &[Step], at: usize) -> (ExperimentSpec, Vec<LogEntry>) {
    let (mut log, mut fold) = (Vec::new(), Fold::start(&spec, SEED, CREATED_AT));
    let mut rng: PolicyRng = step_rng(7, 7);
    let entry = |log: &[LogEntry], event| entry(log.len() as u64 + 1, None, event);
    for (number, step) in script.iter().enumerate() {
        if number == at {
            spec = without(&spec, MACHINE);
            log.push(entry(&log, changed(&excludes(MACHINE))));
            // the service folds the whole log anew
            fold = folded(&spec, &log);
        }
        let selection = fold.run().policy().select(&InFlight::new(), &mut rng);
        let unit = (step.unit < 4).then_some(step.unit);
        let first_left = step.first_left;
        let duel = log.len() as u128 + 1;
        let issued_at = CREATED_AT + 1000 * duel as i64 - step.delay;
        let event = match step.clicks && !selection.duel.is_self() {
            true => {
                let sheet = sheet([Team::Left, Team::Right].into_iter().cycle().take(4));
                let clicks = clicks(selection, duel, 1, sheet, vec![u16::from(first_left)]);
                let clicks = ClicksEvent { first_left, issued_at, unit, ..clicks };
                Event::Control(ControlEvent::Clicks(Box::new(clicks)))
            }
            false => {
                let chosen_at = fold.state().position;
                let outcome = outcome(selection, step.answer);
                Event::Outcome(OutcomeEvent { first_left, chosen_at, issued_at, unit, ..outcome })
            }
        };
        let answered = entry(&log, event);
        fold.apply(&answered).expect("an entry that follows");
        log.push(answered);
        if number % 10 == 9 {
            let issued_before = CREATED_AT + 1000 * duel as i64 - 30_000;
            let complete = Event::Control(ControlEvent::CohortsComplete {
                issued_before,
                issued: 12,
                answered: 10,
            });
            let complete = entry(&log, complete);
            fold.apply(&complete).expect("an entry that follows");
            log.push(complete);
        }
    }
    (spec, log)
}

/// The same log if `MACHINE` had never answered: in place of its answers there is an entry that
/// teaches nothing.
fn without_machine(log: &[LogEntry]) -> Vec<LogEntry> {
    let replaced = |entry: &LogEntry| {
        let nothing = |issued_at| {
            let nothing = outcome(Selection::of(0, 0), Answer::None);
            Event::Outcome(OutcomeEvent { issued_at, ..nothing })
        };
        let event = match &entry.event {
            Event::Outcome(outcome) if outcome.unit == Some(MACHINE) => nothing(outcome.issued_at),
            Event::Control(ControlEvent::Clicks(clicks)) if clicks.unit == Some(MACHINE) => {
                nothing(clicks.issued_at)
            }
            Event::Control(ControlEvent::Changed { .. }) => changed(&excludes(NOBODY)),
            other => other.clone(),
        };
        LogEntry { event, ..entry.clone() }
    };
    log.iter().map(replaced).collect()
}

/// All that reports and selections read.
fn state(fold: &Fold) -> [String; 8] {
    [
        format!("{:?}", fold.run().policy().save()),
        format!("{:?}", fold.state().counts),
        format!("{:?}", fold.state().history),
        format!("{:?}", fold.run().verdict().state()),
        format!("{:?}", fold.run().cohorts()),
        format!("{:?}", fold.state().heavy_units),
        format!("{:?}", fold.run().race()),
        format!("{:?}", fold.state().page_counts),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn an_excluded_unit_counts_as_if_it_had_never_answered(
        script in vec(steps(), 1..80), at in any::<Index>(),
    ) {
        for spec in specs() {
            let kind = spec.policy.kind();
            let (excluding, log) = log_of(spec.clone(), &script, at.index(script.len()));
            let fold = folded(&excluding, &log);
            let never = folded(&without(&spec, NOBODY), &without_machine(&log));
            prop_assert_eq!(state(&fold), state(&never), "{}", kind);
            let machine = log.iter().filter(|entry| match &entry.event {
                Event::Outcome(outcome) => {
                    outcome.unit == Some(MACHINE) && outcome.first != outcome.second
                }
                Event::Control(ControlEvent::Clicks(clicks)) => clicks.unit == Some(MACHINE),
                _ => false,
            });
            prop_assert_eq!(fold.state().excluded.answers(), machine.count() as u64, "{}", kind);

            let saved = fold.save();
            let restored = Fold::restore(&excluding, SEED, &saved).expect("a saved state");
            prop_assert_eq!(restored.save(), &saved[..], "{}", kind);
            prop_assert!(Fold::restore(&spec, SEED, &saved).is_none(), "{}: without", kind);
            let other = without(&spec, NOBODY);
            prop_assert!(Fold::restore(&other, SEED, &saved).is_none(), "{}: another unit", kind);
            let before = folded(&spec, &[]).save();
            prop_assert!(Fold::restore(&excluding, SEED, &before).is_none(), "{}: before", kind);
        }
    }
}
