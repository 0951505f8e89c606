//! Encoding a policy's state as bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes of a state.
pub(crate) fn save_state(state: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(state).expect("numbers and vectors of numbers always serialise")
}

/// A state that [`save_state`] wrote; `None` unless the bytes are exactly one `T`.
pub(crate) fn load_state<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (state, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(state)
}
