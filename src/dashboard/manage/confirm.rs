//! The page between a form and its change, which says what will happen.

use maud::{Markup, html};

use super::form::{Errors, Step, Values, step_button, token_field};

/// A change that waits for its confirmation.
pub(crate) struct Confirmation<'a> {
    /// The change, as a title.
    pub title: &'a str,
    /// The effect.
    pub sentence: Markup,
    /// More about it.
    pub details: Markup,
    /// The path that takes the change.
    pub path: &'a str,
    pub token: &'a str,
    /// The fields of the change.
    pub values: &'a Values,
    /// Why it was refused, if it was.
    pub errors: &'a Errors,
    /// The text of the button that makes the change.
    pub button: &'a str,
    /// Whether the change cannot be undone.
    pub is_final: bool,
    /// Whether there is a form to go back to.
    pub has_form: bool,
    /// The path to go to without a change.
    pub back: &'a str,
}

impl Confirmation<'_> {
    pub fn page(&self) -> Markup {
        html! {
            h1 { (self.title) }
            (self.errors.summary())
            section.confirm aria-labelledby="confirm-title" {
                h2 #confirm-title { "What will happen" }
                p.sentence #sentence { (self.sentence) }
                @if self.is_final { p { b { "This cannot be undone." } } }
                (self.details)
                form method="post" action=(self.path) {
                    (token_field(self.token))
                    (self.values.hidden())
                    div.buttons {
                        (step_button(Step::Confirm, self.button, if self.is_final { "danger" } else { "main" }))
                        @if self.has_form { (step_button(Step::Edit, "Back to the form", "other")) }
                        a.button.other href=(self.back) { "Cancel" }
                    }
                }
            }
        }
    }
}
