//! Rows in PostgreSQL's binary copy format (`COPY … (FORMAT binary)`).
//!
//! The format is a header of 19 bytes and an extension, whose length the header gives; then the
//! rows; then -1 (16 bits). A row is the number of its columns (16 bits) and, for each column, its
//! length in bytes (32 bits, -1 for null) and its bytes. Numbers are big-endian.

use sqlx::types::Uuid;

use crate::StoreError;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// More than the bytes of an outcome.
const ROW_BYTES: usize = 192;
const NULL: i32 = -1;
const END: i16 = -1;

/// A copy of rows with so many columns, each appended by `put_row`.
pub(super) fn write<R>(
    rows: &[R],
    columns: usize,
    put_row: impl Fn(&R, &mut Vec<u8>) -> Result<(), StoreError>,
) -> Result<Vec<u8>, StoreError> {
    let mut copy = Vec::with_capacity(rows.len() * ROW_BYTES);
    copy.extend_from_slice(SIGNATURE);
    // no flags, no extension
    copy.extend_from_slice(&[0; 8]);
    for row in rows {
        copy.extend_from_slice(&(columns as i16).to_be_bytes());
        put_row(row, &mut copy)?;
    }
    copy.extend_from_slice(&END.to_be_bytes());
    Ok(copy)
}

/// The rows of a copy, each with so many columns, which `row` reads.
pub(super) fn rows<R>(
    copy: &[u8],
    columns: usize,
    row: impl Fn(&mut CopyReader<'_>) -> Option<R>,
) -> Result<Vec<R>, StoreError> {
    let unreadable =
        || StoreError::Corrupt("the server copied the log in an unknown format".into());
    let mut reader = CopyReader(copy);
    let mut rows = Vec::with_capacity(copy.len() / 128);
    reader.header().ok_or_else(unreadable)?;
    while reader.begin_row(columns).ok_or_else(unreadable)? {
        rows.push(row(&mut reader).ok_or_else(unreadable)?);
    }
    Ok(rows)
}

/// The unread bytes of a copy. Every method returns `None` if they are malformed.
pub(crate) struct CopyReader<'a>(&'a [u8]);

impl CopyReader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn header(&mut self) -> Option<()> {
        self.0 = self.0.strip_prefix(SIGNATURE)?;
        let _flags: [u8; 4] = self.take()?;
        let extension = usize::try_from(i32::from_be_bytes(self.take()?)).ok()?;
        self.0 = self.0.get(extension..)?;
        Some(())
    }

    /// Whether there is another row, of so many columns.
    fn begin_row(&mut self, columns: usize) -> Option<bool> {
        match i16::from_be_bytes(self.take()?) {
            END => Some(false),
            count => (usize::try_from(count) == Ok(columns)).then_some(true),
        }
    }

    /// The next column.
    pub fn column<C: LogColumn>(&mut self) -> Option<C> {
        let length = i32::from_be_bytes(self.take()?);
        if length == NULL {
            return C::from_bytes(None);
        }
        let (column, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        C::from_bytes(Some(column))
    }
}

/// Append a column to a copy.
pub(crate) fn put(copy: &mut Vec<u8>, column: &impl LogColumn) -> Result<(), StoreError> {
    let Some(bytes) = column.bytes() else {
        copy.extend_from_slice(&NULL.to_be_bytes());
        return Ok(());
    };
    let bytes = bytes.as_ref();
    let length = i32::try_from(bytes.len()).map_err(|_| {
        StoreError::Refused(sqlx::Error::Encode("a column is longer than 2 GiB".into()))
    })?;
    copy.extend_from_slice(&length.to_be_bytes());
    copy.extend_from_slice(bytes);
    Ok(())
}

/// A type of columns of `log`.
pub(crate) trait LogColumn: Sized {
    /// Its name in PostgreSQL.
    const POSTGRES: &'static str;

    /// The column as SQLite writes it to JSON.
    fn json(column: &str) -> String {
        column.into()
    }

    /// The value in a copy; `None` is null.
    fn bytes(&self) -> Option<impl AsRef<[u8]>>;

    /// The value of a column in a copy, if it has this type.
    fn from_bytes(bytes: Option<&[u8]>) -> Option<Self>;
}

macro_rules! numbers {
    ($($Number:ty: $name:literal),*) => {
        $(impl LogColumn for $Number {
            const POSTGRES: &'static str = $name;

            fn bytes(&self) -> Option<impl AsRef<[u8]>> {
                Some(self.to_be_bytes())
            }

            fn from_bytes(bytes: Option<&[u8]>) -> Option<Self> {
                bytes?.try_into().ok().map(<$Number>::from_be_bytes)
            }
        })*
    };
}
numbers! { i16: "smallint", i32: "integer", i64: "bigint" }

impl LogColumn for bool {
    const POSTGRES: &'static str = "boolean";

    fn bytes(&self) -> Option<impl AsRef<[u8]>> {
        Some([u8::from(*self)])
    }

    fn from_bytes(bytes: Option<&[u8]>) -> Option<Self> {
        bytes?.try_into().ok().map(|[flag]: [u8; 1]| flag != 0)
    }
}

impl LogColumn for Uuid {
    const POSTGRES: &'static str = "uuid";

    fn json(column: &str) -> String {
        format!("hex({column})")
    }

    fn bytes(&self) -> Option<impl AsRef<[u8]>> {
        Some(self.as_bytes())
    }

    fn from_bytes(bytes: Option<&[u8]>) -> Option<Self> {
        bytes?.try_into().ok().map(Self::from_bytes)
    }
}

impl LogColumn for String {
    const POSTGRES: &'static str = "text";

    fn bytes(&self) -> Option<impl AsRef<[u8]>> {
        Some(self)
    }

    fn from_bytes(bytes: Option<&[u8]>) -> Option<Self> {
        Self::from_utf8(bytes?.into()).ok()
    }
}

impl<T: LogColumn> LogColumn for Option<T> {
    const POSTGRES: &'static str = T::POSTGRES;

    fn json(column: &str) -> String {
        T::json(column)
    }

    fn bytes(&self) -> Option<impl AsRef<[u8]>> {
        self.as_ref().and_then(T::bytes)
    }

    fn from_bytes(bytes: Option<&[u8]>) -> Option<Self> {
        match bytes {
            None => Some(None),
            bytes => T::from_bytes(bytes).map(Some),
        }
    }
}
