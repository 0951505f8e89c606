//! Commands that need no running server, run as processes.

mod completions;
mod documents;
mod health;
mod orders;
mod plan;
mod policies;
mod wrong_folder;

use std::process::{Command, Output};

/// Run the program to its end.
fn rankduel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rankduel"))
        .args(arguments)
        .output()
        .expect("the program starts")
}
