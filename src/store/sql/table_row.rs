//! Structs that are read from rows by the names of their fields.

/// Defines a struct with a [`FromRow`](sqlx::FromRow) that reads each field from the column of its
/// name, in either database. The derive macro of sqlx does the same, but compiles both databases a
/// second time, for the compiler itself.
macro_rules! table_row {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $Name:ident { $($field_visibility:vis $field:ident: $Type:ty,)* }
    ) => {
        $(#[$meta])*
        $visibility struct $Name { $($field_visibility $field: $Type,)* }

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

pub(in crate::store) use table_row;
