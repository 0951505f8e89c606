//! The pages that change something: experiments, API keys, and the audit log of all changes.
//!
//! A page is a plain HTML form. Its submission is turned into the body of the API's operation and
//! goes the way of that operation, so both refuse the same things with the same words. Every change
//! takes two submissions: the first leads to a page that says what will happen, the second makes
//! the change and redirects. Both need the token of the session ([`page::Page::require_token`]).

mod action;
mod action_form;
mod audit;
mod change;
mod confirm;
mod create;
mod form;
mod keys;
mod methods;
mod new_experiment;
mod overview;
mod page;
mod policies;
mod routes;
mod submission;

pub(crate) use routes::{MANAGING_PAGES, routes};
