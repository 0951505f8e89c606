//! The policies, through their trait.

mod arena;
mod batch;
mod resume;
mod scb;
mod sparring;
mod winner_stays;
