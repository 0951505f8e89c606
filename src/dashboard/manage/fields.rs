//! The fields of forms. A table of fields has one way to HTML, one to the body for the API, and one
//! from the errors of the API back to the fields.

use axum::http::StatusCode;
use dueling_bandits::PolicySpec;
use interleaving::Method;
use maud::{Markup, PreEscaped, html};
use serde_json::{Map, Value, json};

use super::super::layout::{capitalized, with_code};
use super::form::{Errors, Step, Values, step_button};
use super::{metric_rows, numbers, policies};
use crate::http::extract::{UniqueKeys, without_place};
use crate::http::problem::{Problem, ProblemKind};

/// The explanation of a version that is not the newest.
const STALE: &str = "The experiment has changed since you opened this page, so this form changed nothing. If you \
    sent it twice, the first one was enough: see the history. The page now shows the present state. \
    Send it again if you still want the change.";

/// A field, which is a member of the body of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub name: &'static str,
    /// The place of its value in the body, as a JSON pointer of one or two parts. With a slash at
    /// the end, the value is an object, and its members are added to the object at that place.
    pub pointer: &'static str,
    pub kind: Kind,
    pub label: &'static str,
    pub help: &'static str,
}

/// A table of fields, each as `name: Kind, "/pointer", "label", "help";`.
macro_rules! fields {
    ($($name:ident: $kind:ident $(($options:expr))?, $pointer:literal, $label:literal, $help:literal;)*) => {
        [$(Field {
            name: stringify!($name),
            pointer: $pointer,
            kind: Kind::$kind $(($options))?,
            label: $label,
            help: $help,
        }),*]
    };
}
pub(super) use fields;

/// How a value is written. An empty one is left out of the body, unless its kind says otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A line of text, which is in the body even if it is empty.
    Text,
    Optional,
    Number,
    /// A number that can be written in percent.
    Share,
    /// One of these, each with its text.
    Choice(&'static [(&'static str, &'static str)]),
    /// Any of these, each with its text. The list is in the body even if it is empty.
    Checks(&'static [(&'static str, &'static str)]),
    /// An active ranker of the experiment.
    Ranker,
    /// Whether an experiment concludes by itself: an object for its members, or `never`.
    Conclusion,
    Policy,
    /// Parameters of a policy: `name=value, name=value`.
    Parameters,
    Method,
    /// Names between spaces or commas.
    Names,
    /// A list with one entry on a line.
    Lines,
    /// A list with commas or line breaks between its entries.
    Labels,
    /// The same with two entries.
    Pair,
    /// Rankers, one on a line, with descriptions after `|`. The list is in the body even if it is
    /// empty.
    Rankers,
    /// A row for each metric.
    Metrics,
    Json,
}

const CONCLUSION: [(&str, &str); 2] =
    [("verdict", "yes, at the verdict or a limit"), ("never", "no, I conclude it")];

/// The body that these fields describe. A value that cannot be read is an error of its field.
pub(super) fn body(fields: &[Field], values: &Values, errors: &mut Errors) -> Map<String, Value> {
    let mut body = Map::new();
    for field in fields {
        let placed = field.value(values).and_then(|value| match value {
            Some(value) => field.place(value, &mut body),
            None => Ok(()),
        });
        if let Err(detail) = placed {
            errors.add(field.name, field.label, detail);
        }
    }
    body
}

/// The field of an error at this place of the body: the one whose pointer is the longest prefix, or
/// else the first field below that place.
pub(super) fn of_pointer<'a>(fields: &'a [Field], pointer: &str) -> Option<&'a Field> {
    let enclosing = fields.iter().filter(|field| pointer.starts_with(field.pointer));
    let is_inside = |field: &&Field| !pointer.is_empty() && field.pointer.starts_with(pointer);
    let inside = || fields.iter().find(is_inside);
    enclosing.max_by_key(|field| field.pointer.len()).or_else(inside)
}

