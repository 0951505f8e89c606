//! A preference matrix by name or from a file.

use std::fs::File;
use std::io::{self, BufReader};

use crate::preference::builtin::{self, InvalidName};
use crate::preference::csv::{self, CsvError};
use crate::preference::matrix::PreferenceMatrix;

/// A matrix that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A generator's name with wrong numbers.
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
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file that is no preference matrix.
    #[error("`{path}` is not a preference matrix: {source}")]
    Csv {
        /// The path as given.
        path: String,
        /// The problem and its place.
        source: CsvError,
    },
}

impl PreferenceMatrix {
    /// The matrix of a built-in name or generator ([`builtin::NAMES`]), otherwise of a CSV file
    /// ([`csv`]) at this path. Write `./NAME` for a file with the name of a built-in matrix.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        Self::load_named(name_or_path).map(|(matrix, _)| matrix)
    }

    /// The same with the names of its rankers, where it is a file that has them.
    pub fn load_named(name_or_path: &str) -> Result<(Self, Option<Vec<String>>), LoadError> {
        if let Some(named) = Self::named(name_or_path) {
            return Ok((named?, None));
        }
        let path = || name_or_path.to_string();
        let file =
            File::open(name_or_path).map_err(|source| LoadError::Open { path: path(), source })?;
        csv::read_named(BufReader::new(file))
            .map_err(|source| LoadError::Csv { path: path(), source })
    }
}
