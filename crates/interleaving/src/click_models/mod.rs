//! Click models: simulated clicks on a page of graded documents.
//!
//! - [`Cascade`]: the user reads from the top, clicks by grade, and may stop (Chuklin, Markov and
//!   de Rijke, "Click Models for Web Search", 2015). The tables are those of Hofmann, Whiteson and
//!   de Rijke, "Fidelity, soundness, and efficiency of interleaved comparison methods", 2013, and
//!   Schuth et al., "Multileaved comparisons", 2014.
//! - [`PositionBased`]: the user looks at each position with a probability of its own.
//!
//! A [`ClickModelSpec`] names a model; [`ClickModelSpec::for_grades`] makes it a [`ClickModel`] for
//! documents with a given number of grades.

mod cascade;
mod position;
mod spec;
mod table;

pub use cascade::{Cascade, StopOn};
pub use position::PositionBased;
pub use spec::{ClickModel, ClickModelSpec};
pub use table::{GRADES, InvalidClickModel, Table};
