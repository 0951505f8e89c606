//! The bytes that a policy's state is saved as.

/// A policy's state as bytes, for [`Policy::save`].
pub(crate) fn save_state(state: &impl serde::Serialize) -> Vec<u8> {
    postcard::to_stdvec(state).expect("numbers and vectors of numbers always serialise")
}

/// A state that [`save_state`] wrote; `None` when the bytes are not all of one `T`.
pub(crate) fn load_state<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (state, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(state)
}
