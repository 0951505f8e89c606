//! The format of pins, and their comparison.

use std::fmt::Write;
use std::path::Path;

use dueling_bandits::{InFlight, Policy, PolicySpec, step_rng};
use sha2::{Digest, Sha256};

/// One pinned state: the policy kind, the first 16 hexadecimal digits of the state's SHA-256, and
/// the next hundred selections, two digits each (rankers 0 to 9), without white space.
pub struct Pin {
    pub kind: &'static str,
    pub state: &'static str,
    pub selections: &'static str,
}

/// Every kind with its defaults, and with `horizon` where the kind requires one.
pub fn every_policy(horizon: u64) -> Vec<PolicySpec> {
    let spec = |(kind, _): &(&str, _)| {
        PolicySpec::from_text_with(kind, &[("horizon", horizon.into())])
            .expect("a policy with its defaults")
    };
    PolicySpec::KINDS.iter().map(spec).collect()
}

pub fn digest(state: &[u8]) -> String {
    Sha256::digest(state)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The next hundred selections of a policy with nothing in flight. None of them is folded.
pub fn selections(policy: &dyn Policy) -> String {
    let mut text = String::new();
    for number in 0..100 {
        let duel = policy.select(&InFlight::new(), &mut step_rng(77, number)).duel;
        assert!(duel.first < 10 && duel.second < 10, "one digit per ranker");
        write!(text, "{}{}", duel.first, duel.second).expect("writing to a string");
    }
    text
}

/// Fail unless `found` (kind, state, selections) equals `pins` for every kind, and print the table
/// as it is now.
pub fn assert_pinned(pins: &[Pin], found: &[(String, String, String)]) {
    let same = |pin: &Pin, (kind, state, selections): &(String, String, String)| {
        let pinned: String = pin.selections.split_whitespace().collect();
        (pin.kind, pin.state, &pinned) == (kind, state, selections)
    };
    let changed: Vec<_> = found
        .iter()
        .filter(|found| !pins.iter().any(|pin| same(pin, found)))
        .map(|(kind, _, _)| kind.as_str())
        .collect();
    let gone: Vec<_> = pins
        .iter()
        .map(|pin| pin.kind)
        .filter(|kind| found.iter().all(|found| found.0 != *kind))
        .collect();
    assert!(
        changed.is_empty() && gone.is_empty(),
        "the fold of {changed:?} has changed, and the kinds {gone:?} are missing; the table as it \
         is now:\n{}",
        table(found)
    );
}

fn table(found: &[(String, String, String)]) -> String {
    let mut text = String::new();
    for (kind, state, selections) in found {
        writeln!(text, "    Pin {{\n        kind: \"{kind}\",\n        state: \"{state}\",")
            .expect("writing to a string");
        let lines: Vec<_> = selections
            .as_bytes()
            .chunks(80)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        let lines = lines.join("\\\n                     ");
        writeln!(text, "        selections: \"{lines}\",\n    }},").expect("writing to a string");
    }
    text
}

/// The states in `folder`: kind, format, bytes.
pub fn kept(folder: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let files =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    files
        .map(|file| {
            let path = file.expect("a file").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            let (kind, format) =
                name.split_once('.').unwrap_or_else(|| panic!("{name} is not named KIND.FORMAT"));
            let format =
                format.parse().unwrap_or_else(|_| panic!("{name} is not named KIND.FORMAT"));
            (kind.to_string(), format, std::fs::read(&path).expect("a file"))
        })
        .collect()
}

/// Fail unless the folder has the current state, byte for byte. With `RANKDUEL_KEEP_STATES`, the
/// state of a new kind or format is added; an existing one never changes.
pub fn assert_kept(folder: &Path, spec: &PolicySpec, format: u32, state: &[u8]) {
    let path = folder.join(format!("{}.{format}", spec.kind()));
    if !path.exists() && std::env::var_os("RANKDUEL_KEEP_STATES").is_some() {
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(&path, state).expect("a file");
    }
    let kept = std::fs::read(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; run this test once with RANKDUEL_KEEP_STATES=1 to keep it",
            path.display()
        )
    });
    assert!(kept == state, "the bytes of {} have changed: give it a new format", path.display());
}
