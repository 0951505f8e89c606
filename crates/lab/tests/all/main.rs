//! The tests of the crate in one binary. Commands run as processes; the others test the library.

mod balance;
mod calibrate;
mod estimate;
mod figures;
mod information_bound;
mod letor;
mod plans;
mod run;
mod simulate;
mod tournaments;

use std::process::{Command, Output};

use serde_json::Value;

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.letor");

/// Run the program to its end. The arguments are separated by spaces.
fn run(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the program starts")
}

/// The standard output of a call that succeeds.
#[track_caller]
fn printed(arguments: &str) -> String {
    let output = run(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {message}");
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn json(arguments: &str) -> Value {
    let printed = printed(&format!("{arguments} --format json"));
    serde_json::from_str(&printed).expect("standard output is JSON alone")
}

/// Refused with exit code 2, an empty standard output, and a message that contains `expected`.
#[track_caller]
fn refused(arguments: &str, expected: &str) {
    let output = run(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
    assert!(output.stdout.is_empty());
    assert!(message.contains(expected), "{arguments} said: {message}");
}
