//! The native part of the Python module `dueling_bandits`: policies, preference matrices, verdicts,
//! simulations and interleaving, as thin classes over the crates of the workspace.
//!
//! An argument that is refused is a `ValueError` that names it, with the message of the crate. A
//! panic, which would be a defect, becomes a `RuntimeError`.

mod arguments;
mod classes;
mod duel;
mod interleave;
mod matrix;
mod players;
mod policy;
mod ranks;
mod saved;
mod simulate;
mod users;
mod verdict;

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::classes::restore;
    #[pymodule_export]
    use crate::duel::Duel;
    #[pymodule_export]
    use crate::interleave::{Credit, Page, Slot, interleave};
    #[pymodule_export]
    use crate::matrix::PreferenceMatrix;
    #[pymodule_export]
    use crate::policy::{Policy, Verdict, policy_kinds, policy_parameters};
    #[pymodule_export]
    use crate::ranks::rank_intervals;
    #[pymodule_export]
    use crate::simulate::simulate;
    #[pymodule_export]
    use crate::users::{ClickModel, click_models};
    #[pymodule_export]
    use crate::verdict::{Standing, VerdictTracker};
    /// A whole number from `least` to `most`, which is the argument `name`.
    #[pyfunction]
    #[pyo3(name = "_whole")]
    fn whole(name: &str, value: &Bound<'_, PyAny>, least: u64, most: u64) -> PyResult<u64> {
        crate::arguments::whole(name, value, least..=most)
    }

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
