//! SQL that reads or writes the tables of PostgreSQL is in the two lists of statements, whose tests
//! check that each suits a distributed database.

use crate::{Finding, check, tree};

const FOLDERS: [&str; 2] = ["crates/store/src/postgres", "crates/store/src/sql"];
const LIST: &str = "statements.rs";
const TABLES: [&str; 9] = [
    "_sqlx_migrations",
    "api_key",
    "audit",
    "ended_session",
    "experiment",
    "log",
    "signing_key",
    "snapshot",
    "webhook_notice",
];

#[test]
fn statements_are_listed() {
    let mut findings = Vec::new();
    for folder in FOLDERS {
        for file in tree::files(folder) {
            if file.path.ends_with(LIST) {
                continue;
            }
            for (number, line) in file.lines() {
                if is_statement(line) {
                    findings.push(Finding::new(&file.path, number, format!("belongs in {LIST}")));
                }
            }
        }
    }
    check(findings);
}

/// Whether a line of code has a part of a statement that reads or writes a table.
fn is_statement(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with("//") {
        return false;
    }
    let words: Vec<&str> = line
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_'))
        .collect();
    words.windows(2).any(|pair| {
        matches!(pair[0], "from" | "into" | "update" | "join" | "table" | "copy")
            && TABLES.contains(&pair[1])
    })
}

#[test]
fn statements_are_found() {
    for line in [
        "\"select 1 from experiment where id = $1\"",
        "     insert into log (position)",
        "\"update snapshot set state = $1\"",
        "\"lock table signing_key\"",
    ] {
        assert!(is_statement(line), "{line}");
    }
    assert!(!is_statement("// reads from experiment"));
    assert!(!is_statement("use crate::store::sql::log_row::LogRow;"));
    assert!(!is_statement(".bind(i64::from(snapshot.format))"));
}
