//! Forms: their values, their errors, and their fields as HTML.

use axum::http::StatusCode;
use maud::{Markup, PreEscaped, html};
use serde_json::{Number, Value};

use super::super::layout::with_code;
use super::super::session::FORM_TOKEN;
use crate::http::problem::{FieldError, Problem, ProblemKind};

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

/// The explanation of a version that is not the newest.
pub(super) const STALE: &str = "Somebody has changed the experiment since you opened this page, so nothing was changed. \
    The page now shows its present state. Send it again if you still want the change.";

/// The values of a form, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values(Vec<(String, String)>);

impl Values {
    /// The values in the body of a submission.
    pub fn parse(body: &[u8]) -> Self {
        Self(form_urlencoded::parse(body).into_owned().collect())
    }

    /// These values.
    pub fn of(values: &[(&str, &str)]) -> Self {
        Self(values.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    /// The first value of a field, without spaces around it; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.trim())
    }

    /// All values of a field.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Whether a field has this value.
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

    /// A number; `None` if the field is empty or is no number, which is an error then.
    pub fn number(&self, name: &'static str, errors: &mut Errors) -> Option<Value> {
        let text = self.get(name);
        if text.is_empty() {
            return None;
        }
        let number: Option<Number> = serde_json::from_str(text).ok();
        if number.is_none() {
            errors.add(name, "write a number with digits, such as 7 or 0.95");
        }
        number.map(Value::Number)
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

/// The errors of a form.
#[derive(Debug, Clone, Default)]
pub(crate) struct Errors {
    whole: Vec<String>,
    fields: Vec<(&'static str, String)>,
}

impl Errors {
    pub fn add(&mut self, field: &'static str, detail: impl Into<String>) {
        self.fields.push((field, detail.into()));
    }

    /// Add an error that is not about one field.
    pub fn add_whole(&mut self, sentence: impl Into<String>) {
        self.whole.push(sentence.into());
    }

    /// Add the errors of a problem. `fields` has the field for each start of a JSON pointer; the
    /// first one counts.
    /// Returns the status of the problem.
    pub fn add_problem(
        &mut self,
        problem: &Problem,
        fields: &[(&str, &'static str)],
    ) -> StatusCode {
        let mut found = false;
        if problem.kind() == ProblemKind::PreconditionFailed {
            self.add_whole(STALE);
            found = true;
        }
        for error in problem.errors() {
            let FieldError::Body { pointer, detail } = error else { continue };
            let field = fields.iter().find(|(start, _)| pointer.starts_with(start));
            if let Some((_, field)) = field {
                self.add(field, detail.clone());
                found = true;
            }
        }
        if !found {
            self.add_whole(problem.detail());
        }
        problem.kind().status()
    }

    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.fields.is_empty()
    }

    /// Whether this field has an error.
    pub fn has(&self, field: &str) -> bool {
        self.of(field).next().is_some()
    }

    fn of<'a>(&'a self, field: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(own, _)| *own == field).map(|(_, detail)| detail.as_str())
    }

    /// Errors of the whole form, and the number of fields with errors.
    pub fn summary(&self) -> Markup {
        html! {
            @if !self.is_empty() {
                div.alarm #errors role="alert" {
                    @for sentence in &self.whole { p { (with_code(sentence)) } }
                    @if !self.fields.is_empty() {
                        p { "Nothing was changed. Please correct:" }
                        ul { @for (field, detail) in &self.fields {
                            li { a href={ "#f-" (field) } { (with_code(&capitalized(detail))) } }
                        } }
                    }
                }
            }
        }
    }
}

/// A form's fields, with values and errors.
pub(crate) struct Fields<'a> {
    pub values: &'a Values,
    pub errors: &'a Errors,
}

impl Fields<'_> {
    /// A line of text.
    pub fn text(&self, name: &str, label: &str, help: &str) -> Markup {
        self.input(name, label, help, None)
    }

    /// A number.
    pub fn number(&self, name: &str, label: &str, help: &str) -> Markup {
        self.input(name, label, help, Some("decimal"))
    }

    fn input(&self, name: &str, label: &str, help: &str, mode: Option<&str>) -> Markup {
        self.field(name, label, help, &html! {
            input #{ "f-" (name) } name=(name) type="text" value=(self.values.get(name)) autocomplete="off"
                spellcheck="false" autocapitalize="none" inputmode=[mode] aria-describedby=(described(name))
                aria-invalid=[self.is_wrong(name)];
        })
    }

    /// Several lines of text.
    pub fn lines(&self, name: &str, label: &str, help: &str) -> Markup {
        // The first line break of the content is dropped by HTML.
        let text = self.values.all(name).next().unwrap_or_default();
        self.field(name, label, help, &html! {
            textarea #{ "f-" (name) } name=(name) rows="6" spellcheck="false" autocapitalize="none"
                aria-describedby=(described(name)) aria-invalid=[self.is_wrong(name)] { (PreEscaped("\n")) (text) }
        })
    }

    /// One of these values, each with its text.
    pub fn select(&self, name: &str, label: &str, help: &str, options: &[(&str, &str)]) -> Markup {
        let chosen = self.values.get(name);
        self.field(name, label, help, &html! {
            select #{ "f-" (name) } name=(name) aria-describedby=(described(name)) aria-invalid=[self.is_wrong(name)] {
                @for (value, text) in options {
                    option value=(value) selected[*value == chosen] { (text) }
                }
            }
        })
    }

    /// Any of these values, each with its text.
    pub fn checks(&self, name: &str, label: &str, help: &str, options: &[(&str, &str)]) -> Markup {
        html! {
            fieldset.field #{ "f-" (name) } tabindex="-1" aria-describedby=(described(name)) {
                legend { (label) }
                (self.help(name, help))
                @for (value, text) in options {
                    label.check {
                        input type="checkbox" name=(name) value=(value) checked[self.values.has(name, value)];
                        span { code { (value) } " " (text) }
                    }
                }
            }
        }
    }

    fn field(&self, name: &str, label: &str, help: &str, control: &Markup) -> Markup {
        html! {
            div.field {
                label for={ "f-" (name) } { (label) }
                (self.help(name, help))
                (control)
            }
        }
    }

    fn help(&self, name: &str, help: &str) -> Markup {
        html! {
            div #(described(name)) {
                p.help { (help) }
                @for error in self.errors.of(name) { p.wrong { (with_code(&capitalized(error))) } }
            }
        }
    }

    fn is_wrong(&self, name: &str) -> Option<&'static str> {
        self.errors.has(name).then_some("true")
    }
}

/// The id of the text that describes a field.
fn described(name: &str) -> String {
    format!("h-{name}")
}

/// An error as a sentence.
fn capitalized(detail: &str) -> String {
    let mut letters = detail.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}
