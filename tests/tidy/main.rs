//! Rules about the repository that no compiler checks. A failure names file and line.
//!
//! - [`width`]: comments and prose wrap at 100 columns
//! - [`size`]: source files stay short enough to read
//! - [`links`]: links, anchors and paths in the documentation lead somewhere
//! - [`words`]: names that were replaced do not come back
//! - [`modules`]: every source file is part of a program
//! - [`circles`]: the files of a crate do not import each other in a circle
//! - [`statements`]: SQL that reads or writes the tables is in the lists of statements
//! - [`migrations`]: migrations run on a distributed PostgreSQL
//!
//! `cargo test --test tidy` takes a second.

mod circles;
mod links;
mod migrations;
mod modules;
mod size;
mod statements;
mod tree;
mod width;
mod words;

use std::path::PathBuf;

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: PathBuf,
    /// The line, from 1; 0 if the finding is about the whole file.
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, message: message.into() }
    }
}

/// Fail with all findings.
#[track_caller]
fn check(mut findings: Vec<Finding>) {
    findings.sort();
    let lines: Vec<_> = findings
        .iter()
        .map(|finding| format!("{}:{}: {}", finding.path.display(), finding.line, finding.message))
        .collect();
    assert!(lines.is_empty(), "{} findings\n{}\n", lines.len(), lines.join("\n"));
}
