//! The `rankduel` program: reads its command line and runs one command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

// A request makes and drops some dozen small things; the system's allocator takes a sixth of its
// time for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rankduel::cli::run()
}
