//! The interleaving methods, one file each.
//!
//! A method drafts the first `n` documents of the shown list and scores clicks on it. The draft of
//! `n` documents is always the beginning of the draft of `n + 1`, so that all pages of results of a
//! duel belong to one list.

pub mod balanced;
pub mod optimized;
pub mod probabilistic;
pub mod team_draft;
