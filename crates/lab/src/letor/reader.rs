//! Reads a LETOR file one query at a time, so that memory does not depend on its length.

use std::collections::HashSet;
use std::io::{self, BufRead, Read};

use super::line::{Document, LineError};

/// The longest valid line.
pub const MAX_LINE_BYTES: usize = 1 << 20;
/// The largest number of documents of a query.
pub const MAX_DOCUMENTS: usize = 100_000;

/// A query with its documents, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The id of the query, without `qid:`.
    pub id: String,
    /// The line of its first document, from 1.
    pub line: usize,
    /// The documents, at least one.
    pub documents: Vec<Document>,
}

/// Why a file is not a valid LETOR file. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum LetorError {
    /// The file cannot be read.
    #[error("line {line}: {source}")]
    Read {
        /// The line.
        line: usize,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A line is too long.
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes")]
    LongLine {
        /// The line.
        line: usize,
    },
    /// A line is not UTF-8.
    #[error("line {line} is not UTF-8")]
    NotText {
        /// The line.
        line: usize,
    },
    /// A line is invalid.
    #[error("line {line}: {source}")]
    Line {
        /// The line.
        line: usize,
        /// Why it is invalid.
        source: LineError,
    },
    /// The documents of a query are not together.
    #[error(
        "line {line}: query `{query}` comes again after another; the documents of a query must be together"
    )]
    Scattered {
        /// The line.
        line: usize,
        /// The query.
        query: String,
    },
    /// A query has too many documents.
    #[error("line {line}: query `{query}` has more than {MAX_DOCUMENTS} documents")]
    ManyDocuments {
        /// The line.
        line: usize,
        /// The query.
        query: String,
    },
}

/// Iterates over the queries. It ends after an error.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    line: usize,
    buffer: Vec<u8>,
    /// The query whose documents are being read.
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

    /// The query id and document of the next line with data.
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
