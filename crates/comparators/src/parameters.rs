//! The contract of a comparator's parameters.

use dueling_bandits::{Bandit, InvalidPolicy, Setup};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The parameters of a comparator. Their names are those of the fields, and the default of a
/// parameter is that of its field. A horizon that has no default is 0, which is never valid.
pub trait Parameters: Default + Serialize + DeserializeOwned {
    /// Check the ranges of the parameters for `rankers` rankers.
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        Ok(())
    }

    /// The policy before its first observation. Call [`Parameters::validate`] first.
    fn start(&self, setup: Setup) -> Box<dyn Bandit>;
}
