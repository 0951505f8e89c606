//! Saved states: one of every layout that was ever written. A file is named `KIND.FORMAT` and holds
//! the output of `save` after the script.
//!
//! The test also fails if the folder lacks a state that this version writes; the message explains
//! how to add it.

use std::path::PathBuf;

use super::pin::{assert_kept, every_policy, kept, selections};
use super::policies;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/all/pins/states/policy")
}

#[test]
fn every_state_layout_is_kept() {
    for spec in every_policy(2000) {
        let policy = policies::played(&spec);
        assert_kept(&folder(), &spec, policy.format(), &policy.save());
    }
}

#[test]
fn every_kept_state_restores_and_continues() {
    let policies = every_policy(2000);
    let kept = kept(&folder());
    assert!(kept.len() >= policies.len());
    for (kind, format, state) in kept {
        let spec = policies
            .iter()
            .find(|spec| spec.kind() == kind)
            .unwrap_or_else(|| panic!("unknown kind {kind}"));
        let restored = spec
            .restore(policies::SETUP, format, &state)
            .unwrap_or_else(|| panic!("{kind} of format {format} does not restore"));
        assert_eq!(
            selections(&*restored),
            selections(&*policies::played(spec)),
            "{kind} of format {format}"
        );
    }
}
