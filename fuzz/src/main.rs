//! One binary for all targets. `RANKDUEL_FUZZ_TARGET` selects the target. `scripts/fuzz` builds and
//! runs it.
#![no_main]

use std::sync::LazyLock;

use targets::{TARGETS, Target};

mod targets;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("RANKDUEL_FUZZ_TARGET").unwrap_or_default();
    let known: Vec<&str> = TARGETS.iter().map(|(known, _)| *known).collect();
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found
        .unwrap_or_else(|| panic!("RANKDUEL_FUZZ_TARGET is {name:?}; it must be one of {known:?}"))
        .1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
