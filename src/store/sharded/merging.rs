//! Lists of several databases as one.

use crate::store::ExperimentRecord;

/// The first records by name. An experiment that two databases show, while it moves, is listed
/// once.
pub(super) fn by_name(mut records: Vec<ExperimentRecord>, limit: u32) -> Vec<ExperimentRecord> {
    let newest_first = |record: &ExperimentRecord| std::cmp::Reverse((record.version, record.head));
    records.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| newest_first(a).cmp(&newest_first(b))));
    records.dedup_by(|next, kept| next.name == kept.name);
    records.truncate(limit as usize);
    records
}
