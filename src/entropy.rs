//! The one place that asks the operating system for randomness.

use rand::TryRng;
use rand::rngs::SysRng;

/// `N` bytes from the operating system, fit for keys. Fails only where the system has no source of
/// randomness.
pub fn bytes<const N: usize>() -> Result<[u8; N], rand::rngs::SysError> {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes)?;
    Ok(bytes)
}

/// A 64-bit number from the operating system.
pub fn number() -> Result<u64, rand::rngs::SysError> {
    bytes().map(u64::from_le_bytes)
}
