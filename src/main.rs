//! The `rankduel` program: reads its command line and runs one command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    rankduel::cli::run()
}
