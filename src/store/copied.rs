//! Log entries out of PostgreSQL's binary copy format (`COPY … TO STDOUT (FORMAT binary)`).
//!
//! A header of 19 bytes and an extension that it gives the length of; then each row: the number of its columns (16 bits)
//! and for each column the number of its bytes (32 bits, -1 for null) and these; at the end -1 instead of a number of
//! columns. Numbers are big-endian.

use super::row::{EventColumns, LogRow};
use super::{LogEntry, StoreError};

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// The entries of a copy of the columns of `log_columns!`.
pub(super) fn entries(data: &[u8]) -> Result<Vec<LogEntry>, StoreError> {
    let unreadable = || StoreError::Corrupt("the server copied the log in a form that is not known".into());
    let mut reader = Reader(data);
    let mut rows = Vec::with_capacity(data.len() / 128);
    reader.header().ok_or_else(unreadable)?;
    while let Some(row) = reader.row().ok_or_else(unreadable)? {
        rows.push(row.try_into()?);
    }
    Ok(rows)
}

/// What is left to read; `None` when it is not as it must be.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
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

    /// A column of a fixed width; the inner `None` is null.
    fn column<const N: usize>(&mut self) -> Option<Option<[u8; N]>> {
        match i32::from_be_bytes(self.take()?) {
            -1 => Some(None),
            bytes if bytes as usize == N => self.take().map(Some),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<Option<String>> {
        let bytes = i32::from_be_bytes(self.take()?);
        if bytes == -1 {
            return Some(None);
        }
        let (text, rest) = self.0.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.0 = rest;
        String::from_utf8(text.into()).ok().map(Some)
    }

    fn i64(&mut self) -> Option<Option<i64>> {
        self.column().map(|column| column.map(i64::from_be_bytes))
    }

    fn i32(&mut self) -> Option<Option<i32>> {
        self.column().map(|column| column.map(i32::from_be_bytes))
    }

    fn i16(&mut self) -> Option<Option<i16>> {
        self.column().map(|column| column.map(i16::from_be_bytes))
    }

    /// The next row; the inner `None` is the end.
    fn row(&mut self) -> Option<Option<LogRow>> {
        match i16::from_be_bytes(self.take()?) {
            -1 => return Some(None),
            14 => {}
            _ => return None,
        }
        // in the order of `log_columns!`
        Some(Some(LogRow {
            experiment_id: self.i64()??,
            position: self.i64()??,
            nonce: sqlx::types::Uuid::from_bytes(self.column()??),
            recorded_at_ms: self.i64()??,
            event: EventColumns {
                kind: self.i16()??,
                first_ranker: self.i32()?,
                second_ranker: self.i32()?,
                first_left: self.column::<1>()?.map(|[left]| left != 0),
                answer: self.i16()?,
                batch: self.i64()?,
                ticket: self.i64()?,
                chosen_at: self.i64()?,
                issued_at_ms: self.i64()?,
                detail: self.text()?,
            },
        }))
    }
}
