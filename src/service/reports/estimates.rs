//! The estimates of one experiment that are kept until its log goes on.

use crate::engine::single_flight::SingleFlight;
use crate::service::reports::regret::RegretReport;
use crate::service::reports::verdict::{Verdict, VerdictKey};
use crate::service::reports::winners::Winners;

/// Each with the log position that it was made at.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    pub regret: SingleFlight<u64, RegretReport>,
    pub verdict: SingleFlight<VerdictKey, Verdict>,
    pub winners: SingleFlight<u64, Winners>,
}
