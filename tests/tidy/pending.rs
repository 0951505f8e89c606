//! Paths with known violations of a rule. The lists only get shorter: once a path is clean, remove
//! its entry. `cargo test --test tidy -- --ignored` names such entries.

use std::path::Path;

/// A rule, and the paths (with everything below them) to which it does not apply yet.
const PENDING: &[(&str, &[&str])] =
    &[("width", &["docs/operations.md"]), ("words", &["src/cli/demo/searches.rs"])];

pub fn covers(rule: &str, path: &Path) -> bool {
    entries(rule).any(|entry| path.starts_with(entry))
}

fn entries(rule: &str) -> impl Iterator<Item = &'static str> {
    let of_rule = PENDING.iter().filter(move |(name, _)| *name == rule);
    of_rule.flat_map(|(_, paths)| paths.iter().copied())
}

/// Runs only by hand, so that a repair and the removal of its entry can be separate changes.
#[test]
#[ignore = "names the entries that can be removed"]
fn every_pending_entry_is_still_needed() {
    type Findings = fn() -> Vec<crate::Finding>;
    let rules: [(&str, Findings); 7] = [
        ("width", crate::width::findings),
        ("size", crate::size::findings),
        ("links", crate::links::findings),
        ("words", crate::words::findings),
        ("cycles", crate::imports::cycles),
        ("layers", crate::imports::upward),
        ("architecture", crate::architecture::findings),
    ];
    let mut unneeded = Vec::new();
    for (rule, findings) in rules {
        let findings = findings();
        for entry in entries(rule) {
            if !findings.iter().any(|finding| finding.path.starts_with(entry)) {
                unneeded.push(format!("{rule}: {entry}"));
            }
        }
    }
    assert!(unneeded.is_empty(), "remove from PENDING:\n{}", unneeded.join("\n"));
    let known: Vec<_> = rules.iter().map(|(rule, _)| *rule).collect();
    assert!(PENDING.iter().all(|(rule, _)| known.contains(rule)), "a rule that does not exist");
}
