//! The description of the API: what the handlers' annotations do not say by themselves.
//!
//! A handler names the problems it can answer with by their slugs,
//! `extensions(("x-problems" = json!(["experiment-not-found", "duel-expired"])))`, and [`complete`] writes the
//! responses from that, along with those that any operation can give (no key, overload, a body that is not JSON, …).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, ResponseBuilder};
use utoipa::{Modify, ToSchema as _};

use super::problem::{FieldError, PROBLEM_JSON, ProblemDocument, ProblemKind};

/// The document that the resources are added to.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "rankduel",
        description = "Online ranker evaluation with dueling bandits.\n\n\
            A search backend that has several versions of its ranking asks which two to interleave for the next query, \
            shows the interleaved page, and posts what was clicked. rankduel finds the best ranker with as few bad pages \
            as possible, and says what the exploration has cost so far.\n\n\
            Whatever goes wrong is answered with `application/problem+json` (RFC 9457): `type` names the kind of problem \
            and leads to an explanation.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/", description = "This server")),
    components(schemas(ProblemDocument, FieldError)),
    security(("key" = []), ()),
    modifiers(&Key)
)]
pub(super) struct ApiDoc;

struct Key;

impl Modify for Key {
    fn modify(&self, openapi: &mut OpenApi) {
        let mut http = Http::new(HttpAuthScheme::Bearer);
        http.description = Some(
            "One of the keys in the server's RANKDUEL_API_KEYS. A server without keys needs none.".to_owned(),
        );
        openapi.components.get_or_insert_default().add_security_scheme("key", SecurityScheme::Http(http));
    }
}

/// Names the problems of an operation, by slug.
const PROBLEMS: &str = "x-problems";

/// Add to every operation the problems it can answer with.
pub(super) fn complete(openapi: &mut OpenApi) {
    for (path, item) in &mut openapi.paths.paths {
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
            &mut item.head,
            &mut item.patch,
            &mut item.options,
            &mut item.trace,
        ];
        for operation in operations.into_iter().flatten() {
            add_problems(operation, super::auth::is_open(path));
        }
    }
}

/// The problems an operation can answer with: its own, and those that the shell around it gives.
pub(super) fn problems_of(operation: &Operation, open: bool) -> Vec<ProblemKind> {
    let mut kinds: Vec<ProblemKind> = operation
        .extensions
        .as_ref()
        .and_then(|extensions| extensions.get(PROBLEMS))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|slug| ProblemKind::of_slug(slug.as_str()?))
        .collect();
    if operation.request_body.is_some() {
        kinds.extend([
            ProblemKind::MalformedJson,
            ProblemKind::InvalidRequest,
            ProblemKind::PayloadTooLarge,
            ProblemKind::UnsupportedMediaType,
        ]);
    }
    if operation.parameters.as_ref().is_some_and(|parameters| !parameters.is_empty()) {
        kinds.push(ProblemKind::InvalidRequest);
    }
    if !open {
        kinds.extend([ProblemKind::Unauthorized, ProblemKind::Overloaded, ProblemKind::Unavailable]);
    }
    kinds.extend([ProblemKind::HeaderFieldsTooLarge, ProblemKind::Internal, ProblemKind::Timeout]);
    // In the order of `ALL`, each once.
    ProblemKind::ALL.into_iter().filter(|kind| kinds.contains(kind)).collect()
}

fn add_problems(operation: &mut Operation, open: bool) {
    let mut by_status: BTreeMap<u16, Vec<ProblemKind>> = BTreeMap::new();
    for kind in problems_of(operation, open) {
        by_status.entry(kind.status().as_u16()).or_default().push(kind);
    }
    for (status, kinds) in by_status {
        let status_text = status.to_string();
        if operation.responses.responses.contains_key(&status_text) {
            continue;
        }
        let description =
            kinds.iter().map(|kind| format!("{} (`{}`)", kind.title(), kind.type_uri())).collect::<Vec<_>>();
        let example = kinds.first().map(|kind| {
            json!({
                "type": kind.type_uri(),
                "title": kind.title(),
                "status": status,
                "detail": kind.meaning(),
                "instance": "/v1/experiments",
                "request_id": "5f0c7a1be2d94c36-00000a1f",
            })
        });
        let schema = RefOr::Ref(Ref::from_schema_name(ProblemDocument::name()));
        let mut content = Content::new(Some(schema));
        content.example = example;
        let response =
            ResponseBuilder::new().description(description.join("; ")).content(PROBLEM_JSON, content).build();
        operation.responses.responses.insert(status_text, RefOr::T(response));
    }
}
