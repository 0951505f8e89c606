//! Simulated users.

use interleaving::FastRng;
use interleaving::click_models::{ClickModel as Model, ClickModelSpec, Table};
use pyo3::prelude::*;
use rand::SeedableRng;

use crate::arguments::{Argument, count, items, refused, text, whole};
use crate::saved::{Reduced, Saved};
use crate::{guarded, value_error};

/// A simulated user, who clicks on documents by their grades.
///
/// `model` is perfect, navigational, informational, almost-random or random, each with
/// `:stop_on=examine` if wanted, or position-based:eta=1,attraction=navigational. Documents are
/// judged 0 to `grades` - 1, the best highest; there are tables for 2, 3 and 5 grades. `seed`
/// decides all clicks.
#[pyclass(module = "dueling_bandits")]
pub struct ClickModel {
    spec: ClickModelSpec,
    grades: usize,
    model: Model,
    rng: FastRng,
}

#[pymethods]
impl ClickModel {
    #[new]
    #[pyo3(
        signature = (model, grades, seed = Argument::Default(0)),
        text_signature = "(model, grades, seed=0)"
    )]
    fn new(
        model: &Bound<'_, PyAny>,
        grades: &Bound<'_, PyAny>,
        seed: Argument<'_, u64>,
    ) -> PyResult<Self> {
        let spec = ClickModelSpec::from_text(&text("model", model)?)
            .map_err(|error| value_error(format!("`model`: {error}")))?;
        let grades = count("grades", grades, usize::MAX)?;
        let seed = seed.read(|seed| whole("seed", seed, 0..=u64::MAX))?;
        let model = spec
            .for_grades(grades)
            .map_err(|error| value_error(format!("`grades` is {grades}: {error}")))?;
        Ok(Self { spec, grades, model, rng: FastRng::seed_from_u64(seed) })
    }

    /// The positions that the user clicks on a page whose documents have these grades, ascending.
    /// Each call is another user.
    fn click(&mut self, grades: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let most = self.grades - 1;
        let wanted = format!("a list of grades from 0 to {most}");
        let read = |item| count("grades", item, most);
        let shown = items("grades", grades, &wanted)?;
        let shown: Vec<u8> = shown
            .iter()
            .map(|item| Ok(read(item).map_err(|_| refused("grades", grades, &wanted))? as u8))
            .collect::<PyResult<_>>()?;
        let mut clicks = Vec::new();
        guarded(|| self.model.click(shown, &mut self.rng, &mut clicks))?;
        Ok(clicks)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        self.reduce(py)
    }

    fn __repr__(&self) -> String {
        format!("<ClickModel {} for {} grades>", self.spec.text(), self.grades)
    }
}

impl Saved for ClickModel {
    const CLASS: &'static str = "ClickModel";
    type State = (String, usize, FastRng);

    fn state(&self) -> Self::State {
        (self.spec.text(), self.grades, self.rng.clone())
    }

    fn of_state((spec, grades, rng): Self::State) -> Option<Self> {
        let spec = ClickModelSpec::from_text(&spec).ok()?;
        Some(Self { spec, grades, model: spec.for_grades(grades).ok()?, rng })
    }
}

/// The names of the click models.
#[pyfunction]
pub fn click_models() -> Vec<&'static str> {
    Table::NAMES.iter().map(|(name, _)| *name).chain(["position-based"]).collect()
}
