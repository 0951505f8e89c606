//! The command line, one file for each command.
//!
//! Exit codes: 0 for success; 1 for a failure while running; 2 for a wrong call, including a
//! malformed input file.

mod bench;
mod calibrate;
mod calibrate_production;
mod completions;
mod database;
mod demo;
mod dispatch;
mod error;
mod estimate;
mod experiment_file;
mod export;
mod figures;
mod health;
mod import;
mod keys;
mod letor;
mod man;
mod matrix;
mod migrate;
mod openapi;
mod output;
mod pages;
mod policies;
mod print;
mod prune;
mod replay;
mod runtime;
mod segments;
mod sensitivity;
mod serve;
mod signing_keys;
mod simulate;
mod startup;
mod values;
mod verify;
mod workers;

pub use dispatch::run;
