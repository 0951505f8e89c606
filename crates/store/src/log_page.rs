//! A page of a log, as it was read from the database.

use super::error::StoreError;
use super::record::LogEntry;

/// Entries of a log that may still be in the form in which the database sent them. Decoding a large
/// page takes tens of milliseconds, which the threads that serve requests do not have.
pub struct LogPage(Content);

enum Content {
    Entries(Vec<LogEntry>),
    Encoded { is_empty: bool, decode: Decode },
}

type Decode = Box<dyn FnOnce() -> Result<Vec<LogEntry>, StoreError> + Send>;

impl LogPage {
    /// A page that `decode` decodes.
    pub(super) fn encoded(
        is_empty: bool,
        decode: impl FnOnce() -> Result<Vec<LogEntry>, StoreError> + Send + 'static,
    ) -> Self {
        Self(Content::Encoded { is_empty, decode: Box::new(decode) })
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Content::Entries(entries) => entries.is_empty(),
            Content::Encoded { is_empty, .. } => *is_empty,
        }
    }

    /// The entries, in order.
    pub fn decode(self) -> Result<Vec<LogEntry>, StoreError> {
        match self.0 {
            Content::Entries(entries) => Ok(entries),
            Content::Encoded { decode, .. } => decode(),
        }
    }

    /// [`LogPage::decode`], on a thread for blocking work if it takes long.
    pub async fn decode_off_worker(self) -> Result<Vec<LogEntry>, StoreError> {
        match self.0 {
            Content::Entries(entries) => Ok(entries),
            Content::Encoded { decode, .. } => {
                tokio::task::spawn_blocking(decode).await.unwrap_or_else(|error| {
                    Err(match error.is_panic() {
                        true => StoreError::Corrupt(format!("a page of the log: {error}")),
                        // the program ends
                        false => StoreError::Unavailable(sqlx::Error::WorkerCrashed),
                    })
                })
            }
        }
    }
}

impl From<Vec<LogEntry>> for LogPage {
    fn from(entries: Vec<LogEntry>) -> Self {
        Self(Content::Entries(entries))
    }
}

impl std::fmt::Debug for LogPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogPage").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}
