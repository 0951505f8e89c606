//! Reading the file of an exported experiment.

use std::io::BufRead;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::format::{CHUNK, End, EntryLine, hex};
use crate::engine::fold::Fold;
use crate::store::LogEntry;

/// Reads a file line by line, and computes the digest of the lines.
pub(super) struct Reader<'a> {
    file: &'a mut (dyn BufRead + Send),
    line: u64,
    digest: Sha256,
    ended: bool,
}

impl<'a> Reader<'a> {
    pub fn new(file: &'a mut (dyn BufRead + Send)) -> Self {
        Self { file, line: 0, digest: Sha256::new(), ended: false }
    }

    /// An error in the current line.
    pub fn wrong(&self, what: impl std::fmt::Display) -> anyhow::Error {
        anyhow::anyhow!("line {}: {what}", self.line)
    }

    pub fn parse<T: for<'de> Deserialize<'de>>(&self, line: &str) -> Result<T, anyhow::Error> {
        serde_json::from_str(line).map_err(|error| self.wrong(error))
    }

    pub fn next(&mut self) -> Result<Option<String>, anyhow::Error> {
        let mut text = String::new();
        self.line += 1;
        let read = self.file.read_line(&mut text).map_err(|error| self.wrong(error))?;
        self.digest.update(text.as_bytes());
        Ok((read > 0).then_some(text))
    }

    /// The next entries, folded. Empty after the last entry, if the end of the file is valid.
    pub fn chunk(&mut self, fold: &mut Fold, head: u64) -> Result<Vec<LogEntry>, anyhow::Error> {
        let mut chunk = Vec::new();
        while fold.position() < head && chunk.len() < CHUNK as usize {
            let line = self.next()?.ok_or_else(|| {
                self.wrong(format!(
                    "the file ends after log entry {}, before {head}",
                    fold.position()
                ))
            })?;
            let entry = self.parse::<EntryLine>(&line)?.entry().map_err(|what| self.wrong(what))?;
            fold.apply(&entry).map_err(|error| self.wrong(error))?;
            chunk.push(entry);
        }
        if chunk.is_empty() && !self.ended {
            let expected = hex(&self.digest.clone().finalize());
            let line = self
                .next()?
                .ok_or_else(|| self.wrong("the file ends before its last line, the digest"))?;
            let end: End = self.parse(&line)?;
            anyhow::ensure!(
                end.sha256 == expected,
                self.wrong("the file was changed: its digest does not match")
            );
            anyhow::ensure!(self.next()?.is_none(), self.wrong("there is more after the digest"));
            self.ended = true;
        }
        Ok(chunk)
    }
}
