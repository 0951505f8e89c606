//! Interleaving: the conformance vectors, the properties of each method for every sequence of
//! coins, and hostile input.

mod exact;
mod hostile;
mod properties;
mod specs;
mod vectors;
