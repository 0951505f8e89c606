//! Migrations run on a PostgreSQL that is distributed: one command a file, and names for the
//! constraints that a command adds to a table, which it does alone.

use crate::{Finding, check, tree};

/// The first migration that can meet a distributed database.
const FROM: u32 = 2;

#[test]
fn migrations_suit_a_distributed_database() {
    let mut findings = Vec::new();
    let files = tree::files("migrations/postgres");
    let met = files.iter().filter(|file| {
        let name = file.path.file_name().and_then(|name| name.to_str()).expect("a name");
        name.split('_').next().and_then(|number| number.parse::<u32>().ok()).expect("a number")
            >= FROM
    });
    for file in met {
        for message in faults(&file.text) {
            findings.push(Finding::new(&file.path, 0, message));
        }
    }
    check(findings);
}

/// The commands of a migration that a distributed database refuses.
fn faults(sql: &str) -> Vec<&'static str> {
    let sql: Vec<&str> = sql.lines().map(|line| line.split("--").next().unwrap_or("")).collect();
    let sql = sql.join(" ").to_lowercase();
    // every second part is the body of a function
    let outside: String = sql.split("$$").step_by(2).collect::<Vec<_>>().join(" ");
    let mut faults = Vec::new();
    if outside.matches(';').count() != 1 {
        faults.push("it has not one command: make a file of each");
    }
    let words: Vec<&str> = outside.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let adds_to_a_table = words.starts_with(&["alter", "table"]) && words.contains(&"add");
    let constrains =
        |word: &&str| ["check", "unique", "references", "primary", "exclude"].contains(word);
    if adds_to_a_table && words.iter().any(constrains) {
        if !words.contains(&"constraint") {
            faults.push("it adds a constraint without a name");
        }
        if words.iter().filter(|word| **word == "add").count() > 1 {
            faults.push("it adds a constraint and something else: make a file of each");
        }
    }
    faults
}

#[test]
fn faults_are_found() {
    let count = |sql| faults(sql).len();
    assert_eq!(count("-- one; two\nalter table log add column note text;"), 0);
    assert_eq!(count("alter table log add column a text; alter table log add column b text;"), 1);
    assert_eq!(count("create function f() as $$ begin; return 1; end; $$;"), 0);
    assert_eq!(count("alter table log add column a bigint check (a > 0);"), 1);
    assert_eq!(count("alter table log add column a bigint constraint log_a check (a > 0);"), 0);
    assert_eq!(count("alter table log add column a bigint, add constraint a check (a > 0);"), 1);
}
