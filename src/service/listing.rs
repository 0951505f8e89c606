//! Lists of experiments, in pages that are bounded by number and by size.

use std::collections::BTreeSet;

use crate::service::Service;
use crate::service::error::ServiceError;
use rankduel_store::ExperimentRecord;

/// A page ends with the experiment whose spec brings it to this size. A spec can have as many bytes
/// as a body.
const PAGE_BYTES: usize = 1024 * 1024;
/// Experiments that are read first. How many more are read at once depends on their size.
const FIRST_READ: usize = 10;

/// One page of a list of experiments.
#[derive(Debug, Default)]
pub struct ExperimentPage {
    pub records: Vec<ExperimentRecord>,
    /// Bytes of their specs.
    pub bytes: usize,
    /// Whether there are more behind them.
    pub more: bool,
}

/// Experiments that are not archived, by name, starting after `after`: at most `limit`, and
/// fewer if their specs are large. With `names`, only those with these names are read, so the
/// result reveals nothing about other experiments.
pub async fn list(
    service: &Service,
    names: Option<&[String]>,
    after: Option<&str>,
    limit: usize,
) -> Result<ExperimentPage, ServiceError> {
    let mut page = ExperimentPage::default();
    let mut read_next = FIRST_READ;
    loop {
        // one more shows whether there is another page
        let wanted = read_next.min(limit + 1 - page.records.len());
        let after = page.records.last().map(|last| last.name.as_str()).or(after);
        let found = experiments_after(service, names, after, wanted).await?;
        let is_end = found.len() < wanted;
        for record in found {
            if page.records.len() == limit || page.bytes >= PAGE_BYTES {
                page.more = true;
                return Ok(page);
            }
            page.bytes += record.spec.len();
            page.records.push(record);
        }
        if is_end {
            return Ok(page);
        }
        let mean = page.bytes.div_ceil(page.records.len()).max(1);
        read_next = (PAGE_BYTES.saturating_sub(page.bytes) / mean).max(1);
    }
}

async fn experiments_after(
    service: &Service,
    names: Option<&[String]>,
    after: Option<&str>,
    wanted: usize,
) -> Result<Vec<ExperimentRecord>, ServiceError> {
    let Some(names) = names else {
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        return Ok(service.engine.store.experiments(after, wanted).await?);
    };
    let is_after = |name: &&str| after.is_none_or(|after| *name > after);
    let names: BTreeSet<&str> = names.iter().map(String::as_str).filter(is_after).collect();
    let mut found = Vec::new();
    for name in names {
        if found.len() >= wanted {
            break;
        }
        let record = service.engine.store.experiment(name).await?;
        found.extend(record.filter(|record| record.archived_at.is_none()));
    }
    Ok(found)
}
