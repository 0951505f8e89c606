//! Encoding a policy's state as bytes.

#[cfg(feature = "serde")]
pub use serializable::SaveLater;
pub use serializable::Serializable;
#[cfg(feature = "serde")]
pub(crate) use serializable::{load_state, save_later};

#[cfg(feature = "serde")]
mod serializable {
    /// A type that serde can write and read; any type without the feature `serde`.
    pub trait Serializable: serde::Serialize + serde::de::DeserializeOwned {}

    impl<T: serde::Serialize + serde::de::DeserializeOwned> Serializable for T {}

    /// A copy of a policy's state that makes its bytes when it is called.
    pub type SaveLater = Box<dyn FnOnce() -> Vec<u8> + Send>;

    /// The copy of a state, for [`Policy::save_later`](crate::Policy::save_later).
    pub(crate) fn save_later<T: serde::Serialize + Send + 'static>(state: T) -> SaveLater {
        Box::new(move || {
            postcard::to_stdvec(&state).expect("numbers and vectors of numbers always serialise")
        })
    }

    /// A state that [`save_later`] wrote; `None` unless the bytes are exactly one `T`.
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
