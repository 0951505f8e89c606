//! Reading the file of an exported experiment, and checking its log.

use std::io::BufRead;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::format::{CHUNK, End, EntryLine, hex};
use rankduel_engine::consistency::state_errors;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::{ExperimentRecord, LogEntry};

/// Reads a file line by line, and computes the digest of the lines.
pub(super) struct Reader<'a> {
    file: &'a mut (dyn BufRead + Send),
    line: u64,
    digest: Sha256,
}

impl<'a> Reader<'a> {
    pub fn new(file: &'a mut (dyn BufRead + Send)) -> Self {
        Self { file, line: 0, digest: Sha256::new() }
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
}

/// The log in a file, read in chunks and checked against the record in the file.
pub(super) struct Log<'a> {
    reader: Reader<'a>,
    /// `None` before the first entry.
    fold: Option<Fold>,
    record: &'a ExperimentRecord,
    spec: &'a ExperimentSpec,
    entries: u64,
    ended: bool,
}

impl<'a> Log<'a> {
    pub fn new(
        reader: Reader<'a>,
        fold: Option<Fold>,
        record: &'a ExperimentRecord,
        spec: &'a ExperimentSpec,
    ) -> Self {
        Self { reader, fold, record, spec, entries: 0, ended: false }
    }

    fn position(&self) -> u64 {
        self.fold.as_ref().map_or(0, |fold| fold.state().position)
    }

    /// The next entries, folded. Empty after the last entry, if the end of the file is valid and
    /// the log agrees with the record.
    pub fn chunk(&mut self) -> Result<Vec<LogEntry>, anyhow::Error> {
        let mut chunk = Vec::new();
        while self.position() < self.record.head && chunk.len() < CHUNK as usize {
            let entry = self.entry()?;
            chunk.push(entry);
        }
        if chunk.is_empty() && !self.ended {
            self.end()?;
            self.ended = true;
        }
        self.entries += chunk.len() as u64;
        Ok(chunk)
    }

    fn entry(&mut self) -> Result<LogEntry, anyhow::Error> {
        let position = self.position();
        let Self { reader, fold, record, spec, .. } = self;
        let line = reader.next()?.ok_or_else(|| {
            reader.wrong(format!(
                "the file ends after log entry {}, before {}",
                position, record.head
            ))
        })?;
        let entry = reader.parse::<EntryLine>(&line)?.entry().map_err(|what| reader.wrong(what))?;
        match fold {
            Some(fold) => fold.apply(&entry).map_err(|error| reader.wrong(error))?,
            None => {
                let (seed, created_at) = (record.seed, record.created_at);
                let created = Fold::created(Some(&entry), spec, seed, created_at);
                *fold = Some(created.map_err(|error| reader.wrong(error))?);
            }
        }
        Ok(entry)
    }

    /// Check the last line, and the log as a whole.
    fn end(&mut self) -> Result<(), anyhow::Error> {
        let reader = &mut self.reader;
        let expected = hex(&reader.digest.clone().finalize());
        let line = reader
            .next()?
            .ok_or_else(|| reader.wrong("the file ends before its last line, the digest"))?;
        let end: End = reader.parse(&line)?;
        anyhow::ensure!(
            end.sha256 == expected,
            reader.wrong("the file was changed: its digest does not match")
        );
        anyhow::ensure!(
            end.entries == self.entries,
            reader.wrong(format!(
                "the file has {} log entries, and its last line says {}",
                self.entries, end.entries
            ))
        );
        anyhow::ensure!(reader.next()?.is_none(), reader.wrong("there is more after the digest"));
        let fold = self.fold.as_ref().ok_or_else(|| reader.wrong("the file has no log"))?;
        match state_errors(self.record, self.spec, fold).first() {
            Some(wrong) => Err(anyhow::anyhow!("the parts of the file do not agree: {wrong}")),
            None => Ok(()),
        }
    }
}
