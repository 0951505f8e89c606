//! Learning-to-rank data sets: queries with documents that have feature values and a human's grade.
//! Pure: reads any [`std::io::BufRead`].
//!
//! - [`line`]: one line of the LETOR form of SVMlight: `grade qid:ID 1:value 2:value … # comment`.
//! - [`reader`]: a file, query by query.
//! - [`dataset`]: a whole file in memory, feature by feature.
//! - [`ndcg`]: how good a ranking is, by the grades.

pub mod dataset;
pub mod line;
pub mod ndcg;
pub mod reader;

pub use dataset::{DataSet, DataSetError};
pub use line::{Document, LineError};
pub use reader::{LetorError, Query, Reader};
