//! One saved state of every format that was ever written. A file is named `KIND.FORMAT` and holds
//! the result of `save` after the script.
//!
//! The test also fails if the folder lacks a format that this version writes; the message explains
//! how to add it.

use std::path::PathBuf;

use rankduel::engine::fold::Fold;

use super::experiments;
use super::pin::{assert_kept, every_policy, kept, selections};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/storage/pins/states/experiment")
}

#[test]
fn every_written_state_is_kept() {
    for spec in every_policy(500) {
        let fold = experiments::played(&spec).fold;
        assert_kept(&folder(), &spec, fold.format(), &fold.save());
    }
}

#[test]
fn every_kept_experiment_restores_and_continues() {
    let policies = every_policy(500);
    let kept = kept(&folder());
    assert!(kept.len() >= policies.len());
    for (kind, format, state) in kept {
        let policy = policies
            .iter()
            .find(|spec| spec.kind() == kind)
            .unwrap_or_else(|| panic!("no kind {kind}"));
        let played = experiments::played(policy);
        let restored = Fold::restore(&played.spec, experiments::SEED, &state)
            .unwrap_or_else(|| panic!("{kind} of format {format} does not restore"));
        assert_eq!(restored.format(), format, "{kind}");
        assert_eq!(restored.position(), played.fold.position(), "{kind}");
        assert_eq!(
            selections(restored.policy()),
            selections(played.fold.policy()),
            "{kind} of format {format}"
        );
    }
}
