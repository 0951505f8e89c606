//! The description of the API: what the handlers' annotations do not say by themselves.
//!
//! A handler names the problems it can answer with by their slugs, in backticks, in the description
//! of a response of [`PROBLEM_JSON`]. [`complete`] adds those that any operation can give (no key,
//! overload, a body that is not JSON, …) and describes each set once, with examples.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{Modify, ToSchema as _};
use utoipa_axum::router::OpenApiRouter;

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
    tags(
        (name = "experiments", description = "A named tournament among rankers, with one policy."),
        (name = "duels", description = "The two calls of the hot path: ask which two rankers to interleave, and \
            report what was clicked."),
        (name = "results", description = "What is known so far, and what it has cost."),
        (name = "batches", description = "For policies that commit to many comparisons at once."),
        (name = OPERATIONS, description = "Probes, metrics and the audit log.")
    ),
    modifiers(&Key)
)]
pub(crate) struct ApiDoc;

/// Tag of what keeps the server running.
pub(crate) const OPERATIONS: &str = "operations";

/// An empty description for a file of routes to add to. (`OpenApiRouter::new` would bring a title,
/// an author and a licence of its own.)
pub(crate) fn part<S: Send + Sync + Clone + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::with_openapi(OpenApi::default())
}

struct Key;

impl Modify for Key {
    fn modify(&self, openapi: &mut OpenApi) {
        let mut http = Http::new(HttpAuthScheme::Bearer);
        http.description = Some(
            "A key that `rankduel keys create` has made, with the scope that the operation names (`admin` allows \
             everything), or one of the server's RANKDUEL_API_KEYS. A server without keys needs none."
                .to_owned(),
        );
        openapi
            .components
            .get_or_insert_default()
            .add_security_scheme("key", SecurityScheme::Http(http));
    }
}

/// Add to every operation the problems it can answer with, as references to responses that are
/// described once.
pub(crate) fn complete(openapi: &mut OpenApi) {
    let mut described = BTreeMap::new();
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
        let open = super::auth::is_open(path);
        for operation in operations.into_iter().flatten() {
            if open {
                operation.security = Some(Vec::new());
            } else if let Some(scope) = super::auth::scope_of(operation) {
                // a server without keys needs none
                operation.security = Some(vec![
                    SecurityRequirement::new("key", [scope.name()]),
                    SecurityRequirement::default(),
                ]);
            }
            add_problems(operation, open, &mut described);
        }
    }
    openapi.components.get_or_insert_default().responses.extend(described);
}

fn add_problems(
    operation: &mut Operation,
    open: bool,
    described: &mut BTreeMap<String, RefOr<Response>>,
) {
    let mut by_status: BTreeMap<u16, Vec<ProblemKind>> = BTreeMap::new();
    for kind in problems_of(operation, open) {
        by_status.entry(kind.status().as_u16()).or_default().push(kind);
    }
    for (status, kinds) in by_status {
        let name = kinds.iter().map(|kind| format!("{kind:?}")).collect::<Vec<_>>().join("Or");
        let reference = RefOr::Ref(Ref::from_response_name(&name));
        operation.responses.responses.entry(status.to_string()).or_insert(reference);
        described.entry(name).or_insert_with(|| RefOr::T(response(&kinds)));
    }
}

/// The kinds of problem that a response's description names.
fn named(description: &str) -> impl Iterator<Item = ProblemKind> {
    ProblemKind::ALL
        .iter()
        .copied()
        .filter(move |kind| description.contains(&format!("`{}`", kind.slug())))
}

/// The problems that an operation itself answers with; their responses are taken out of it.
fn take_own_problems(operation: &mut Operation) -> Vec<ProblemKind> {
    let mut kinds = Vec::new();
    operation.responses.responses.retain(|_, response| match response {
        RefOr::T(response) if response.content.contains_key(PROBLEM_JSON) => {
            kinds.extend(named(&response.description));
            false
        }
        _ => true,
    });
    kinds
}

/// The problems an operation can answer with: its own, and those that the shell around it gives.
fn problems_of(operation: &mut Operation, open: bool) -> Vec<ProblemKind> {
    let mut kinds = take_own_problems(operation);
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
        kinds.extend([
            ProblemKind::Unauthorized,
            ProblemKind::Forbidden,
            ProblemKind::Overloaded,
            ProblemKind::Unavailable,
        ]);
    }
    kinds.extend([ProblemKind::HeaderFieldsTooLarge, ProblemKind::Internal, ProblemKind::Timeout]);
    // In the order of `ALL`, each once.
    ProblemKind::ALL.iter().copied().filter(|kind| kinds.contains(kind)).collect()
}

/// One response for problems that share a status, with an example of each.
fn response(kinds: &[ProblemKind]) -> Response {
    let titles: Vec<_> =
        kinds.iter().map(|kind| format!("`{}`: {}", kind.slug(), kind.title())).collect();
    let mut content =
        Content::new(Some(RefOr::Ref(Ref::from_schema_name(ProblemDocument::name()))));
    for kind in kinds {
        let value = json!({
            "type": kind.type_uri(),
            "title": kind.title(),
            "status": kind.status().as_u16(),
            "detail": kind.meaning(),
            "instance": "/v1/experiments",
            "request_id": "5f0c7a1be2d94c36-00000a1f",
        });
        let example = ExampleBuilder::new().value(Some(value)).build();
        content.examples.insert(kind.slug().to_owned(), RefOr::T(example));
    }
    ResponseBuilder::new().description(titles.join("; ")).content(PROBLEM_JSON, content).build()
}
