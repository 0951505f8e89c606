//! Inputs of `lab estimate`: judged documents.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::CommandError;
use interleaving::click_models::GRADES;
use lab::letor::DataSet;

/// The data set of a file, and the SHA-256 of it.
pub(super) fn read(path: &Path) -> Result<(DataSet, String), CommandError> {
    let wrong =
        |detail: String| CommandError::Usage(format!("--letor {}: {detail}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let data = DataSet::parse(&text).map_err(|error| wrong(error.to_string()))?;
    let digits = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((data, digits))
}

/// The number of grades of the documents: `--grades`, or the smallest number that click models
/// support.
pub(super) fn grades(
    path: &Path,
    data: &DataSet,
    given: Option<usize>,
) -> Result<usize, CommandError> {
    let needed = usize::from(data.highest_grade) + 1;
    match given.or_else(|| GRADES.into_iter().find(|&grades| grades >= needed)) {
        Some(grades) if grades >= needed => Ok(grades),
        Some(grades) => Err(CommandError::Usage(format!(
            "--grades {grades}: a document has grade {}, so there are at least {needed}",
            data.highest_grade
        ))),
        None => Err(CommandError::Usage(format!(
            "--letor {}: a document has grade {}; click models support grades 0 to {}",
            path.display(),
            data.highest_grade,
            GRADES[GRADES.len() - 1] - 1
        ))),
    }
}

/// The rankers of `--features`, or all rankers: indices into the features of the data set.
pub(super) fn rankers(data: &DataSet, features: &[u32]) -> Result<Vec<usize>, CommandError> {
    if features.is_empty() {
        return Ok((0..data.features.len()).collect());
    }
    let wrong = |detail: String| CommandError::Usage(format!("--features: {detail}"));
    let mut rankers = Vec::new();
    for feature in features {
        let Ok(ranker) = data.features.binary_search(feature) else {
            let why = if data.constant.contains(feature) {
                "has the same value for all documents of each query, so it does not rank anything"
            } else {
                "is not in the file"
            };
            return Err(wrong(format!("feature {feature} {why}")));
        };
        if rankers.contains(&ranker) {
            return Err(wrong(format!("feature {feature} is given twice")));
        }
        rankers.push(ranker);
    }
    if rankers.len() < 2 {
        return Err(wrong("a comparison needs two".into()));
    }
    Ok(rankers)
}
