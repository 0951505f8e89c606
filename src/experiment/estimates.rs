//! The estimates of one experiment that are kept until its log goes on.

use super::latest::Latest;
use super::regret::RegretReport;
use super::verdict::{Verdict, VerdictKey};
use super::winners::Winners;

/// Each with the log position that it was made at.
#[derive(Debug, Default)]
pub(super) struct Estimates {
    pub regret: Latest<u64, RegretReport>,
    pub verdict: Latest<VerdictKey, Verdict>,
    pub winners: Latest<u64, Winners>,
}
