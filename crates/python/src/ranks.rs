//! Win counts, and the ranks that follow from them.

use dueling_bandits::evidence;
use dueling_bandits::{MAX_RANKERS, MIN_RANKERS, Outcome, Tally};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::arguments::{self, Argument, table};
use crate::{guarded, value_error};

/// For each ranker, the range of its rank: an array of K × 2 numbers, the best rank, from 1, and
/// the worst.
///
/// `wins` are the win counts of all comparisons: row i, column j is the number of wins of i against
/// j, a tie half for both. The rank of a ranker is 1 more than the number of rankers that beat it.
/// All ranges hold together at all times in a share `confidence` of experiments, whichever policy
/// chose the pairs, and whenever somebody looks.
#[pyfunction]
#[pyo3(
    signature = (wins, confidence = Argument::Default(0.95)),
    text_signature = "(wins, confidence=0.95)"
)]
pub fn rank_intervals<'py>(
    py: Python<'py>,
    wins: &Bound<'py, PyAny>,
    confidence: Argument<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let confidence = confidence.read(arguments::confidence)?;
    let tally = tally_of(wins)?;
    let ranks = guarded(|| evidence::rank_intervals(&tally, confidence))?;
    let ends = ranks.iter().flat_map(|it| [*it.start() as i64, *it.end() as i64]).collect();
    PyArray1::from_vec(py, ends).reshape([tally.rankers(), 2])
}

/// The counts of an array of wins.
pub fn tally_of(wins: &Bound<'_, PyAny>) -> PyResult<Tally> {
    /// Most wins of one ranker against another: half wins are kept in 32 bits.
    const MOST: f64 = (u32::MAX / 2) as f64;
    let (counts, _) = table("wins", wins)?;
    let rankers = counts.nrows();
    if counts.ncols() != rankers || !(MIN_RANKERS..=MAX_RANKERS).contains(&rankers) {
        return Err(value_error(format!(
            "`wins` has the shape {rankers} × {}; it must be K × K, with K from {MIN_RANKERS} to \
             {MAX_RANKERS}",
            counts.ncols()
        )));
    }
    let mut tally = Tally::new(rankers);
    for ((i, j), &count) in counts.indexed_iter() {
        let is_count = (0.0..=MOST).contains(&count) && (2.0 * count).fract() == 0.0;
        if !is_count || (i == j && count != 0.0) {
            let expected =
                if i == j { "0 on the diagonal" } else { "a number of wins, or of halves" };
            let message = format!("`wins`: row {i}, column {j} is {count}; it must be {expected}");
            return Err(value_error(message));
        }
    }
    for i in 0..rankers {
        for j in 0..i {
            let [ours, theirs] = [counts[[i, j]], counts[[j, i]]];
            // ties are half wins of both
            let ties = if ours.fract() == 0.5 { 1 } else { 0 };
            if (ours + theirs).fract() != 0.0 {
                let message = format!(
                    "`wins`: row {i}, column {j} and its opposite are {ours} and {theirs}; a tie \
                     is half a win for both"
                );
                return Err(value_error(message));
            }
            let duel = dueling_bandits::Duel::new(i, j);
            tally.record_run(duel, Outcome::First, ours as u32);
            tally.record_run(duel, Outcome::Second, theirs as u32);
            tally.record_run(duel, Outcome::Half, ties);
        }
    }
    Ok(tally)
}
