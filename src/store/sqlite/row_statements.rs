//! Statements over many rows of parameters.

use sqlx::Arguments as _;
use sqlx::sqlite::SqliteArguments;

/// Rows of one statement, largest first. SQLite allows 32766 parameters.
const SIZES: [usize; 3] = [500, 25, 1];

/// The statement `before (?, ?), (?, ?), … after`, in each of a few sizes.
pub(super) struct RowStatements {
    columns: usize,
    of_sizes: [String; SIZES.len()],
}

impl RowStatements {
    pub fn new(before: &str, columns: usize, after: &str) -> Self {
        let row = format!("({})", vec!["?"; columns].join(","));
        Self {
            columns,
            of_sizes: SIZES.map(|size| format!("{before}{}{after}", vec![&*row; size].join(","))),
        }
    }

    /// Statements for all of `rows`, each with the rows that it covers.
    pub fn split<'s, 'r, T>(
        &'s self,
        rows: &'r [T],
    ) -> impl Iterator<Item = (&'s str, SqliteArguments, &'r [T])> {
        let mut left = rows;
        std::iter::from_fn(move || {
            let at = SIZES.iter().position(|&size| size <= left.len())?;
            let (covered, rest) = left.split_at(SIZES[at]);
            left = rest;
            let mut arguments = SqliteArguments::default();
            arguments.reserve(covered.len() * self.columns, 0);
            Some((&*self.of_sizes[at], arguments, covered))
        })
    }
}
