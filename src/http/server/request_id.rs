//! Request ids.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName};

/// Identifies a request in the log, in problems and to its caller.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The operating system provides no randomness.
#[derive(Debug, thiserror::Error)]
#[error("the operating system provides no randomness: {0}")]
pub struct NoRandomness(#[from] rand::rngs::SysError);

/// Makes request ids: a random number of the process, then a counter.
#[derive(Debug)]
pub(crate) struct RequestIds {
    /// 16 hexadecimal digits.
    process: String,
    next: AtomicU64,
}

impl RequestIds {
    pub fn new() -> Result<Self, NoRandomness> {
        Ok(Self { process: format!("{:016x}", crate::entropy::number()?), next: AtomicU64::new(0) })
    }

    fn fresh(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut id = String::with_capacity(self.process.len() + 17);
        id.push_str(&self.process);
        id.push('-');
        // Every request needs an id, and `write!` of a number shows in a profile.
        let digits = if number >> 32 == 0 { 8 } else { 16 };
        for place in (0..digits).rev() {
            id.extend(char::from_digit((number >> (4 * place)) as u32 & 15, 16));
        }
        id
    }

    /// The id that the caller sent, if it is safe to log; else a new one.
    pub fn of(&self, headers: &HeaderMap) -> String {
        let is_safe = |id: &&str| {
            (1..=128).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:+/=".contains(&byte))
        };
        match headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(is_safe) {
            Some(id) => id.to_owned(),
            None => self.fresh(),
        }
    }
}
