//! Encoding a policy's state as bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A copy of a policy's state that makes its bytes when it is called.
pub type SaveLater = Box<dyn FnOnce() -> Vec<u8> + Send>;

/// The copy of a state, for [`Policy::save_later`](crate::Policy::save_later).
pub(crate) fn save_later<T: Serialize + Send + 'static>(state: T) -> SaveLater {
    Box::new(move || {
        postcard::to_stdvec(&state).expect("numbers and vectors of numbers always serialise")
    })
}

/// A state that [`save_later`] wrote; `None` unless the bytes are exactly one `T`.
pub(crate) fn load_state<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (state, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(state)
}
