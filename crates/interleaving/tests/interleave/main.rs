//! Interleaving: the conformance vectors, the properties of each method by going through every way
//! the coins can fall, and hostile input.

mod exact;
mod hostile;
mod properties;
mod specs;
mod vectors;
