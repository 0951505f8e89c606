//! What researchers run: policies on known matrices, the figures of the papers, calibration of the
//! service's estimates, and preference matrices estimated from judged documents.
#![warn(missing_docs)]

pub mod estimate;
pub mod letor;
pub mod simulate;
