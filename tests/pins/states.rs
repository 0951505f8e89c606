//! Saved states that are kept: one of every layout that was ever written. A file is named
//! `states/WHAT/KIND.FORMAT`, with WHAT `policy` or `experiment`, and holds what `save` wrote after the script.
//!
//! A state that this version writes and that is not kept yet fails the test too: it says where to keep it.

use std::path::{Path, PathBuf};

use rankduel::experiment::fold::Fold;
use rankduel::policy::PolicySpec;

use crate::pin::{every_policy, selections};
use crate::{experiments, policies};

fn folder(what: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pins/states").join(what)
}

/// Kept states of `what`: kind, format, bytes.
fn kept(what: &str) -> Vec<(String, u32, Vec<u8>)> {
    let folder = folder(what);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    files
        .map(|file| {
            let path = file.expect("a file").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            let (kind, format) = name.split_once('.').unwrap_or_else(|| panic!("{name}: KIND.FORMAT"));
            let format = format.parse().unwrap_or_else(|_| panic!("{name}: KIND.FORMAT"));
            (kind.to_string(), format, std::fs::read(&path).expect("a file"))
        })
        .collect()
}

/// Fail unless the state that is written now is kept, byte for byte. With `RANKDUEL_KEEP_STATES` a state of a new kind
/// or format is added; one that is kept is never changed.
fn assert_kept(what: &str, spec: &PolicySpec, format: u32, state: &[u8]) {
    let path = folder(what).join(format!("{}.{format}", spec.kind()));
    if !path.exists() && std::env::var_os("RANKDUEL_KEEP_STATES").is_some() {
        std::fs::create_dir_all(folder(what)).expect("a folder");
        std::fs::write(&path, state).expect("a file");
    }
    let kept = std::fs::read(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; run this test once with RANKDUEL_KEEP_STATES=1 to keep it", path.display())
    });
    assert!(kept == state, "{} is written in another way now: give it a new format", path.display());
}

#[test]
fn every_state_that_is_written_is_kept() {
    for spec in every_policy(2000) {
        let policy = policies::played(&spec);
        assert_kept("policy", &spec, policy.format(), &policy.save());
    }
    for spec in every_policy(500) {
        let fold = experiments::played(&spec).fold;
        assert_kept("experiment", &spec, fold.format(), &fold.save());
    }
}

#[test]
fn every_kept_policy_restores_and_goes_on() {
    let policies = every_policy(2000);
    let kept = kept("policy");
    assert!(kept.len() >= policies.len());
    for (kind, format, state) in kept {
        let spec =
            policies.iter().find(|spec| spec.kind() == kind).unwrap_or_else(|| panic!("no kind {kind}"));
        let restored = spec
            .restore(policies::SETUP, format, &state)
            .unwrap_or_else(|| panic!("{kind} of format {format} does not restore"));
        assert_eq!(selections(&*restored), selections(&*policies::played(spec)), "{kind} of format {format}");
    }
}

#[test]
fn every_kept_experiment_restores_and_goes_on() {
    let policies = every_policy(500);
    let kept = kept("experiment");
    assert!(kept.len() >= policies.len());
    for (kind, format, state) in kept {
        let policy =
            policies.iter().find(|spec| spec.kind() == kind).unwrap_or_else(|| panic!("no kind {kind}"));
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
