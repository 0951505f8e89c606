//! The preference matrix, its winners, and regret.
//!
//! - [`matrix`]: the matrix, checked.
//! - [`csv`]: reads and writes it.
//! - [`builtin`]: published and generated matrices by name.
//! - [`load`]: a matrix by name or from a file.
//! - [`winners`]: the best rankers under each notion of best.
//! - [`regret`]: the cost of exploration.

pub mod builtin;
pub mod csv;
pub mod load;
pub mod matrix;
pub mod regret;
pub mod winners;

pub use builtin::InvalidName;
pub use csv::CsvError;
pub use load::LoadError;
pub use matrix::{InvalidMatrix, PreferenceMatrix};
pub use regret::{NoCondorcetWinner, Regret, RegretKind};
