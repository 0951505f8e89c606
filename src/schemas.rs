//! Schemas of types from the pure crates that requests and reports share. That of a policy is made
//! from the registry of policies.

use std::borrow::Cow;

use dueling_bandits::PolicySpec;
use dueling_bandits::parameters::{Description, Parameter, Values};
use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, KnownFormat, SchemaFormat, SchemaType};
use utoipa::openapi::{Object, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema, Type};
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

/// Schema of a policy: one component for each kind, with exactly its parameters.
pub(crate) struct PolicySchema;

impl PartialSchema for PolicySchema {
    fn schema() -> RefOr<Schema> {
        let kinds = PolicySpec::KINDS.iter().fold(OneOfBuilder::new(), |kinds, (kind, _)| {
            kinds.item(RefOr::Ref(Ref::from_schema_name(component_name(kind))))
        });
        kinds
            .description(Some(
                "A policy: its kind, and parameters where they differ from their defaults.",
            ))
            .into()
    }
}

impl ToSchema for PolicySchema {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("PolicySpec")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.extend(
            PolicySpec::KINDS
                .iter()
                .map(|(kind, about)| (component_name(kind), policy(kind, about).into())),
        );
    }
}

/// The component of `d-ts-plus` is `DTsPlusPolicy`.
fn component_name(kind: &str) -> String {
    let capitalised = kind.split('-').map(|part| {
        let (first, rest) = part.split_at(1);
        first.to_uppercase() + rest
    });
    capitalised.collect::<String>() + "Policy"
}

fn policy(kind: &str, about: &Description) -> Object {
    let tag = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([kind]));
    let start = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(about.summary))
        .property("kind", tag)
        .required("kind")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    let described = about.parameters.iter().fold(start, |policy, parameter| {
        let policy = policy.property(parameter.name, value_of(parameter));
        if parameter.default.is_none() { policy.required(parameter.name) } else { policy }
    });
    described.build()
}

/// The schema of a parameter. A default in words depends on other parameters; such a parameter can
/// also be `null`. Defaults are in the description alone: generated clients would send a `default`
/// of the schema, also where the service would have chosen another value.
fn value_of(parameter: &Parameter) -> Object {
    let (kind, format, names) = match parameter.values {
        Values::Number => (Type::Number, Some(KnownFormat::Double), None),
        Values::Integer => (Type::Integer, Some(KnownFormat::Int64), None),
        Values::Boolean => (Type::Boolean, None, None),
        Values::OneOf(names) => (Type::String, None, Some(names)),
    };
    let or_null = parameter.default.is_some_and(|text| match names {
        Some(names) => !names.contains(&text),
        None => serde_json::from_str::<Value>(text).is_err(),
    });
    let default = parameter.default.map(|text| format!(" Default: {text}."));
    let meaning = parameter.meaning.to_owned() + &default.unwrap_or_default();
    let types =
        if or_null { SchemaType::from_iter([kind, Type::Null]) } else { SchemaType::new(kind) };
    let names = names.map(|names| {
        let null = or_null.then_some(Value::Null);
        names.iter().map(|name| Value::from(*name)).chain(null).collect::<Vec<_>>()
    });
    ObjectBuilder::new()
        .schema_type(types)
        .format(format.map(SchemaFormat::KnownFormat))
        .description(Some(meaning))
        .minimum((parameter.values == Values::Integer).then_some(0))
        .enum_values(names)
        .build()
}
