//! Schemas of types that come from crates without schemas, and of types whose own derivation would
//! describe them in a way that clients cannot use. That of a policy is made from the registry of
//! policies.
#![expect(dead_code, reason = "describes JSON that other types read and write")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use dueling_bandits::PolicySpec;
use dueling_bandits::parameters::{Parameter, Values};
use interleaving::DepthPolicy;
use interleaving::methods::team_draft::Shared;
use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, KnownFormat, SchemaFormat, SchemaType};
use utoipa::openapi::{Object, ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use rankduel_engine::experiment_spec::Ranker;

/// A remark on a page with optimized interleaving.
#[derive(Debug, ToSchema)]
pub(crate) struct Note {
    kind: NoteKind,
    /// With `relaxed`: the largest remaining bias, as the mean credit of the worst position.
    #[schema(nullable = false)]
    bias: Option<f64>,
}

/// The remark.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoteKind {
    Relaxed,
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

/// A ranker: its id, or an object.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub(crate) enum RankerBody {
    /// The id.
    Id(String),
    /// The id and a description.
    Object(Ranker),
}

/// How two rankings are combined into one page: the method, and parameters of the method where they
/// differ from their defaults. `docs/interleaving.md` compares the methods.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Interleaving {
    kind: Method,
    /// Of `team-draft`: how documents in both rankings are credited.
    #[schema(nullable = false)]
    shared: Option<Shared>,
    /// How clicks are credited. Of `balanced`: `published` or `debiased`; `published` by default.
    /// Of `probabilistic`: `more-clicks` or `expected-clicks`. Of `optimized`: `inverse`, `linear`
    /// or `binary`.
    #[schema(nullable = false)]
    credit: Option<Credit>,
    /// Of `probabilistic`: how strongly the top of a ranking is preferred; 3 by default.
    #[schema(exclusive_minimum = 0.0, maximum = 10.0, nullable = false)]
    tau: Option<f64>,
    /// Of `optimized`: number of positions that are optimized and credited; 10 by default.
    #[schema(minimum = 1, maximum = 10, nullable = false)]
    depth: Option<u32>,
    /// Of `optimized`: maximum number of lists in the linear program; 1024 by default.
    #[schema(minimum = 1, maximum = 1024, nullable = false)]
    max_lists: Option<u32>,
    /// How the outcome follows from the credit; `sign` by default, and `score` with `probabilistic`
    /// and `optimized`.
    #[schema(nullable = false)]
    verdict: Option<CreditVerdict>,
    #[schema(nullable = false)]
    depth_policy: Option<DepthPolicy>,
    #[schema(nullable = false)]
    click_weights: Option<ClickWeights>,
}

/// A method of interleaving.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    TeamDraft,
    Balanced,
    Probabilistic,
    Optimized,
}

/// How clicks are credited.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Credit {
    Published,
    Debiased,
    MoreClicks,
    ExpectedClicks,
    Inverse,
    Linear,
    Binary,
}

/// How an outcome follows from the credit of the two sides.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CreditVerdict {
    Sign,
    Drawn,
    Score,
}

/// The weight of a click is the sum of the weights of its features. It multiplies the weight of the
/// event.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClickWeights {
    /// By position from the top; the last one holds for all positions below. All 1 by default.
    #[schema(nullable = false, min_items = 10, max_items = 10)]
    positions: Option<Vec<u8>>,
    /// Added for the highest click of the page; 0 by default.
    #[schema(nullable = false, maximum = 100)]
    highest: Option<u8>,
    /// For the lowest click; 0 by default.
    #[schema(nullable = false, maximum = 100)]
    lowest: Option<u8>,
    /// For a click that is the only one; 0 by default.
    #[schema(nullable = false, maximum = 100)]
    only: Option<u8>,
}
