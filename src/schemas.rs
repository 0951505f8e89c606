//! Schemas of types from the pure crates that requests and reports share. That of a policy is made
//! from the registry of policies.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dueling_bandits::PolicySpec;
use dueling_bandits::parameters::{Parameter, Values};
use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, KnownFormat, SchemaFormat, SchemaType};
use utoipa::openapi::{Object, ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The claim that an experiment proves first.
#[expect(dead_code, reason = "describes JSON that another type reads and writes")]
#[derive(Debug, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    /// Which ranker is best. Afterwards the winner meets the control.
    Best,
    /// That a ranker is better than the control: most pages show a candidate and the control.
    Improve,
}

/// A remark on a page with optimized interleaving.
#[expect(dead_code, reason = "describes JSON that another type writes")]
#[derive(Debug, ToSchema)]
pub(crate) struct Note {
    kind: NoteKind,
    /// With `relaxed`: the largest remaining bias, as the mean credit of the worst position.
    #[schema(nullable = false)]
    bias: Option<f64>,
}

/// The remark.
#[expect(dead_code, reason = "describes JSON that another type writes")]
#[derive(Debug, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoteKind {
    /// No distribution over the lists is unbiased.
    Relaxed,
    /// There were too many lists, or the linear program was not solved. Team draft was used
    /// instead.
    FellBack,
}

/// Schema of a policy: one object with the parameters of all kinds. A choice of one object for each
/// kind would say more, but most clients that are generated from it cannot read an answer.
pub(crate) struct PolicySchema;

impl PartialSchema for PolicySchema {
    fn schema() -> RefOr<Schema> {
        let kinds = PolicySpec::KINDS.iter();
        let summaries: Vec<_> =
            kinds.clone().map(|(kind, about)| format!("`{kind}`: {}", about.summary)).collect();
        let kind = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(summaries.join("\n\n")))
            .enum_values(Some(kinds.map(|(kind, _)| *kind)));
        let start = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(
                "A policy: its kind, and parameters of the kind where they differ from their \
                 defaults.",
            ))
            .property("kind", kind)
            .required("kind")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
        let described = parameters()
            .into_iter()
            .fold(start, |policy, (name, meanings)| policy.property(name, value_of(&meanings)));
        described.build().into()
    }
}

impl ToSchema for PolicySchema {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("PolicySpec")
    }
}

/// One meaning of a parameter, and the kinds of policies where it has it.
type Meaning = (Vec<&'static str>, &'static Parameter);

/// The parameters of all policies by name.
fn parameters() -> BTreeMap<&'static str, Vec<Meaning>> {
    let mut found = BTreeMap::<_, Vec<Meaning>>::new();
    for (kind, about) in PolicySpec::KINDS {
        for parameter in about.parameters {
            let meanings = found.entry(parameter.name).or_default();
            match meanings.iter_mut().find(|(_, known)| known == &parameter) {
                Some((kinds, _)) => kinds.push(kind),
                None => meanings.push((vec![kind], parameter)),
            }
        }
    }
    found
}

/// The schema of a parameter. A default in words depends on other parameters; such a parameter can
/// also be `null`. Defaults are in the description alone: generated clients would send a `default`
/// of the schema, also where the service would have chosen another value.
fn value_of(meanings: &[Meaning]) -> Object {
    let (kind, format, names) = match meanings[0].1.values {
        Values::Number => (Type::Number, Some(KnownFormat::Double), None),
        Values::Integer => (Type::Integer, Some(KnownFormat::Int64), None),
        Values::Boolean => (Type::Boolean, None, None),
        Values::OneOf(names) => (Type::String, None, Some(names)),
    };
    let or_null =
        meanings.iter().filter_map(|(_, parameter)| parameter.default).any(|text| match names {
            Some(names) => !names.contains(&text),
            None => serde_json::from_str::<Value>(text).is_err(),
        });
    let described = meanings.iter().map(|(kinds, parameter)| {
        let default =
            parameter.default.map_or("Required.".into(), |text| format!("Default: {text}."));
        format!("Of `{}`: {} {default}", kinds.join("`, `"), parameter.meaning)
    });
    let types = if or_null {
        SchemaType::from_iter([kind.clone(), Type::Null])
    } else {
        SchemaType::new(kind.clone())
    };
    let names = names.map(|names| {
        let null = or_null.then_some(Value::Null);
        names.iter().map(|name| Value::from(*name)).chain(null).collect::<Vec<_>>()
    });
    ObjectBuilder::new()
        .schema_type(types)
        .format(format.map(SchemaFormat::KnownFormat))
        .description(Some(described.collect::<Vec<_>>().join("\n\n")))
        .minimum((kind == Type::Integer).then_some(0))
        .enum_values(names)
        .build()
}
