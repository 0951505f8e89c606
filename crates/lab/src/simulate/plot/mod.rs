//! Plots as SVG documents, suitable for a paper.
//!
//! - [`Plot`]: one curve for each policy, with a band for its uncertainty.
//! - [`legend`]: the words and the look of each policy, the same in all figures.
//! - [`Bars`]: values as bars, with error bars.

mod axis;
mod bars;
pub mod legend;
mod lines;
mod style;

pub use axis::{Scale, grouped};
pub use bars::{Bar, Bars};
pub use lines::{Plot, PlotPoint, Series};
pub use style::Look;
