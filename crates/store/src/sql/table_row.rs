//! Rows of either database, and what is read from them.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{ColumnIndex, Decode, Postgres, Row as _, Sqlite, Type};

use crate::{ExperimentId, StoreError};

/// A type that a column can have in both databases.
pub(crate) trait Column:
    for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> + Send
{
}

impl<C> Column for C where
    C: for<'r> Decode<'r, Sqlite>
        + Type<Sqlite>
        + for<'r> Decode<'r, Postgres>
        + Type<Postgres>
        + Send
{
}

/// A row of either database.
pub(crate) trait TableRow {
    /// The value of the column with this name or number.
    fn get<C: Column>(
        &self,
        column: impl ColumnIndex<SqliteRow> + ColumnIndex<PgRow>,
    ) -> Result<C, StoreError>;
}

/// Implements [`TableRow`] for the row of a database.
macro_rules! table_rows {
    ($($Row:ty),*) => {
        $(impl TableRow for $Row {
            fn get<C: Column>(
                &self,
                column: impl ColumnIndex<SqliteRow> + ColumnIndex<PgRow>,
            ) -> Result<C, StoreError> {
                Ok(self.try_get(column)?)
            }
        })*
    };
}
table_rows! { SqliteRow, PgRow }

/// A type that is read from a row.
pub(crate) trait Record: Sized + Send + 'static {
    /// The experiment that the row belongs to, if its columns say so.
    fn experiment(&self) -> Option<ExperimentId> {
        None
    }

    /// Read it from the columns of its row.
    fn read(row: &impl TableRow) -> Result<Self, StoreError>;

    /// Read all of these rows.
    fn read_all(rows: Vec<impl TableRow>) -> Result<Vec<Self>, StoreError> {
        rows.iter().map(Self::read).collect()
    }
}

impl<A: Column + 'static> Record for (A,) {
    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        Ok((row.get(0)?,))
    }
}

impl<A: Column + 'static, B: Column + 'static> Record for (A, B) {
    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        Ok((row.get(0)?, row.get(1)?))
    }
}

impl<A: Column + 'static, B: Column + 'static, C: Column + 'static> Record for (A, B, C) {
    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    }
}

/// The experiments that a question is about. The rows of its answer must belong to them.
#[derive(Debug, Clone)]
pub(crate) enum Of {
    /// Any experiment, or none.
    Any,
    /// These experiments, ascending.
    Experiments(Vec<ExperimentId>),
}

impl Of {
    /// If a row belongs to another experiment: what is wrong.
    pub fn foreign<R: Record>(&self, rows: &[R]) -> Option<String> {
        let Self::Experiments(asked) = self else { return None };
        let foreign =
            rows.iter().filter_map(R::experiment).find(|id| asked.binary_search(id).is_err())?;
        Some(format!("it has a row of experiment {foreign}, and was about {asked:?}"))
    }
}
