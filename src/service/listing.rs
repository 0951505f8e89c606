//! Lists of experiments, in pages that are bounded by number and by size.

use crate::service::Service;
use crate::service::error::ServiceError;
use rankduel_store::{ExperimentRecord, ListFilter, ListPlace, ListSize, ListedExperiment};

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
    /// How many the whole list has.
    pub total: u64,
}

/// Experiments of a list, by name, starting after `after`: at most `limit`, and fewer if their specs
/// are large.
pub async fn list(
    service: &Service,
    filter: &ListFilter,
    after: &str,
    limit: usize,
) -> Result<ExperimentPage, ServiceError> {
    let store = &service.engine.store;
    let total = store.list_size(filter, None).await?.total();
    let mut page = ExperimentPage { total, ..ExperimentPage::default() };
    let mut read_next = FIRST_READ;
    loop {
        // one more shows whether there is another page
        let wanted = read_next.min(limit + 1 - page.records.len());
        let after = page.records.last().map_or(after, |last| &last.name);
        let limit_read = u32::try_from(wanted).unwrap_or(u32::MAX);
        let found = store.experiments(filter, after, limit_read).await?;
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

/// One page of the list by groups.
#[derive(Debug)]
pub(crate) struct GroupedPage {
    pub rows: Vec<ListedExperiment>,
    pub size: ListSize,
    pub more: bool,
}

/// Experiments of a list, by group and name, starting after `after`; at most `limit`.
pub(crate) async fn grouped(
    service: &Service,
    filter: &ListFilter,
    after: Option<&ListPlace>,
    limit: u32,
) -> Result<GroupedPage, ServiceError> {
    let store = &service.engine.store;
    let (size, rows) = tokio::try_join!(
        store.list_size(filter, after),
        store.listed(filter, after, limit.saturating_add(1)),
    )?;
    let (mut rows, most) = (rows, limit as usize);
    let more = rows.len() > most;
    rows.truncate(most);
    Ok(GroupedPage { rows, size, more })
}
