//! A whole experiment under each policy: all outcomes, clicks in pieces, posted batch results, a
//! change of the method, roster changes, and an exclusion of units.

use dueling_bandits::run::Run;
use dueling_bandits::{Answer, Bandit, InFlight, PolicySpec, Selection, Setup, step_rng};
use interleaving::Team;
use rankduel_engine::experiment_spec::{ExperimentSpec, Ranker};
use rankduel_engine::fold::Fold;
use rankduel_store::events::*;
use rankduel_store::*;
use serde_json::json;

use crate::events::{
    self, CREATED_AT, SEED, changed, enlists, entry, excludes, fold_all, interleaves_by, paused,
    retires,
};

use super::pin::{assert_pinned, every_policy, pin};
use super::script::Script;

const STEPS: u64 = 400;
const RANKERS: usize = 4;
const SLOTS: u16 = 6;

/// The experiment after its log: the spec that it was created from, and its state.
pub struct Played {
    pub spec: ExperimentSpec,
    pub log: Vec<LogEntry>,
    pub fold: Fold,
}

fn ranker(number: usize) -> Ranker {
    Ranker { id: format!("ranker-{number}"), description: None }
}

fn experiment(policy: PolicySpec) -> ExperimentSpec {
    let rankers: Vec<_> = (0..RANKERS).map(ranker).collect();
    serde_json::from_value(json!({
        "rankers": rankers, "policy": policy, "ties": "coin", "duel_ttl_seconds": 60, "seed": SEED,
        "watch": 0.02,
        // the default when the pins were made
        "pages": {"interleaving": {"kind": "team-draft", "depth_policy": "min"}},
    }))
    .expect("a spec")
}

fn sheet() -> String {
    let team = |place: u16| [Team::Left, Team::Right, Team::Both][usize::from(place) % 3];
    events::sheet((0..SLOTS).map(team))
}

fn clicks(selection: Selection, duel: Nonce, method: u32, script: &mut Script) -> Event {
    let on = (0..script.below(3)).map(|_| script.below(SLOTS.into()) as u16).collect();
    let event = events::clicks(selection, duel, method, sheet(), on);
    Event::Control(ControlEvent::Clicks(Box::new(event)))
}

/// Writes a log and folds it.
struct Writing {
    fold: Fold,
    log: Vec<LogEntry>,
}

impl Writing {
    fn write(&mut self, nonce: Option<Nonce>, event: Event) {
        let entry = entry(self.log.len() as u64 + 1, nonce, event);
        self.fold.apply(&entry).expect("an entry that follows");
        self.log.push(entry);
    }
}

/// The experiment after the script, with `policy` from the first entry on.
pub fn played(policy: &PolicySpec) -> Played {
    let spec = experiment(policy.clone());
    let fixed = policy.description().fixed_rankers.is_some();
    let mut script = Script::new(2);
    let mut writing = Writing { fold: Fold::start(&spec, SEED, CREATED_AT), log: Vec::new() };
    for step in 0..STEPS {
        let rankers = writing.fold.run().roster().rankers();
        if step == 100 && !fixed {
            writing.write(None, changed(&enlists(&format!("ranker-{rankers}"))));
        }
        if step == 200 && !fixed {
            writing.write(None, changed(&retires("ranker-1")));
        }
        if step == 150 {
            let method = "probabilistic:verdict=drawn,depth_policy=min";
            writing.write(None, changed(&interleaves_by(method)));
        }
        if step == 250 {
            writing.write(None, paused());
        }
        next(&mut writing, step, &mut script);
    }
    Played { spec, log: writing.log, fold: writing.fold }
}

