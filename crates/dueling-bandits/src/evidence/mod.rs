//! What an experiment's counts say, and how surely. Pure: no I/O, no clock.
//!
//! - [`sequence`]: for each pair an interval of `P(i beats j)` that holds at every moment.
//! - [`certainty`]: from these, who is certainly, and who can still be, a Copeland winner.
//! - [`posterior`]: draws of all pairs' signs from their posterior: probabilities to win, and what
//!   exploring has cost; `pooling`: what the other pairs say of a pair.
//! - [`history`]: the few counts over time that these need, kept while folding.
//! - [`small_counts`]: counts in two bytes each while they are small.
//! - [`whatif`]: what another policy would have cost.
//! - [`forecast`]: how many more duels until the winner is certain.
//!
//! Two kinds of sureness stand side by side and are not the same. The intervals of [`sequence`]
//! hold whatever the preferences are and whenever one looks: a conclusion is drawn from them alone.
//! The posterior assumes something about preferences that were not seen yet; it says more, earlier,
//! and its promise is one on average over such matrices. `docs/regret.md` has how far it holds on
//! others.

pub mod certainty;
pub mod forecast;
pub mod history;
mod pooling;
pub mod posterior;
pub mod sequence;
pub mod small_counts;
pub mod whatif;

pub use certainty::Certainty;
pub use forecast::{Forecast, Unknowable, forecast};
pub use history::History;
pub use posterior::{Estimate, Posterior};
pub use sequence::{Sequence, Sequences};
pub use small_counts::SmallCounts;
