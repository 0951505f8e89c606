//! Learning-to-rank data sets: queries with documents, which have feature values and a human grade.
//! The input is any [`std::io::BufRead`].
//!
//! - [`line`]: one line of the LETOR variant of SVMlight, `grade qid:ID 1:value 2:value … #
//!   comment`.
//! - [`reader`]: a file, one query at a time.
//! - [`dataset`]: a whole file in memory, with a ranking for each feature.
//! - [`ndcg`]: the quality of a ranking by the grades.

pub mod dataset;
pub mod line;
pub mod ndcg;
pub mod reader;

pub use dataset::{DataSet, DataSetError};
pub use line::{Document, LineError};
pub use reader::{LetorError, Query, Reader};
