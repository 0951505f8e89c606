//! Click models: simulated clicks on a page of graded documents. The tables are those of Hofmann,
//! Whiteson and de Rijke, "Fidelity, soundness, and efficiency of interleaved comparison methods",
//! 2013, and Schuth et al., "Multileaved comparisons", 2014.
//!
//! A [`ClickModelSpec`] names a model; [`ClickModelSpec::for_grades`] makes it a [`ClickModel`] for
//! documents with a given number of grades.

mod model;
mod table;

pub use model::{ClickModel, ClickModelSpec, StopOn};
pub use table::{GRADES, InvalidClickModel, Table};
