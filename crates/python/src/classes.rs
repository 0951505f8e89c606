//! The classes by name.

use pyo3::prelude::*;

use crate::duel::Duel;
use crate::interleave::{Credit, Page, Slot};
use crate::matrix::PreferenceMatrix;
use crate::policy::{Policy, Verdict};
use crate::saved::Saved;
use crate::users::ClickModel;
use crate::value_error;
use crate::verdict::{Standing, VerdictTracker};

/// The object of a class from its bytes, for `pickle` and `copy`.
#[pyfunction(name = "_restore")]
pub fn restore(py: Python<'_>, kind: &str, state: &[u8]) -> PyResult<Py<PyAny>> {
    match kind {
        ClickModel::CLASS => Ok(Py::new(py, ClickModel::restore(state)?)?.into_any()),
        Credit::CLASS => Ok(Py::new(py, Credit::restore(state)?)?.into_any()),
        Duel::CLASS => Ok(Py::new(py, Duel::restore(state)?)?.into_any()),
        Page::CLASS => Ok(Py::new(py, Page::restore(state)?)?.into_any()),
        Policy::CLASS => Ok(Py::new(py, Policy::restore(state)?)?.into_any()),
        PreferenceMatrix::CLASS => Ok(Py::new(py, PreferenceMatrix::restore(state)?)?.into_any()),
        Slot::CLASS => Ok(Py::new(py, Slot::restore(state)?)?.into_any()),
        Standing::CLASS => Ok(Py::new(py, Standing::restore(state)?)?.into_any()),
        Verdict::CLASS => Ok(Py::new(py, Verdict::restore(state)?)?.into_any()),
        VerdictTracker::CLASS => Ok(Py::new(py, VerdictTracker::restore(state)?)?.into_any()),
        other => Err(value_error(format!("`kind` is {other}; no such class is saved"))),
    }
}
