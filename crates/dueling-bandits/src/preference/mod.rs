//! The preference matrix, its winners, and regret.
//!
//! [`matrix`] is the checked matrix; [`csv`] reads and writes it; [`builtin`] has published and
//! generated ones by name; [`winners`] answers who is best, under each notion of best; [`regret`]
//! prices what was shown.

use std::fs::File;
use std::io::BufReader;

pub mod builtin;
pub mod csv;
pub mod matrix;
pub mod regret;
pub mod winners;

pub use builtin::InvalidName;
pub use csv::CsvError;
pub use matrix::{InvalidMatrix, PreferenceMatrix};
pub use regret::{NoCondorcetWinner, Regret, RegretKind};

/// A matrix that could not be had from what the user gave.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A generator's name with wrong numbers in it.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A file that cannot be opened.
    #[error(
        "cannot open the preference matrix `{path}`: {source}; give a CSV file or a built-in name ({})",
        builtin::NAMES
    )]
    Open {
        /// The path as given.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file that is no preference matrix.
    #[error("`{path}` is not a preference matrix: {source}")]
    Csv {
        /// The path as given.
        path: String,
        /// What is wrong, and where.
        source: CsvError,
    },
}

impl PreferenceMatrix {
    /// A matrix as a user names it: a built-in or generated one ([`builtin::NAMES`]), else the path
    /// of a CSV file ([`csv`]). A file that is called like a built-in is reached as `./NAME`.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        if let Some(named) = Self::named(name_or_path) {
            return Ok(named?);
        }
        let path = || name_or_path.to_string();
        let file =
            File::open(name_or_path).map_err(|source| LoadError::Open { path: path(), source })?;
        csv::read(BufReader::new(file)).map_err(|source| LoadError::Csv { path: path(), source })
    }
}
