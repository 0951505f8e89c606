//! Objects as bytes: what `save` gives, and what `pickle` and `copy` use.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::value_error;

/// The version of the layout of all states.
const LAYOUT: u8 = 1;
/// Bytes of a checksum.
const CHECKSUM: usize = 8;

/// A class whose objects can be saved.
pub trait Saved: Sized {
    /// The name of the class.
    const CLASS: &'static str;
    /// The saved part of an object.
    type State: Serialize + DeserializeOwned;

    fn state(&self) -> Self::State;

    /// The object with this state; `None` if there cannot be one.
    fn of_state(state: Self::State) -> Option<Self>;

    /// The object as bytes.
    fn save(&self) -> PyResult<Vec<u8>> {
        let mut bytes = vec![LAYOUT];
        bytes.extend(postcard::to_stdvec(&(Self::CLASS, self.state())).map_err(value_error)?);
        bytes.extend(checksum(&bytes));
        Ok(bytes)
    }

    /// The object that [`Saved::save`] wrote.
    fn restore(bytes: &[u8]) -> PyResult<Self> {
        let wrong =
            |why: &str| value_error(format!("`state` is no saved {}: it {why}", Self::CLASS));
        let (content, sum) = match bytes.len().checked_sub(CHECKSUM) {
            Some(end) if end > 0 => bytes.split_at(end),
            _ => return Err(wrong("is too short")),
        };
        if content[0] != LAYOUT {
            return Err(wrong("was saved by another version of dueling_bandits"));
        }
        if checksum(content) != sum {
            return Err(wrong("is damaged"));
        }
        let named = postcard::take_from_bytes::<&str>(&content[1..]);
        let (class, state) = named.map_err(|_| wrong("is damaged"))?;
        if class != Self::CLASS {
            return Err(wrong(&format!("is one of {class}")));
        }
        let state = postcard::from_bytes(state).ok();
        state.and_then(Self::of_state).ok_or_else(|| wrong("does not fit"))
    }

    /// The result of `__reduce__`.
    fn reduce<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let restore = py.import("dueling_bandits._native")?.getattr("_restore")?;
        Ok((restore, (Self::CLASS, PyBytes::new(py, &self.save()?))))
    }
}

/// A function, and its arguments that make the object again.
pub type Reduced<'py> = (Bound<'py, PyAny>, (&'static str, Bound<'py, PyBytes>));

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let digest = Sha256::digest(bytes);
    std::array::from_fn(|at| digest[at])
}

/// Implements [`Saved`] for a class that is all state.
macro_rules! saved_as_it_is {
    ($($class:ident),*) => {$(
        impl $crate::saved::Saved for $class {
            const CLASS: &'static str = stringify!($class);
            type State = Self;

            fn state(&self) -> Self {
                self.clone()
            }

            fn of_state(state: Self) -> Option<Self> {
                Some(state)
            }
        }
    )*};
}

pub(crate) use saved_as_it_is;
