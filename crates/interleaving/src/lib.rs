//! Interleaving for online evaluation of search rankers.
//!
//! Interleaving compares two rankings with real users: it merges them into one page, shows the
//! page, and credits each click to the ranking that contributed the clicked document. The ranking
//! with more credit wins. This crate implements four published [`methods`], credit for clicks, and
//! [`click_models`] for simulations. It does no I/O.
//!
//! ```
//! use interleaving::click_models::ClickModelSpec;
//! use interleaving::{Click, DuelCoins, FastRng, Request, Spec, Uncached, credit, interleave};
//! use rand::SeedableRng;
//!
//! let left = ["a", "b", "c", "d"];
//! let right = ["c", "a", "e", "f"];
//! let spec = Spec::from_text("team-draft")?;
//! let seed = [7; 32]; // secret, and different for each duel
//!
//! // Two rankings become one page.
//! let request = Request { left: &left, right: &right, offset: 0, length: 4, pinned: &[] };
//! let page = interleave(&spec, &request, &mut DuelCoins::drafting(seed), &Uncached)?;
//!
//! // A simulated user clicks. Only document `c` is relevant.
//! let user = ClickModelSpec::from_text("perfect")?.for_grades(2)?;
//! let mut positions = Vec::new();
//! let grades = page.slots.iter().map(|slot| u8::from(slot.document == "c"));
//! user.click(grades, &mut FastRng::seed_from_u64(1), &mut positions);
//!
//! // The clicks become an outcome.
//! let clicks: Vec<Click> = positions.into_iter().map(Click::at).collect();
//! let credit = credit(&spec, &page.sheet, &clicks, &mut DuelCoins::crediting(seed))?;
//! assert_eq!(credit.outcome, interleaving::Outcome::Right);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Terms
//!
//! - The two *sides* of a page are left and right; the papers call them A and B. Which ranker is
//!   left is the caller's choice.
//! - *Positions* count from 0 over all pages of a list. *Ranks* count from 1 within a ranking.
//! - A slot's [`Team`] is the side that contributed it. A slot is *competitive* if a click on it
//!   can earn credit.
//! - A [`CreditSheet`] is all that [`credit()`] needs to know about a page. Store it with the page,
//!   or draft the page again from the seed and the rankings.
//!
//! # Guarantees
//!
//! A page is a function of the spec, the two rankings, the pins and the [`DuelCoins`] of the duel.
//! The values that `DuelCoins` draws never change between versions, nor does the serialized form of
//! [`Spec`] and [`CreditSheet`].
#![warn(missing_docs)]

pub mod click_models;
mod click_weights;
mod clicks;
mod coins;
mod credit;
mod crediting;
mod draft;
mod drafting;
mod lists;
pub mod methods;
mod page;
mod request;
mod share;
mod spec;
mod text;

pub use click_weights::{ClickWeights, MAX_FEATURE, WEIGHTED_POSITIONS};
pub use clicks::{Click, InvalidClick, MAX_WEIGHT};
pub use coins::{Coins, DuelCoins, FastCoins, FastRng};
pub use credit::{Credit, CreditSheet, CreditSlot, NoSignal, Outcome, ScoreVerdict};
pub use crediting::{credit, decides_by_score, random_clicks_favour_a_side};
pub use draft::{Draft, Drafted, Note, Team};
pub use drafting::draft;
pub use lists::{DepthPolicy, Lists};
pub use methods::optimized::{PlanCache, Plans, Uncached};
pub use page::{Page, Slot, alone, interleave};
pub use request::{InvalidRequest, MAX_DEPTH, MAX_DOCUMENTS, MAX_PINS, Pin, Request};
pub use share::Share;
pub use spec::{InvalidSpec, Method, Spec};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
