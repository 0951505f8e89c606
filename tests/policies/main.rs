//! The policies, through their trait.

mod arena;
mod resume;
mod scb;
mod sparring;
