//! Rows of either database, and what is read from them.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{ColumnIndex, Decode, Postgres, Row as _, Sqlite, Type};

use crate::StoreError;

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
pub(crate) trait Record: Sized + Send {
    /// Read it from the columns of its row.
    fn read(row: &impl TableRow) -> Result<Self, StoreError>;

    /// Read all of these rows.
    fn read_all(rows: Vec<impl TableRow>) -> Result<Vec<Self>, StoreError> {
        rows.iter().map(Self::read).collect()
    }
}

impl<A: Column> Record for (A,) {
    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        Ok((row.get(0)?,))
    }
}

impl<A: Column, B: Column> Record for (A, B) {
    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        Ok((row.get(0)?, row.get(1)?))
    }
}
