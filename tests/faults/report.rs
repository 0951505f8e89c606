//! The table of results: one row per fault, kept as JSON under `target/tmp/faults` for
//! `scripts/faults`.

use std::path::Path;

use serde::Serialize;

/// The effect of one fault.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The fault.
    pub fault: &'static str,
    /// The database it was injected into.
    pub database: &'static str,
    /// How often it was injected.
    pub times: u64,
    /// Number of acknowledged outcomes.
    pub acknowledged: u64,
    /// Acknowledged outcomes that are missing or different in the log.
    pub lost: u64,
    /// Duels that are in the log more than once.
    pub double_counted: u64,
    /// Requests whose response asked for a retry (503, 504).
    pub told_to_retry: u64,
    /// Requests without a response.
    pub unanswered: u64,
}

impl Row {
    /// Write the row to its file.
    pub fn keep(&self) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
        std::fs::create_dir_all(&folder).expect("a folder");
        let name = format!("{} {}", self.fault, self.database)
            .replace(|letter: char| !letter.is_alphanumeric(), "-");
        let row = serde_json::to_string(self).expect("JSON");
        println!("{row}");
        std::fs::write(folder.join(name + ".json"), row + "\n").expect("to keep a row");
    }
}
