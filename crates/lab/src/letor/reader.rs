//! A LETOR file, query by query, however long it is.

use std::collections::HashSet;
use std::io::{self, BufRead, Read};

use super::line::{Document, LineError};

/// Longest line that is read.
pub const MAX_LINE_BYTES: usize = 1 << 20;
/// Most documents of a query.
pub const MAX_DOCUMENTS: usize = 100_000;

/// A query with its documents, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Its id, without `qid:`.
    pub id: String,
    /// Line of its first document, from 1.
    pub line: usize,
    /// At least one.
    pub documents: Vec<Document>,
}

/// Why a file is no LETOR file. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum LetorError {
    /// It cannot be read.
    #[error("line {line}: {source}")]
    Read {
        /// The line.
        line: usize,
        /// What the operating system said.
        source: io::Error,
    },
    /// A line that is too long.
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes")]
    LongLine {
        /// The line.
        line: usize,
    },
    /// A line that is no text.
    #[error("line {line} is not UTF-8")]
    NotText {
        /// The line.
        line: usize,
    },
    /// A line of another form.
    #[error("line {line}: {source}")]
    Line {
        /// The line.
        line: usize,
        /// What is wrong with it.
        source: LineError,
    },
    /// A query that comes back after another.
    #[error(
        "line {line}: query `{query}` comes again after another; a query's documents must be together"
    )]
    Scattered {
        /// The line.
        line: usize,
        /// The query.
        query: String,
    },
    /// A query with too many documents.
    #[error("line {line}: query `{query}` has more than {MAX_DOCUMENTS} documents")]
    ManyDocuments {
        /// The line.
        line: usize,
        /// The query.
        query: String,
    },
}

/// Reads one query at a time. After an error it ends.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    line: usize,
    buffer: Vec<u8>,
    /// The first document of the query that comes next.
    pending: Option<Query>,
    seen: HashSet<String>,
    ended: bool,
}

impl<R: BufRead> Reader<R> {
    /// A reader of `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            line: 0,
            buffer: Vec::new(),
            pending: None,
            seen: HashSet::new(),
            ended: false,
        }
    }

    /// The query and document of the next line that has one.
    fn document(&mut self) -> Result<Option<(String, Document)>, LetorError> {
        loop {
            self.buffer.clear();
            self.line += 1;
            let line = self.line;
            let mut limited = self.input.by_ref().take(MAX_LINE_BYTES as u64 + 1);
            let read = limited
                .read_until(b'\n', &mut self.buffer)
                .map_err(|source| LetorError::Read { line, source })?;
            if read == 0 {
                return Ok(None);
            }
            if self.buffer.len() > MAX_LINE_BYTES {
                return Err(LetorError::LongLine { line });
            }
            let text =
                std::str::from_utf8(&self.buffer).map_err(|_| LetorError::NotText { line })?;
            let text = if line == 1 { text.trim_start_matches('\u{feff}') } else { text };
            let parsed = Document::parse(text.trim_end_matches(['\n', '\r']))
                .map_err(|source| LetorError::Line { line, source })?;
            if let Some((query, document)) = parsed {
                return Ok(Some((query.to_string(), document)));
            }
        }
    }

    fn query(&mut self) -> Result<Option<Query>, LetorError> {
        while let Some((id, document)) = self.document()? {
            let line = self.line;
            match &mut self.pending {
                Some(open) if open.id == id => {
                    if open.documents.len() == MAX_DOCUMENTS {
                        return Err(LetorError::ManyDocuments { line, query: id });
                    }
                    open.documents.push(document);
                }
                pending => {
                    if !self.seen.insert(id.clone()) {
                        return Err(LetorError::Scattered { line, query: id });
                    }
                    let finished = pending.replace(Query { id, line, documents: vec![document] });
                    if finished.is_some() {
                        return Ok(finished);
                    }
                }
            }
        }
        self.ended = true;
        Ok(self.pending.take())
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Query, LetorError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.query();
        self.ended |= next.is_err();
        next.transpose()
    }
}
