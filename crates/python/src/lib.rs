//! The native part of the Python module `dueling_bandits`: policies, preference matrices, verdicts,
//! simulations and interleaving, as thin classes over the crates of the workspace.
//!
//! Errors of these crates become `ValueError`s with the same message. A panic, which would be a
//! defect, becomes a `RuntimeError`.

mod interleave;
mod matrix;
mod policy;
mod simulate;
mod verdict;

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dueling_bandits::Outcome;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::interleave::{Credit, Page, Slot, interleave};
    #[pymodule_export]
    use crate::matrix::PreferenceMatrix;
    #[pymodule_export]
    use crate::policy::{Duel, Policy, Verdict, policy_kinds};
    #[pymodule_export]
    use crate::simulate::simulate;
    #[pymodule_export]
    use crate::verdict::{Standing, VerdictTracker};
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// A `ValueError` with the message of an error.
fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The result of `what`; a `RuntimeError` if it panics.
fn guarded<T>(what: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(what)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
        let message = message.unwrap_or("no message");
        PyRuntimeError::new_err(format!("a defect of dueling_bandits, please report it: {message}"))
    })
}

/// The outcome that a number stands for: the share of the win that the first ranker got.
fn outcome(share: Option<f64>) -> PyResult<Outcome> {
    match share {
        Some(1.0) => Ok(Outcome::First),
        Some(0.0) => Ok(Outcome::Second),
        Some(0.5) => Ok(Outcome::Half),
        None => Ok(Outcome::None),
        Some(other) => Err(value_error(format!(
            "the outcome is {other}; it must be 1 (the first ranker won), 0 (the second won), 0.5 \
             (a tie that counts half) or None (a step that counts for neither)"
        ))),
    }
}

/// An error unless both rankers of a pair exist.
fn check_pair((first, second): (usize, usize), rankers: usize) -> PyResult<()> {
    match [first, second].into_iter().find(|&ranker| ranker >= rankers) {
        None => Ok(()),
        Some(ranker) => Err(no_ranker(ranker, rankers)),
    }
}

fn no_ranker(ranker: impl Display, rankers: usize) -> PyErr {
    value_error(format!("there is no ranker {ranker}; there are {rankers}, numbered from 0"))
}

/// An error unless so many rankers can duel.
fn check_rankers(rankers: usize) -> PyResult<()> {
    use dueling_bandits::{MAX_RANKERS, MIN_RANKERS};
    if (MIN_RANKERS..=MAX_RANKERS).contains(&rankers) {
        return Ok(());
    }
    Err(value_error(format!(
        "`rankers` is {rankers}; it must be from {MIN_RANKERS} to {MAX_RANKERS}"
    )))
}
