//! Simulation of policies on a known preference matrix, with the true regret.
//!
//! - [`Tournament`] and [`run_all`]: many runs of many policies on all cores. A run uses the same
//!   [`Policy`](dueling_bandits::Policy) trait as the server.
//! - [`Feedback`]: ties, pages without clicks, delay, loss, and several servers.
//! - [`Report`]: the curves of regret, as JSON or table; [`curves_csv`]: as CSV.
//! - [`calibration`]: the estimates of the service compared with the truth.
//! - [`claims`]: the claims beside the verdict.
//! - [`plans`]: plans compared with experiments.
//! - [`production`]: verdicts where people come back, machines click and answers are slow or lost.
//! - [`orders`]: experiments that orders decide.
//! - [`figures`]: the figures of the papers, as data.

pub mod calibration;
pub mod claims;
pub mod curves_csv;
mod drift;
pub mod figures;
mod information_bound;
pub mod orders;
pub mod plans;
pub mod production;
mod progress;
mod replicas;
pub mod report;
pub mod run;
pub mod run_all;
mod tournament;

pub use comparators::feedback::{Delay, Feedback};
pub use drift::Drift;
pub use information_bound::{Least, information_bound};
pub use progress::Progress;
pub use report::{Curve, Point, Report};
pub use run_all::run_all;
pub use tournament::{Drawn, Entrant, Tournament};
