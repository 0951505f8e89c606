//! Orders decide: what people buy within a window of their first page names the best ranker.
//!
//! Each unit (a user, a device) has one *basket* in the whole experiment. It opens with the unit's
//! first page that had a click, and closes when nothing of it can come any more. A basket is three
//! sets and a time: *links* (clicked documents, with the credit of a click on each alone), *orders*
//! with their lines, and *cancellations*. When it closes, lines meet links, and the basket becomes
//! one answer with a [`Score`](crate::evidence::Score): in time, once, whatever arrived when.
//!
//! Start with [`Baskets`], then [`Run::close_baskets`](crate::run::Run::close_baskets), which counts
//! what it closes. `orders.md` in the folder of this crate has the theorems with their proofs, and
//! `crates/lab/notes/orders.md` the measured rates.
//!
//! | for | see |
//! | --- | --- |
//! | the facts: pages, links, orders, homes, rules | [`facts`] |
//! | one unit's basket, and its score | [`basket`] |
//! | all baskets, in order of issue | [`baskets`] |
//! | how orders found their pages, and how long they took | [`join`] |
//! | what clicks say beside orders, and orders cut off by the window | [`beside`] |
//! | what a ranker brings against the control, shown alone | [`lift`] |

pub mod basket;
pub mod baskets;
pub mod beside;
pub mod facts;
pub mod join;
pub mod lift;

pub use baskets::{Baskets, Changed, Closed, Credited, Expected, Left, Placed};
pub use beside::{Agreement, Beside};
pub use facts::{Alone, By, Document, Home, Line, Order, Page, Rules};
pub use join::{Delays, Join};
pub use lift::{Arms, Lift, Lifts};
