//! What an experiment's counts say, and how surely. Pure: no I/O, no clock.
//!
//! - [`sequence`]: for each pair an interval of `P(i beats j)` that holds at every moment.
//! - [`certainty`]: from these, who is certainly, and who can still be, a Copeland winner.
//! - [`posterior`]: draws of all pairs' signs from their posterior: probabilities to win, and what exploring has cost.
//! - [`history`]: the few counts over time that these need, kept while folding.
//! - [`forecast`]: how many more duels until the winner is certain.
//!
//! Two kinds of sureness stand side by side and are not the same. The intervals of [`sequence`] hold whatever the
//! preferences are and whenever one looks: a conclusion is drawn from them alone. The posterior assumes, before the first
//! duel, that every preference of every pair is equally likely, independently; it says more, earlier, and its promise is
//! one on average over such matrices. `docs/regret.md` has how far it holds on others.

pub mod certainty;
pub mod forecast;
pub mod history;
pub mod posterior;
pub mod sequence;

pub use certainty::Certainty;
pub use forecast::{Forecast, Unknowable, forecast};
pub use history::History;
pub use posterior::{Estimate, Posterior};
pub use sequence::Sequence;
