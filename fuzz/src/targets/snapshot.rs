//! Restoring a state from arbitrary bytes: it is refused, or the restored state works.

use std::sync::LazyLock;

use dueling_bandits::{Answer, InFlight, step_rng};
use dueling_bandits::{Policy, PolicySpec, Setup};
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::LogEntry;
use rankduel_store::events::{ControlEvent, Event, OutcomeEvent};
use sha2::{Digest, Sha256};

use super::bytes::Bytes;
use super::policy;

/// Number of rankers in every state of this target.
pub const RANKERS: usize = 3;
const SEED: u64 = 7;
const ANSWERS: [Answer; 4] = [Answer::First, Answer::Second, Answer::Tie, Answer::None];

/// A policy of each kind, with its defaults.
pub fn every_policy() -> Vec<PolicySpec> {
    let spec = |(kind, _): &(&str, _)| {
        PolicySpec::from_text_with(kind, &[("horizon", 1000.into())])
            .expect("a policy with its defaults")
    };
    PolicySpec::KINDS.iter().map(spec).collect()
}

/// An experiment with this policy.
pub fn experiment(policy: &PolicySpec) -> ExperimentSpec {
    let rankers = ["a", "b", "c"].map(|id| serde_json::json!({"id": id}));
    let spec = serde_json::json!({"rankers": rankers, "policy": policy, "ties": "coin", "duel_ttl_seconds": 60});
    serde_json::from_value(spec).expect("a spec")
}

static EXPERIMENTS: LazyLock<Vec<ExperimentSpec>> =
    LazyLock::new(|| every_policy().iter().map(experiment).collect());

/// The first byte selects the policy. The second selects a fold or the policy alone. The rest is
/// the state to restore.
pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let spec = &EXPERIMENTS[bytes.below(EXPERIMENTS.len())];
    if bytes.byte() & 1 == 0 {
        restore_fold(spec, bytes.0);
    } else {
        restore_policy(&spec.policy, bytes.0);
    }
}

/// Whether an input of this target restores a state of the policy `kind`. Such an input is a useful
/// seed.
#[allow(dead_code, reason = "only the tests call it")]
pub fn restores(kind: &str, input: &[u8]) -> bool {
    let mut bytes = Bytes(input);
    let spec = &EXPERIMENTS[bytes.below(EXPERIMENTS.len())];
    let of_policy = bytes.byte() & 1 == 1;
    let restored = if of_policy {
        spec.policy.restore(Setup { rankers: RANKERS, seed: SEED }, bytes.0).is_some()
    } else {
        Fold::restore(spec, SEED, &with_digest(bytes.0)).is_some()
    };
    spec.policy.kind() == kind && restored
}

/// A state of every policy, and of folds with some of them, as inputs of this target by name.
#[allow(dead_code, reason = "only the tests call it")]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    const FOLDS: [&str; 4] = ["uniform", "d-ts", "pcomp", "savage"];
    let mut seeds = Vec::new();
    for (index, spec) in EXPERIMENTS.iter().enumerate() {
        let (index, kind) = (index as u8, spec.policy.kind());
        let mut policy = spec.policy.start(Setup { rankers: RANKERS, seed: SEED });
        advance(&mut *policy, kind);
        seeds.push((kind.to_owned(), [&[index, 1][..], &policy.save()].concat()));
        if FOLDS.contains(&kind) {
            let mut fold = Fold::start(spec, SEED, 1);
            advance_fold(&mut fold, kind);
            let saved = fold.save();
            let content = &saved[..saved.len() - DIGEST_BYTES];
            seeds.push((format!("fold-{kind}"), [&[index, 0][..], content].concat()));
        }
    }
    seeds
}

/// Bytes of the digest at the end of a saved fold.
const DIGEST_BYTES: usize = 16;

fn with_digest(content: &[u8]) -> Vec<u8> {
    [content, &Sha256::digest(content)[..DIGEST_BYTES]].concat()
}

/// Restore a fold from `content` with a matching digest: another version of the program may have
/// written it.
pub fn restore_fold(spec: &ExperimentSpec, content: &[u8]) {
    let Some(mut fold) = Fold::restore(spec, SEED, &with_digest(content)) else { return };
    let kind = spec.policy.kind();
    let again = Fold::restore(spec, SEED, &fold.save()).map(|fold| fold.save());
    assert_eq!(again, Some(fold.save()), "{kind}");
    advance_fold(&mut fold, kind);
}

/// Issue and answer a few duels.
fn advance_fold(fold: &mut Fold, kind: &str) {
    for step in 0..6 {
        let selection = fold.run().policy().select(&InFlight::new(), &mut step_rng(1, step));
        let duel = selection.duel;
        assert!(duel.first < RANKERS && duel.second < RANKERS, "{kind}: {selection:?}");
        let event = if duel.is_self() {
            Event::Control(ControlEvent::SelfDuels {
                counts: vec![(duel.first as u16, 1)],
                alone: Vec::new(),
            })
        } else {
            Event::Outcome(OutcomeEvent {
                first: duel.first as u16,
                second: duel.second as u16,
                first_left: step % 2 == 0,
                answer: ANSWERS[step as usize % ANSWERS.len()],
                batch: selection.batch,
                ticket: selection.ticket,
                chosen_at: fold.state().position,
                issued_at: 0,
                unit: None,
                segment: None,
            })
        };
        let Some(position) = fold.state().position.checked_add(1) else { return };
        let before = fold.save();
        let entry = LogEntry { position, nonce: position.into(), recorded_at: 1, event };
        match fold.apply(&entry) {
            Ok(()) => assert_eq!(fold.state().position, position, "{kind}"),
            Err(_) => assert_eq!(fold.save(), before, "{kind}: a refused entry changed the fold"),
        }
    }
}

fn restore_policy(spec: &PolicySpec, state: &[u8]) {
    let setup = Setup { rankers: RANKERS, seed: SEED };
    let Some(mut restored) = spec.restore(setup, state) else { return };
    let saved = restored.save();
    let again = spec.restore(setup, &saved).expect("the saved state");
    assert_eq!(again.save(), saved, "{}", spec.kind());
    advance(&mut *restored, spec.kind());
}

/// Select and observe a few duels.
fn advance(policy: &mut dyn Policy, kind: &str) {
    for step in 0..8 {
        let selection = policy.select(&InFlight::new(), &mut step_rng(1, step));
        let duel = selection.duel;
        assert!(duel.first < RANKERS && duel.second < RANKERS, "{kind}: {selection:?}");
        assert!(policy.champion() < RANKERS, "{kind}");
        if duel.is_self() {
            policy.observe_self_duels(duel.first, 1);
        } else {
            policy::observe(policy, selection, step as u8 * 8);
        }
    }
}