impl Errors {
    /// Add the errors of a problem, beside the fields that they are about, except those whose value
    /// could not be read. Returns the status of the problem.
    pub fn add_problem(&mut self, problem: &Problem, fields: &[Field]) -> StatusCode {
        let known = problem.errors().iter().filter_map(|error| {
            let pointer = error.pointer.as_deref()?;
            let field = of_pointer(fields, pointer)?;
            Some((
                field,
                match field.kind {
                    Kind::Metrics => metric_rows::named(pointer, &error.detail),
                    _ => error.detail.clone(),
                },
            ))
        });
        let known: Vec<_> =
            known.filter(|(field, _)| self.of(field.name).next().is_none()).collect();
        if known.is_empty() && self.is_empty() {
            let is_stale = problem.kind() == ProblemKind::PreconditionFailed;
            self.add_whole(if is_stale { STALE } else { problem.detail() });
        }
        for (field, detail) in known {
            self.add(field.name, field.label, detail);
        }
        problem.kind().status()
    }
}

impl Field {
    /// Its value in a form; `None` if it is left out.
    fn value(&self, values: &Values) -> Result<Option<Value>, String> {
        let text = values.get(self.name);
        let labels = || text.split([',', '\n']).map(str::trim).filter(|label| !label.is_empty());
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(Some(match self.kind {
            Kind::Text | Kind::Ranker | Kind::Policy | Kind::Method => text.into(),
            Kind::Checks(_) => values.all(self.name).collect(),
            Kind::Metrics => return metric_rows::read(values),
            Kind::Rankers => lines().map(ranker).collect(),
            Kind::Conclusion if text == "never" => text.into(),
            Kind::Conclusion => json!({}),
            _ if text.is_empty() => return Ok(None),
            Kind::Optional | Kind::Choice(_) => text.into(),
            Kind::Number => Value::Number(numbers::read(text, false)?),
            Kind::Share => Value::Number(numbers::read(text, true)?),
            Kind::Parameters => {
                let parameters = PolicySpec::parameters_from_text(text);
                parameters.map_err(|error| error.detail)?.into()
            }
            Kind::Names => {
                text.split([',', ' ']).filter(|name| !name.is_empty()).map(Value::from).collect()
            }
            Kind::Lines => lines().map(Value::from).collect(),
            Kind::Labels => labels().map(Value::from).collect(),
            Kind::Pair => match labels().collect::<Vec<_>>()[..] {
                [one, other] => json!([one, other]),
                ref all => {
                    return Err(format!(
                        "write two ids with a comma between them, not {}",
                        all.len()
                    ));
                }
            },
            // no object: refused where it is placed
            Kind::Json if !text.starts_with('{') => Value::Null,
            Kind::Json => {
                let UniqueKeys(members) = serde_json::from_str(text)
                    .map_err(|error| format!("write JSON: {}", without_place(&error)))?;
                Value::Object(members.into_iter().collect())
            }
        }))
    }

    /// Put its value in its place in the body. It is left out where the parent is no object, but
    /// `never`.
    fn place(&self, value: Value, body: &mut Map<String, Value>) -> Result<(), String> {
        let Some((parent, member)) = self.pointer[1..].split_once('/') else {
            body.insert(self.pointer[1..].into(), value);
            return Ok(());
        };
        let parent = body.entry(parent).or_insert_with(|| json!({}));
        let Value::Object(parent) = parent else { return Ok(()) };
        match value {
            value if !member.is_empty() => drop(parent.insert(member.into(), value)),
            Value::Object(members) => {
                for (name, value) in members {
                    if parent.contains_key(&name) {
                        return Err(format!("`{name}` has a field of its own; choose it above"));
                    }
                    parent.insert(name, value);
                }
            }
            _ => return Err("write a JSON object, in braces".into()),
        }
        Ok(())
    }
}

/// The ranker that a line describes.
fn ranker(line: &str) -> Value {
    match line.split_once('|') {
        Some((id, description)) => json!({"id": id.trim(), "description": description.trim()}),
        None => line.into(),
    }
}

/// Fields as HTML, with values and errors.
pub(super) struct Form<'a> {
    pub values: &'a Values,
    pub errors: &'a Errors,
    /// Ids of the rankers to choose from.
    pub rankers: &'a [&'a str],
}

