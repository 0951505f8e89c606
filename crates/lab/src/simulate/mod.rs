//! Simulation: any policy on a known preference matrix, many runs, the true regret.
//!
//! - [`feedback`]: what happens between a duel and its outcome: ties, no clicks, delay, loss.
//! - `environment`: the searchers: a shuffled matrix that answers duels.
//! - `replicas`: servers that share a log, some of them behind.
//! - `run`: one policy for one run, through the very [`Policy`](dueling_bandits::Policy) trait that
//!   the server uses.
//! - [`tournament`]: many runs of many policies on all cores, and the curves of their regret.
//! - [`calibration`]: what the service estimates, beside the truth.
//! - [`report`]: those curves as JSON, as CSV, as a table and as a plot.
//! - [`plot`]: plots as SVG.
//! - [`figures`]: the figures of the papers, as data.

pub mod calibration;
mod environment;
pub mod feedback;
pub mod figures;
pub mod plot;
mod replicas;
pub mod report;
mod run;
pub mod tournament;

pub use feedback::{Delay, Feedback};
pub use report::{Curve, Point, Report};
pub use tournament::{Entrant, Tournament, Watch};
