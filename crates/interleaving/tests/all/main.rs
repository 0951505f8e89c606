//! The tests of the crate in one binary: the conformance vectors, the properties of each method
//! over every sequence of coin flips, hostile input, and the click models.

mod click_models;
mod exact;
mod fairness;
mod hostile;
mod optimized;
mod properties;
mod specs;
mod split_credit;
mod vectors;
