//! Submissions of forms: their steps, values and errors.

use maud::{Markup, html};

use super::super::layout::{capitalized, with_code};

pub(super) const FORM_TOKEN: &str = "form_token";
/// The name under which a form says which step it takes.
pub(super) const STEP: &str = "step";

/// The request of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// To see what will happen.
    Review,
    /// To change the values once more.
    Edit,
    /// To make the change.
    Confirm,
}

impl Step {
    pub fn name(self) -> &'static str {
        match self {
            Self::Review => "review",
            Self::Edit => "edit",
            Self::Confirm => "confirm",
        }
    }
}

/// A button that takes a step.
pub(super) fn step_button(step: Step, text: &str, class: &str) -> Markup {
    html! { button.(class) type="submit" name=(STEP) value=(step.name()) { (text) } }
}

/// The button that Enter in a field presses: the first of a form, unseen.
pub(super) fn default_button(step: Step) -> Markup {
    html! { button hidden tabindex="-1" type="submit" name=(STEP) value=(step.name()) {} }
}

/// The values of a form, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values(Vec<(String, String)>);

impl Values {
    /// The values in the body of a submission.
    pub fn parse(body: &[u8]) -> Self {
        Self(form_urlencoded::parse(body).into_owned().collect())
    }

    pub fn of(values: &[(&str, &str)]) -> Self {
        Self(values.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    /// The first value of a field, without spaces around it; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.trim())
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn has(&self, name: &str, value: &str) -> bool {
        self.all(name).any(|own| own == value)
    }

    /// The same with another value of a field.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.retain(|(own, _)| own != name);
        self.0.push((name.into(), value.into()));
        self
    }

    pub fn step(&self) -> Step {
        let of = |step: &Step| step.name() == self.get(STEP);
        [Step::Confirm, Step::Edit].into_iter().find(of).unwrap_or(Step::Review)
    }

    /// The values as hidden fields, without those of every form.
    pub fn hidden(&self) -> Markup {
        let own = |(name, _): &&(String, String)| ![FORM_TOKEN, STEP, "version"].contains(&&**name);
        html! {
            @for (name, value) in self.0.iter().filter(own) {
                input type="hidden" name=(name) value=(value);
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Errors {
    whole: Vec<String>,
    fields: Vec<FieldFault>,
}

/// An error of a field, by its name and its label.
#[derive(Debug, Clone, PartialEq)]
struct FieldFault {
    name: &'static str,
    label: &'static str,
    detail: String,
}

impl Errors {
    pub fn add(&mut self, name: &'static str, label: &'static str, detail: impl Into<String>) {
        let error = FieldFault { name, label, detail: detail.into() };
        if !self.fields.contains(&error) {
            self.fields.push(error);
        }
    }

    /// Add an error that is not about one field.
    pub fn add_whole(&mut self, sentence: impl Into<String>) {
        self.whole.push(sentence.into());
    }

    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.fields.is_empty()
    }

    pub fn of<'a>(&'a self, field: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |it| it.name == field).map(|it| it.detail.as_str())
    }

    /// Errors of the whole form, and the number of fields with errors.
    pub fn summary(&self) -> Markup {
        html! {
            @if !self.is_empty() {
                div.alarm #errors role="alert" {
                    @for sentence in &self.whole { p { (with_code(sentence)) } }
                    @if !self.fields.is_empty() {
                        p { "Nothing was changed. Please correct:" }
                        ul { @for FieldFault { name, label, detail } in &self.fields {
                            li { a href={ "#f-" (name) } { (label) ": " (with_code(&capitalized(detail))) } }
                        } }
                    }
                }
            }
        }
    }
}
