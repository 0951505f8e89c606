//! The OpenAPI document: the parts that the annotations of the handlers do not contain.
//!
//! The security requirement and the error responses of an operation come from its row in the table
//! of operations.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde_json::{Value, json};
use utoipa::ToSchema as _;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Required, Response, ResponseBuilder};

use super::problem::{FieldError, PROBLEM_JSON, ProblemDocument, ProblemKind};
use super::yaml_text;
use rankduel_engine::access::Scope;

/// The document that the resources are added to.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "rankduel",
        description = "Online ranker evaluation with dueling bandits.\n\n\
            A search backend with several versions of its ranking requests a duel for each query, \
            shows the interleaved page and reports the clicks. rankduel finds the best ranker \
            while showing as few bad pages as possible.\n\n\
            Every error response is `application/problem+json` (RFC 9457). Its `type` identifies the \
            kind of problem and is the path of a page that explains it.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/", description = "This server")),
    components(schemas(ProblemDocument, FieldError)),
    security(("key" = []), ()),
    tags(
        (name = "experiments", description = "A named tournament among rankers, with one policy."),
        (name = "duels", description = "The two calls of the hot path: request the two rankers to \
            interleave, and report the clicks."),
        (name = "results", description = "What is known so far, and what it has cost."),
        (name = "batches", description = "For policies that commit to many comparisons at once."),
        (name = OPERATIONS_TAG, description = "Probes, metrics and the audit log.")
    )
)]
pub(crate) struct ApiDoc;

/// The tag of the operations for the server's operator.
pub(crate) const OPERATIONS_TAG: &str = "operations";

/// The description as YAML.
pub fn yaml(openapi: &OpenApi) -> anyhow::Result<String> {
    let mut document =
        serde_json::to_value(openapi).context("the description cannot be written")?;
    shorten(&mut document);
    Ok(yaml_text::write(&document))
}

/// Join the lines of each paragraph of a description: they are the lines of a comment. Remove
/// `propertyNames` that only say that keys are strings, as in all JSON.
fn shorten(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.get("propertyNames") == Some(&json!({"type": "string"})) {
                members.remove("propertyNames");
            }
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "description" => {
                        let paragraphs = text.split("\n\n").map(|lines| lines.replace('\n', " "));
                        *text = paragraphs.collect::<Vec<_>>().join("\n\n");
                    }
                    member => shorten(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// Add to an operation the access that it needs, the parameters that many operations have, and a
/// reference to a shared response for each status of its problems.
pub(super) fn complete(
    operation: &mut Operation,
    path: &str,
    scope: Option<Scope>,
    problems: &[ProblemKind],
) {
    operation.security = Some(match scope {
        None => Vec::new(),
        // A server without keys accepts requests without one.
        Some(scope) => {
            vec![SecurityRequirement::new("key", [scope.name()]), SecurityRequirement::default()]
        }
    });
    // A body that may be left out may also be `null`, which generators of clients cannot read.
    let contents = match &mut operation.request_body {
        Some(RefOr::T(body)) => body.content.values_mut().collect(),
        _ => Vec::new(),
    };
    for content in contents {
        if let RefOr::T(content) = content
            && let Some(RefOr::T(Schema::OneOf(forms))) = &content.schema
            && let [form @ RefOr::Ref(_), _] | [_, form @ RefOr::Ref(_)] = &*forms.items
        {
            content.schema = Some(form.clone());
        }
    }
    if path.contains("{name}") {
        let name = RefOr::Ref(Ref::new("#/components/parameters/name"));
        operation.parameters.get_or_insert_default().insert(0, name);
    }
    if operation.responses.responses.contains_key("304") {
        let tag = RefOr::Ref(Ref::new("#/components/parameters/if-none-match"));
        operation.parameters.get_or_insert_default().push(tag);
    }
    for (status, kinds) in by_status(problems) {
        let reference = RefOr::Ref(Ref::from_response_name(response_name(&kinds)));
        operation.responses.responses.insert(status, reference);
    }
}

/// Add the security scheme, and the shared parameters and responses that operations with these
/// problems refer to.
pub(super) fn add_shared_components<'a>(
    openapi: &mut OpenApi,
    problems: impl Iterator<Item = &'a [ProblemKind]>,
) {
    let shared = problems.flat_map(by_status);
    let responses = shared.map(|(_, kinds)| (response_name(&kinds), RefOr::T(response(&kinds))));
    let components = openapi.components.get_or_insert_default();
    components.responses.extend(responses);
    let mut http = Http::new(HttpAuthScheme::Bearer);
    http.description = Some(
        "An API key with the scope listed for the operation; `admin` includes every scope. A server \
         without keys accepts requests without one."
            .to_owned(),
    );
    components.add_security_scheme("key", SecurityScheme::Http(http));
    let parameter = |name: &str, within, required, description: &str| {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(within)
            .required(required)
            .description(Some(description))
            .schema(Some(Object::with_type(Type::String)));
        (name.to_owned(), RefOr::T(parameter.build()))
    };
    components.parameters.extend([
        parameter("name", ParameterIn::Path, Required::True, "Name of the experiment."),
        parameter(
            "if-none-match",
            ParameterIn::Header,
            Required::False,
            "`ETag` of the response that the caller has.",
        ),
    ]);
}

/// The problems of each status. Those of every operation are its default.
fn by_status(problems: &[ProblemKind]) -> BTreeMap<String, Vec<ProblemKind>> {
    let mut by_status: BTreeMap<String, Vec<ProblemKind>> = BTreeMap::new();
    for kind in problems.iter().filter(|kind| !is_of_every_operation(kind)) {
        by_status.entry(kind.status().as_str().to_owned()).or_default().push(*kind);
    }
    let of_any = ProblemKind::ALL.iter().copied().filter(is_of_every_operation).collect();
    by_status.insert("default".to_owned(), of_any);
    by_status
}

/// Whether every operation can have this problem.
fn is_of_every_operation(kind: &ProblemKind) -> bool {
    kind.status().is_server_error() || *kind == ProblemKind::HeaderFieldsTooLarge
}

fn response_name(kinds: &[ProblemKind]) -> String {
    match kinds {
        [kind, ..] if is_of_every_operation(kind) => "AnyOperation".to_owned(),
        kinds => kinds.iter().map(|kind| format!("{kind:?}")).collect::<Vec<_>>().join("Or"),
    }
}

/// One response for problems that share a status.
fn response(kinds: &[ProblemKind]) -> Response {
    let names: Vec<_> = kinds.iter().map(|kind| format!("`{}`", kind.slug())).collect();
    let content = Content::new(Some(RefOr::Ref(Ref::from_schema_name(ProblemDocument::name()))));
    ResponseBuilder::new().description(names.join(", ")).content(PROBLEM_JSON, content).build()
}
