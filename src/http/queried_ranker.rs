//! The ranker that a query names.

use super::problem::{ApiResult, Problem};
use crate::engine::experiment_spec::ExperimentSpec;

/// Index of the ranker that the parameter `ranker` of a query names; an error if the experiment has
/// no such ranker.
pub(crate) fn queried_ranker(spec: &ExperimentSpec, id: Option<&str>) -> ApiResult<Option<usize>> {
    let Some(id) = id else { return Ok(None) };
    match spec.ranker_index(id) {
        Some(index) => Ok(Some(index)),
        None => {
            let detail = format!("`ranker` is {id:?}, and the experiment has no such ranker");
            Err(Problem::invalid(&detail).query("ranker", detail))
        }
    }
}
