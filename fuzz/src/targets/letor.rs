//! Reading a LETOR file query by query, to its end or to its first error.

use std::collections::HashSet;

use lab::letor::{DataSet, Reader};

/// The input is a file.
pub fn run(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let mut seen = HashSet::new();
    let mut failed = false;
    while let Some(read) = reader.next() {
        match read {
            Ok(query) => {
                assert!(!query.documents.is_empty(), "a query without a document");
                assert!(seen.insert(query.id), "a query was read twice");
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert!(reader.next().is_none(), "the reader continues after an error");
                failed = true;
            }
        }
    }
    if let Ok(data) = DataSet::read(bytes) {
        assert!(!failed && data.queries.len() == seen.len());
        for ranker in 0..data.features.len().min(8) {
            let ndcg = data.mean_ndcg(ranker, 10);
            assert!((0.0..=1.0 + 1e-9).contains(&ndcg), "{ndcg}");
        }
    }
}
