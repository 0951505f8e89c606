//! Feedback: from what a searcher did on a page to an event in the log, exactly once.

mod clicks;
mod content;
mod links;
mod opened;
mod receive;
mod request;
mod values;

pub use content::{
    Clicked, Feedback, FeedbackContent, IgnoredValue, PageEvent, Receipt, ShownOutcome,
};
pub use receive::receive;
pub use values::ValuesOfPage;
