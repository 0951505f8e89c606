//! Structs that are read from rows by the names of their fields.

use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

/// A row of either database.
pub(crate) trait TableRow:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl<T> TableRow for T where
    T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

/// Defines a struct with its columns, and a [`FromRow`] that reads each field from the column of
/// its name, in either database. The derive macro of sqlx does the same, but compiles both
/// databases a second time, for the compiler itself.
macro_rules! table_row {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $Name:ident {
            $( $(#[$field_meta:meta])* $field_visibility:vis $field:ident: $Type:ty, )*
        }
    ) => {
        $(#[$meta])*
        $visibility struct $Name { $( $(#[$field_meta])* $field_visibility $field: $Type, )* }

        impl $Name {
            /// The names of the columns, in order.
            #[allow(dead_code, reason = "some statements name their columns themselves")]
            pub const COLUMNS: &[&str] = &[$(stringify!($field)),*];
        }

        impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for $Name
        where
            &'static str: sqlx::ColumnIndex<R>,
            $($Type: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,)*
        {
            fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
                Ok(Self { $($field: row.try_get(stringify!($field))?,)* })
            }
        }
    };
}

pub(crate) use table_row;
