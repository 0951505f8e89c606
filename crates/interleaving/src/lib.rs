//! Interleaving: two rankings become one page, and the clicks on it become an outcome. Pure.
//!
//! - [`spec`]: which method with which parameters.
//! - [`lists`]: the two rankings under the contract that all methods share: deduplicated, cut to a
//!   common depth.
//! - [`coins`]: where chance comes in: a function of the duel's seed alone, or every branch in turn
//!   for a test.
//! - [`team_draft`], [`balanced`], [`probabilistic`], [`optimized`]: one method each. A method
//!   drafts the first `n` documents of the shown list (the draft of `n` is the beginning of the
//!   draft of `n + 1`, so that every page of results belongs to one list) and makes credit of
//!   clicks.
//! - [`page`]: [`interleave`], from two lists of ids to the slots of one page.
//! - [`credit`](mod@credit): [`credit()`], from clicks to one of four outcomes.
//!
//! Left and right are the two sides of the shown page, as everywhere in the API; the papers' A is
//! left. Positions count from 0 over the whole shown list, ranks from 1. `docs/interleaving.md` has
//! the methods for a search engineer.

pub mod balanced;
pub mod click_models;
pub mod coins;
pub mod credit;
pub mod draft;
pub mod lists;
pub mod optimized;
pub mod page;
pub mod probabilistic;
pub mod spec;
pub mod team_draft;

pub use coins::{Coins, DuelCoins, FastCoins};
pub use credit::{
    Click, Credit, CreditSheet, CreditSlot, InvalidClick, MAX_WEIGHT, NoSignal, Verdict, credit,
};
pub use draft::{Draft, Drafted, Note, Team};
pub use lists::{DepthPolicy, Lists};
pub use optimized::plans::{PlanCache, Plans, Uncached};
pub use page::{
    InvalidRequest, MAX_DEPTH, MAX_DOCUMENTS, MAX_PINS, Page, Pin, Request, Slot, alone, interleave,
};
pub use spec::{InvalidSpec, Method, Spec};

/// The generator of simulations: fast, seedable, and no part of any state.
pub type FastRng = rand::rngs::Xoshiro256PlusPlus;
