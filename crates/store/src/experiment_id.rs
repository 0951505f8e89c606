//! The id of an experiment, computed from its name.

use sha2::{Digest as _, Sha256};

use super::ExperimentId;

/// Separates this use of the hash from others.
const DOMAIN: &[u8] = b"rankduel experiment\0";

/// The id of a new experiment with this name: the first 63 bits of a hash, never 0.
///
/// An experiment has the same id in every database, and a database needs no sequence and no
/// constraint over several experiments.
pub fn experiment_id(name: &str) -> ExperimentId {
    let hash = Sha256::new().chain_update(DOMAIN).chain_update(name).finalize();
    let bits = hash.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    (bits >> 1).max(1).cast_signed()
}