fn next(writing: &mut Writing, step: u64, script: &mut Script) {
    let selection = writing.fold.run().policy().select(&InFlight::new(), &mut step_rng(7, step));
    let duel = (1 << 100) + Nonce::from(step);
    let method = writing.fold.state().methods.all().len() as u32;
    match script.below(12) {
        0 => {
            let ranker = script.below(writing.fold.run().roster().rankers()) as u16;
            let counts = vec![(ranker, 1 + script.below(9) as u64)];
            writing
                .write(None, Event::Control(ControlEvent::SelfDuels { counts, alone: Vec::new() }));
        }
        1 => {
            let pieces = script.below(3);
            for _ in 0..pieces {
                let event = clicks(selection, duel, method, script);
                writing.write(None, event);
            }
            match script.below(3) {
                0 => {
                    let event = clicks(selection, duel, method, script);
                    writing.write(Some(duel), event);
                }
                1 if pieces > 0 => {
                    writing.write(Some(duel), Event::Control(ControlEvent::Settled {}))
                }
                _ => {}
            }
        }
        2 => {
            let Some(batch) = writing.fold.run().policy().batch() else { return };
            let pairs = writing.fold.run().policy().batch_pairs();
            let open = pairs.iter().filter(|pair| pair.answered < pair.needed);
            let results = open
                .map(|pair| {
                    let needed = pair.needed - pair.answered;
                    let first_wins = script.below(needed as usize + 1) as u32;
                    PairResult {
                        first: pair.duel.first as u16,
                        second: pair.duel.second as u16,
                        first_wins,
                        second_wins: needed - first_wins,
                        ties: script.below(2) as u32,
                    }
                })
                .collect();
            writing.write(
                None,
                Event::Control(ControlEvent::BatchResults { batch, part: None, results }),
            );
        }
        _ => {
            let (first, second) = (selection.duel.first, selection.duel.second);
            let answer = match script.below(12) {
                0 => Answer::None,
                1 => Answer::Tie,
                _ if script.first_wins(first, second) => Answer::First,
                _ => Answer::Second,
            };
            let chosen_at = writing.fold.state().position;
            let first_left = step.is_multiple_of(2);
            let outcome = events::outcome(selection, answer);
            let outcome = OutcomeEvent { first_left, chosen_at, ..outcome };
            writing.write(None, Event::Outcome(outcome));
        }
    }
}

/// A log that `policy` folds anew without an excluded unit. Its duels were selected by another
/// state, here one of the uniform policy.
fn after_an_exclusion(policy: &PolicySpec) -> Fold {
    let uniform = PolicySpec::from_text("uniform").expect("a policy");
    let Played { mut log, .. } = played(&uniform);
    if policy.description().fixed_rankers.is_some() {
        // Remove the roster changes from the log.
        log.retain(|entry| {
            let mentions = |ranker: u16| usize::from(ranker) >= RANKERS;
            match &entry.event {
                Event::Outcome(outcome) => !mentions(outcome.first) && !mentions(outcome.second),
                Event::Control(ControlEvent::SelfDuels { counts, .. }) => {
                    !counts.iter().any(|(ranker, _)| mentions(*ranker))
                }
                Event::Control(ControlEvent::Changed { patch, .. }) => {
                    patch.get("enlist").or(patch.get("retire")).is_none()
                }
                Event::Control(_) => false,
            }
        });
    }
    let spec = ExperimentSpec { policy: policy.clone(), ..experiment(uniform) };
    let spec = spec.patched(&excludes(1)).expect("valid");
    let event = changed(&excludes(1));
    log.push(LogEntry { position: 0, nonce: 1 << 90, recorded_at: CREATED_AT, event });
    let mut fold = Fold::start(&spec, SEED, CREATED_AT);
    for (position, entry) in (1..).zip(log) {
        fold.apply(&LogEntry { position, ..entry }).expect("an entry that follows");
    }
    fold
}

/// A copy of the policy of a fold, which goes on with its verdict.
fn policy_of(fold: &Fold, spec: &PolicySpec) -> Box<dyn Bandit> {
    let (setup, policy) = (Setup { rankers: RANKERS, seed: SEED }, fold.run().policy());
    let policy = spec.restore(setup, &policy.save()).expect("its own state");
    Box::new(Run::going_on(policy, fold.run().roster().clone(), fold.run().verdict().clone()))
}

#[test]
fn every_experiment_folds_and_selects_as_pinned() {
    let found: Vec<_> = every_policy(500)
        .iter()
        .map(|policy| {
            let Played { spec, log, fold } = played(policy);
            let again = fold_all(Fold::start(&spec, SEED, CREATED_AT), &log);
            assert_eq!(again.save(), fold.save(), "{}", policy.kind());
            pin(policy.kind(), &fold.save(), policy_of(&fold, policy))
        })
        .collect();
    assert_pinned(include_str!("experiments.txt"), &found);
}

#[test]
fn every_policy_folds_anew_as_pinned() {
    let found: Vec<_> = every_policy(500)
        .iter()
        .map(|policy| {
            let fold = after_an_exclusion(policy);
            pin(policy.kind(), &fold.save(), policy_of(&fold, policy))
        })
        .collect();
    assert_pinned(include_str!("after_an_exclusion.txt"), &found);
}
