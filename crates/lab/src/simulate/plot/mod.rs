//! Plots as SVG documents, suitable for a paper.
//!
//! - [`Plot`]: one curve for each policy, with a band for its uncertainty.
//! - [`Bars`]: values as bars.

mod axis;
mod bars;
mod lines;
mod style;

pub use axis::Scale;
pub use bars::{Bar, Bars};
pub use lines::{Plot, PlotPoint, Series};
