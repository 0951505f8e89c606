//! The arguments of functions. One that is refused is a `ValueError` with its name and value.

use std::fmt::Display;
use std::ops::RangeInclusive;

use dueling_bandits::{MAX_RANKERS, MIN_RANKERS, Outcome};
use numpy::ndarray::Array2;
use numpy::{PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyString};

use crate::value_error;

/// An argument as it was given, or its default.
pub enum Argument<'py, T> {
    Given(Bound<'py, PyAny>),
    Default(T),
}

impl<'py, T> FromPyObject<'_, 'py> for Argument<'py, T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self::Given(value.to_owned()))
    }
}

impl<'py, T> Argument<'py, T> {
    /// The value, as `read` reads it.
    pub fn read(self, read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>) -> PyResult<T> {
        match self {
            Self::Given(value) => read(&value),
            Self::Default(value) => Ok(value),
        }
    }
}

/// The error about an argument.
pub fn refused(name: &str, value: &Bound<'_, PyAny>, wanted: impl Display) -> PyErr {
    value_error(format!("`{name}` is {}; it must be {wanted}", shown(value)))
}

/// A value in a message, cut short.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    const MOST: usize = 80;
    let text = value.repr().map(|text| text.to_string());
    let text = text.unwrap_or_else(|_| format!("a {}", value.get_type()));
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A whole number in a range. A float that is whole is one.
pub fn whole(name: &str, value: &Bound<'_, PyAny>, range: RangeInclusive<u64>) -> PyResult<u64> {
    /// The least float that is more than every whole number.
    const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;
    let number = value.extract::<u64>().ok().or_else(|| {
        let float = value.cast::<PyFloat>().ok()?.value();
        let is_whole = float.fract() == 0.0 && (0.0..TOO_LARGE).contains(&float);
        is_whole.then_some(float as u64)
    });
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        let wanted = format!("a whole number from {} to {}", range.start(), range.end());
        refused(name, value, wanted)
    })
}

/// [`whole`] as an index or a length.
pub fn count(name: &str, value: &Bound<'_, PyAny>, most: usize) -> PyResult<usize> {
    whole(name, value, 0..=most as u64).map(|number| number as usize)
}

/// A number that `allows`.
pub fn real(
    name: &str,
    value: &Bound<'_, PyAny>,
    wanted: &str,
    allows: impl FnOnce(f64) -> bool,
) -> PyResult<f64> {
    let number = value.extract::<f64>().ok().filter(|&number| allows(number));
    number.ok_or_else(|| refused(name, value, wanted))
}

/// A probability.
pub fn probability(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    real(name, value, "a number from 0 to 1", |number| (0.0..=1.0).contains(&number))
}

/// A confidence.
pub fn confidence(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let allows = |number| number > 0.0 && number < 1.0;
    real("confidence", value, "a number above 0 and below 1", allows)
}

/// A text.
pub fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.extract().map_err(|_| refused(name, value, "a text"))
}

/// One of these names.
pub fn choice(
    name: &str,
    value: &Bound<'_, PyAny>,
    choices: &[&'static str],
) -> PyResult<&'static str> {
    let given = value.extract::<String>().ok();
    let chosen = choices.iter().find(|&&choice| given.as_deref() == Some(choice));
    let wanted = || format!("one of: {}", choices.join(", "));
    chosen.copied().ok_or_else(|| refused(name, value, wanted()))
}

/// Bytes.
pub fn bytes<'a>(name: &str, value: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    let bytes = value.cast::<PyBytes>().map_err(|_| refused(name, value, "bytes"))?;
    Ok(bytes.as_bytes())
}

/// The outcome that a number stands for: the share of the win that the first ranker got.
pub fn outcome(share: Option<&Bound<'_, PyAny>>) -> PyResult<Outcome> {
    let Some(share) = share else { return Ok(Outcome::None) };
    match share.extract::<f64>() {
        Ok(1.0) => Ok(Outcome::First),
        Ok(0.0) => Ok(Outcome::Second),
        Ok(0.5) => Ok(Outcome::Half),
        _ => Err(refused(
            "outcome",
            share,
            "1 (the first ranker won), 0 (the second won), 0.5 (a tie that counts half) or None \
             (a step that counts for neither)",
        )),
    }
}

/// True or False.
pub fn flag(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.extract().map_err(|_| refused(name, value, "True or False"))
}

/// A list of texts, or any other iterable of them.
pub fn texts(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let wrong = || refused(name, value, "a list of texts");
    if value.is_instance_of::<PyString>() {
        return Err(wrong());
    }
    let items = value.try_iter().map_err(|_| wrong())?;
    items.map(|item| item?.extract().map_err(|_| wrong())).collect()
}

/// The items of a list, or of any other iterable but a text.
pub fn items<'py>(
    name: &str,
    value: &Bound<'py, PyAny>,
    wanted: &str,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
        return Err(refused(name, value, wanted));
    }
    value.try_iter().map_err(|_| refused(name, value, wanted))?.collect()
}

/// A number of rankers that can duel.
pub fn rankers(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let range = MIN_RANKERS as u64..=MAX_RANKERS as u64;
    whole("rankers", value, range).map(|rankers| rankers as usize)
}

/// One of so many rankers.
pub fn ranker(name: &str, value: &Bound<'_, PyAny>, rankers: usize) -> PyResult<usize> {
    match count(name, value, usize::MAX) {
        Ok(ranker) if ranker < rankers => Ok(ranker),
        _ => Err(value_error(format!(
            "`{name}` is {}: there is no such ranker; there are {rankers}, numbered from 0",
            shown(value)
        ))),
    }
}

/// An array of numbers with two dimensions, and how exact its numbers are: the distance from 1 to
/// the next number of its type.
pub fn table(name: &str, value: &Bound<'_, PyAny>) -> PyResult<(Array2<f64>, f64)> {
    let numpy = value.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (value,));
    let array = array.map_err(|_| refused(name, value, "an array of K × K numbers"))?;
    let dtype = array.getattr("dtype")?;
    let kind: String = dtype.getattr("kind")?.extract()?;
    if !["b", "i", "u", "f"].contains(&kind.as_str()) {
        return Err(refused(name, value, "an array of K × K numbers"));
    }
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    if shape.len() != 2 {
        let message = format!("`{name}` has the shape {}; it must be K × K", shape_text(&shape));
        return Err(value_error(message));
    }
    let precision = match kind.as_str() {
        "f" => numpy.call_method1("finfo", (&dtype,))?.getattr("eps")?.extract()?,
        _ => 0.0,
    };
    let array = array.call_method1("astype", ("float64",))?.cast_into::<PyArray2<f64>>();
    let array = array.map_err(PyErr::from)?;
    Ok((array.readonly().as_array().to_owned(), precision))
}

fn shape_text(shape: &[usize]) -> String {
    match shape {
        [] => "of a single value".into(),
        [one] => format!("{one}"),
        _ => shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" × "),
    }
}
