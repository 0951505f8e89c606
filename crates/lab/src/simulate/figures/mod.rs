//! The figures of the papers as data: the policies, the matrix and the number of steps.
//!
//! To add a policy to a figure, add it to the figure's list of [`Line`]s. To add a figure, add an
//! entry to [`FIGURES`]. Its [`Content`] is one of: curves of [`regret`], the spread of regret between
//! runs, regret against [`delay`]ed feedback, the [`winners`] of random subsets, or what decides
//! their regret ([`gaps`]).

mod catalog;
pub mod delay;
pub mod gaps;
mod matrix_source;
pub mod regret;
pub mod subsets;
pub mod winners;

pub use catalog::{Content, FIGURES, Figure};
pub use matrix_source::{FoundMatrix, MatrixSource};
pub use regret::{InvalidFigure, Line, RegretFigure, Size};
