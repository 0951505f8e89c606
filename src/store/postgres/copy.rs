//! Log entries in PostgreSQL's binary copy format (`COPY … (FORMAT binary)`).
//!
//! The format is a header of 19 bytes and an extension, whose length the header gives; then the
//! rows; then -1 (16 bits). A row is the number of its columns (16 bits) and, for each column, its
//! length in bytes (32 bits, -1 for null) and its bytes. Numbers are big-endian.

use crate::store::append_plan::NewEntry;
use crate::store::sql::log_row::{EventColumns, LogRow};
use crate::store::sql::numbers::to_column;
use crate::store::{LogEntry, StoreError};

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// More than the bytes of an outcome.
const ROW_BYTES: usize = 192;
const COLUMNS: i16 = 14;

/// A copy of entries and the times at which they were recorded, in the columns of `log_columns!`.
pub(super) fn rows<'e>(
    entries: impl ExactSizeIterator<Item = (NewEntry<'e>, i64)>,
) -> Result<Vec<u8>, StoreError> {
    let mut data = Vec::with_capacity(entries.len() * ROW_BYTES);
    data.extend_from_slice(SIGNATURE);
    // no flags, no extension
    data.extend_from_slice(&[0; 8]);
    for (entry, recorded_at) in entries {
        let event = EventColumns::from(entry.event);
        data.extend_from_slice(&COLUMNS.to_be_bytes());
        let mut column = |bytes: Option<&[u8]>| put(&mut data, bytes);
        column(Some(&entry.experiment.to_be_bytes()))?;
        column(Some(&to_column("position", entry.position)?.to_be_bytes()))?;
        column(Some(&entry.nonce.to_be_bytes()))?;
        column(Some(&recorded_at.to_be_bytes()))?;
        column(Some(&event.kind.to_be_bytes()))?;
        column(event.first_ranker.map(i32::to_be_bytes).as_ref().map(<[u8; 4]>::as_slice))?;
        column(event.second_ranker.map(i32::to_be_bytes).as_ref().map(<[u8; 4]>::as_slice))?;
        column(event.first_left.map(|left| [u8::from(left)]).as_ref().map(<[u8; 1]>::as_slice))?;
        column(event.answer.map(i16::to_be_bytes).as_ref().map(<[u8; 2]>::as_slice))?;
        for number in [event.batch, event.ticket, event.chosen_at, event.issued_at_ms] {
            column(number.map(i64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice))?;
        }
        column(event.detail.as_deref().map(str::as_bytes))?;
    }
    data.extend_from_slice(&(-1_i16).to_be_bytes());
    Ok(data)
}

fn put(data: &mut Vec<u8>, column: Option<&[u8]>) -> Result<(), StoreError> {
    let Some(column) = column else {
        data.extend_from_slice(&(-1_i32).to_be_bytes());
        return Ok(());
    };
    let bytes = i32::try_from(column.len()).map_err(|_| {
        StoreError::Refused(sqlx::Error::Encode("a column is longer than 2 GiB".into()))
    })?;
    data.extend_from_slice(&bytes.to_be_bytes());
    data.extend_from_slice(column);
    Ok(())
}

/// Whether a copy has no rows. False for one that cannot be read.
pub(super) fn is_empty(data: &[u8]) -> bool {
    let mut reader = Reader(data);
    reader.header().is_some() && matches!(reader.take().map(i16::from_be_bytes), Some(-1))
}

/// The entries of a copy of the columns of `log_columns!`.
pub(super) fn entries(data: &[u8]) -> Result<Vec<LogEntry>, StoreError> {
    let unreadable =
        || StoreError::Corrupt("the server copied the log in an unknown format".into());
    let mut reader = Reader(data);
    let mut rows = Vec::with_capacity(data.len() / 128);
    reader.header().ok_or_else(unreadable)?;
    while let Some(row) = reader.row().ok_or_else(unreadable)? {
        rows.push(row.try_into()?);
    }
    Ok(rows)
}

/// The unread bytes. Every method returns `None` if they are malformed.
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

    /// A column of fixed width; the inner `None` is null.
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
            COLUMNS => {}
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
