//! The service through its public interfaces: the HTTP API over a real socket on both databases,
//! the dashboard in a browser, and the commands as processes.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod alarms;
mod alone;
mod amplification;
mod answers;
mod attacks;
mod audit;
mod bad_input;
mod batches;
mod bounded_errors;
mod busy_reports;
mod canary;
mod cli;
mod concurrency;
mod control;
mod coverage;
mod dashboard;
mod demo;
mod docs;
mod doubts;
mod drift;
mod duels;
mod examples;
mod exclusions;
mod experiments;
mod feedback;
mod guardrails;
mod hostile;
mod keys;
mod large_bodies;
mod lists;
mod locked;
mod log_growth;
mod metrics;
mod order_events;
mod orders;
mod page_metrics;
mod pages;
mod plan;
mod policies;
mod process;
mod rankers;
mod readers;
mod refused_settings;
mod regret;
mod scopes;
mod scores;
mod segment_claims;
mod segments;
mod settings;
mod shell;
mod small_inputs;
mod smuggling;
mod stability;
mod standings;
mod startup;
mod storage_failure;
mod strict;
mod tracing;
mod units;
mod verdict;
mod webhook;