impl Form<'_> {
    /// Fields one below the other, and numbers side by side.
    pub fn fields(&self, fields: &[Field]) -> Markup {
        let is_number = |field: &Field| matches!(field.kind, Kind::Number | Kind::Share);
        html! {
            @for group in fields.chunk_by(|one, next| is_number(one) && is_number(next)) {
                @if let [field] = group { (self.field(field)) }
                @else { div.pair { @for field in group { (self.field(field)) } } }
            }
        }
    }

    /// Fields that are folded away as long as they have these values and no errors.
    pub fn folded(&self, summary: &str, fields: &[Field], initial: &Values) -> Markup {
        let differs = |field: &Field| match field.kind {
            Kind::Metrics => !metric_rows::is_empty(self.values),
            _ => self.values.get(field.name) != initial.get(field.name),
        };
        let is_open = fields.iter().any(|field| differs(field) || self.is_wrong(field));
        html! { details.more open[is_open] { summary { (summary) } (self.fields(fields)) } }
    }

    fn field(&self, field: &Field) -> Markup {
        let Field { name, label, .. } = *field;
        let help = html! {
            div #(described(name)) {
                p.help { (with_code(field.help)) }
                @for error in self.errors.of(name) { p.wrong { (with_code(&capitalized(error))) } }
            }
        };
        if let Kind::Checks(options) = field.kind {
            return html! {
                fieldset.field #{ "f-" (name) } tabindex="-1" aria-describedby=(described(name)) {
                    legend { (label) }
                    (help)
                    @for (value, text) in options {
                        label.check {
                            input type="checkbox" name=(name) value=(value) checked[self.values.has(name, value)];
                            span { code { (value) } " " (text) }
                        }
                    }
                }
            };
        }
        if let Kind::Metrics = field.kind {
            return html! {
                fieldset.field #{ "f-" (name) } tabindex="-1" aria-describedby=(described(name)) {
                    legend { (label) } (help) (metric_rows::table(self.values))
                    (step_button(Step::Edit, "More rows", "other"))
                }
            };
        }
        html! {
            div.field { label for={ "f-" (name) } { (label) } (help) (self.control(field)) }
            @if let Kind::Parameters = field.kind { (policies::guide()) }
        }
    }

    fn control(&self, field: &Field) -> Markup {
        let options = match field.kind {
            Kind::Choice(options) => options.to_vec(),
            Kind::Conclusion => CONCLUSION.to_vec(),
            Kind::Policy => PolicySpec::KINDS.iter().map(|(kind, _)| (*kind, *kind)).collect(),
            Kind::Method => Method::KINDS.map(|(kind, _)| (kind, kind)).to_vec(),
            Kind::Ranker => self.rankers.iter().map(|id| (*id, *id)).collect(),
            Kind::Lines | Kind::Labels | Kind::Rankers | Kind::Json => return self.area(field),
            _ => return self.input(field),
        };
        self.select(field, &options)
    }

    fn input(&self, field: &Field) -> Markup {
        let Field { name, kind, .. } = *field;
        let mode = matches!(kind, Kind::Number | Kind::Share).then_some("decimal");
        html! {
            input #{ "f-" (name) } name=(name) type="text" value=(self.values.get(name)) autocomplete="off"
                spellcheck="false" autocapitalize="none" inputmode=[mode] aria-describedby=(described(name))
                aria-invalid=[self.invalid(field)];
        }
    }

    fn area(&self, field: &Field) -> Markup {
        let name = field.name;
        let rows = if matches!(field.kind, Kind::Rankers) { "6" } else { "3" };
        // The first line break of the content is dropped by HTML.
        html! {
            textarea #{ "f-" (name) } name=(name) rows=(rows) spellcheck="false" autocapitalize="none"
                aria-describedby=(described(name)) aria-invalid=[self.invalid(field)]
                { (PreEscaped("\n")) (self.values.all(name).next().unwrap_or_default()) }
        }
    }

    fn select(&self, field: &Field, options: &[(&str, &str)]) -> Markup {
        let (name, chosen) = (field.name, self.values.get(field.name));
        html! {
            select #{ "f-" (name) } name=(name) aria-describedby=(described(name)) aria-invalid=[self.invalid(field)] {
                @for (value, text) in options {
                    option value=(value) selected[*value == chosen] { (text) }
                }
            }
        }
    }

    fn is_wrong(&self, field: &Field) -> bool {
        self.errors.of(field.name).next().is_some()
    }

    fn invalid(&self, field: &Field) -> Option<&'static str> {
        self.is_wrong(field).then_some("true")
    }
}

fn described(name: &str) -> String {
    format!("h-{name}")
}
