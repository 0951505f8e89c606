//! The table of the suite: a row a fault, kept as JSON under `target/tmp/faults`, where
//! `scripts/faults` finds it.

use std::path::Path;

use serde::Serialize;

/// The effect of one fault.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What was done.
    pub fault: &'static str,
    /// To which database.
    pub database: &'static str,
    /// How often.
    pub times: u64,
    /// Outcomes that were acknowledged.
    pub acknowledged: u64,
    /// Of them, those that are not in the log as they were acknowledged.
    pub lost: u64,
    /// Duels that are in the log more than once.
    pub double_counted: u64,
    /// Requests that were told to come again (503, 504).
    pub told_to_retry: u64,
    /// Requests whose answer never came.
    pub unanswered: u64,
}

impl Row {
    /// Keep it.
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
