//! The source of a figure's matrix.

use crate::simulate::tournament::Drawn;
use dueling_bandits::preference::{LoadError, PreferenceMatrix};

/// A matrix of a paper, and its substitute.
#[derive(Debug, Clone, Copy)]
pub struct MatrixSource {
    /// File name in the data folder; `None` if the built-in matrix is the one of the paper.
    pub file: Option<&'static str>,
    /// The built-in matrix that is used without the file.
    pub built_in: &'static str,
    /// A built-in matrix with fewer rankers, for the reduced size.
    pub reduced: Option<&'static str>,
    /// Draws another matrix for each run. The built-in matrix then only names it.
    pub drawn: Option<Drawn>,
}

/// The matrix for a figure.
#[derive(Debug, Clone)]
pub struct FoundMatrix {
    pub name: String,
    pub matrix: PreferenceMatrix,
    /// The matrix of the paper that it replaces, with a hint how to use that.
    pub stands_in_for: Option<String>,
    /// Draws another matrix for each run.
    pub drawn: Option<Drawn>,
}

impl FoundMatrix {
    /// The matrix of a CSV file or a built-in name.
    pub fn load(name: &str) -> Result<Self, LoadError> {
        let matrix = PreferenceMatrix::load(name)?;
        Ok(Self { name: name.into(), matrix, stands_in_for: None, drawn: None })
    }
}

impl MatrixSource {
    /// The matrix: the file if a data folder is given, otherwise the built-in matrix.
    pub fn find(&self, data: Option<&str>, full: bool) -> Result<FoundMatrix, LoadError> {
        if let (Some(folder), Some(file)) = (data, self.file) {
            let path = format!("{}/{file}", folder.trim_end_matches('/'));
            return Ok(FoundMatrix { name: file.into(), ..FoundMatrix::load(&path)? });
        }
        let (name, stands_in_for) = match self.reduced {
            Some(smaller) if !full => {
                (smaller, Some(format!("`{}`, which --full uses", self.built_in)))
            }
            _ => {
                (self.built_in, self.file.map(|file| format!("{file}; give the file with --data")))
            }
        };
        Ok(FoundMatrix { stands_in_for, drawn: self.drawn, ..FoundMatrix::load(name)? })
    }
}
