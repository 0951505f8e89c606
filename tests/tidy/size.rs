//! Source files are short enough to read. Split a longer file, because it does two things.

use std::path::Path;

use crate::{Finding, check, tree};

const LINES: usize = 600;

/// Files that may be longer, with the reason.
const ALLOWED: &[(&str, &str)] = &[];

#[test]
fn source_files_have_at_most_600_lines() {
    check(findings());
}

pub fn findings() -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, source) in tree::crates() {
        for file in tree::files(&source).iter().filter(|file| file.is("rs")) {
            let lines = file.lines().count();
            let allowed = ALLOWED.iter().any(|(path, _)| file.path == Path::new(path));
            if lines > LINES && !allowed {
                let message = format!("{lines} lines, at most {LINES}");
                findings.push(Finding::new(&file.path, 0, message));
            }
        }
    }
    findings
}

#[test]
fn every_allowed_file_is_longer_than_the_limit() {
    for (path, reason) in ALLOWED {
        let text = std::fs::read_to_string(tree::root().join(path)).expect(path);
        assert!(text.lines().count() > LINES, "{path} needs no exception: {reason}");
    }
}
