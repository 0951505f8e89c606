//! Randomness from the operating system. Only this module requests it.

use rand::TryRng;
use rand::rngs::SysRng;

use crate::ExperimentId;

/// `N` random bytes, strong enough for keys. Fails only if the system has no source of randomness.
pub fn bytes<const N: usize>() -> Result<[u8; N], rand::rngs::SysError> {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes)?;
    Ok(bytes)
}

/// The id of a new experiment: never 0, and never that of another experiment, also not of one that
/// had the same name.
pub fn experiment_id() -> Result<ExperimentId, rand::rngs::SysError> {
    Ok((number()? >> 1).max(1).cast_signed())
}

/// A random 64-bit number.
pub fn number() -> Result<u64, rand::rngs::SysError> {
    bytes().map(u64::from_le_bytes)
}
