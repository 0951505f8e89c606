//! Encoding a policy's state as bytes.

pub use serializable::Serializable;
#[cfg(feature = "serde")]
pub(crate) use serializable::{load_state, save_state};

#[cfg(feature = "serde")]
mod serializable {
    /// A type that serde can write and read; any type without the feature `serde`.
    pub trait Serializable: serde::Serialize + serde::de::DeserializeOwned {}

    impl<T: serde::Serialize + serde::de::DeserializeOwned> Serializable for T {}

    /// A policy's state as bytes, for [`Policy::save`](crate::Policy::save).
    pub(crate) fn save_state(state: &impl serde::Serialize) -> Vec<u8> {
        postcard::to_stdvec(state).expect("numbers and vectors of numbers always serialise")
    }

    /// A state that [`save_state`] wrote; `None` unless the bytes are exactly one `T`.
    pub(crate) fn load_state<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
        let (state, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(state)
    }
}

#[cfg(not(feature = "serde"))]
mod serializable {
    /// A type that serde can write and read; any type without the feature `serde`.
    pub trait Serializable: Sized {}

    impl<T> Serializable for T {}
}
