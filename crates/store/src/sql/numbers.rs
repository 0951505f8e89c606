//! Numbers as both databases keep them.
//!
//! Unsigned 64-bit numbers that use every bit (seed, ticket, the position in a token) are kept as
//! the signed number with the same bits. Those that a database counts or compares (positions,
//! versions) are checked instead: they start at 0 and never reach 2^63.

use crate::StoreError;

/// An unsigned number that a database counts or compares, as it is kept.
pub(crate) fn to_column(what: &str, value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| {
        StoreError::Refused(sqlx::Error::Encode(
            format!("{what} {value} is beyond 2^63 - 1").into(),
        ))
    })
}

/// A kept number in the type that it must fit.
pub(crate) fn from_column<T: TryFrom<i64>>(what: &str, value: i64) -> Result<T, StoreError> {
    T::try_from(value).map_err(|_| StoreError::Corrupt(format!("{what} is {value}")))
}
