//! Conclusions from win counts, with their confidence. No I/O, no clock.
//!
//! - [`sequence`]: for each pair, an interval of `P(i beats j)` that holds at every step.
//! - [`certificate`]: the stopping rule that certifies a Copeland winner at a price that does not
//!   grow with the number of rankers. [`lead`] has its evidence, and [`verdict`] applies it to a
//!   run. [`race`] keeps how the evidence grew, and [`plan`] has the cheapest way to complete it.
//!   [`refuters`] lets the capital of the rule follow the leader. [`view`] is what a policy sees.
//!   [`ladder`] reads the evidence of a pair as an interval.
//! - [`rank_intervals`]: for each ranker, the range of its rank at all times.
//! - [`scores`]: answers that count by how much of a page decided.
//! - [`cohorts`]: which answers the verdict counts, and when: one answer of each user, and only
//!   answers of duels whose answers are complete.
//! - [`loss`]: how many lost answers a verdict withstands.
//! - [`heavy_units`]: the users or machines that answer most.
//! - [`posterior`]: draws of the whole matrix: each ranker's probability to win, and the regret so
//!   far. Its prior pools the pairs: the other pairs predict each pair.
//! - [`regret_bounds`](mod@regret_bounds): the least and the largest regret that nothing speaks
//!   against.
//! - [`history`]: the few counts over time that these estimates need, kept while folding.
//! - [`effect`]: the win rate behind a verdict, corrected for having been selected.
//! - [`balance`]: checks of the experiment itself, which may be looked at for ever.
//!
//! There are two kinds of confidence, and they differ:
//!
//! - The stopping rule of [`certificate`] and the intervals of [`sequence`] hold for every
//!   preference matrix and at every step, whenever somebody looks. Conclusions rest on the stopping
//!   rule alone.
//! - The posterior assumes a prior over preference matrices. It gives more information, and
//!   earlier, but its probabilities are right only on average over matrices drawn from that prior.
//!   `docs/regret.md` in the repository reports how well they hold on other matrices.

pub mod balance;
pub mod certificate;
pub mod cohorts;
pub mod effect;
mod even_pairs;
pub mod heavy_units;
pub mod history;
pub mod ladder;
pub mod lead;
pub mod loss;
pub mod plan;
mod pooling;
pub mod posterior;
mod predictive;
pub mod race;
mod ranks;
pub mod refuters;
pub mod regret_bounds;
pub mod scores;
pub(crate) mod seen_units;
pub mod sequence;
pub mod verdict;
pub mod view;
mod win_curves;

pub use cohorts::{Added, Admission, Cohorts, EqualAnswers, TimedAnswer};
pub use heavy_units::{HeavyUnit, HeavyUnits};
pub use history::History;
pub use posterior::{Estimate, Posterior};
pub use race::{Race, RacePoint};
pub use ranks::rank_intervals;
pub use scores::Score;
pub use sequence::{Sequence, Sequences};
pub use verdict::{Counted, Standing, Target, Verdict, VerdictTracker};
pub use view::View;
