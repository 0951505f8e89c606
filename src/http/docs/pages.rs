//! The routes and pages of the documentation.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, Markup, html};
use utoipa::openapi::OpenApi;

use super::assets::{self, assets};
use crate::http::openapi::yaml;
use crate::http::problem::{PROBLEM_JSON, ProblemKind};
use crate::http::server::deliver::SharedText;

/// The routes, none of which needs a key.
pub(crate) const OPEN: [&str; 7] = [
    "/openapi.yaml",
    "/docs",
    "/problems/{slug}",
    assets::BUNDLE,
    assets::THEME,
    assets::INITIALIZER,
    assets::STYLE,
];

/// Swagger UI needs scripts, and sends requests to this server for "Try it out". Inline scripts,
/// inline styles and other hosts stay forbidden.
const REFERENCE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The pages of the problems need only the style sheet.
const PROBLEM_POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// The routes of the documentation of `openapi`.
pub(crate) fn routes(openapi: &OpenApi) -> anyhow::Result<Router> {
    let yaml = SharedText::new(yaml(openapi)?);
    let reference = SharedText::new(reference_page().into_string());
    let router = Router::new()
        .route(
            "/openapi.yaml",
            get(async move |headers: HeaderMap| {
                let content_type = HeaderValue::from_static("application/yaml");
                yaml.respond(&headers, [(header::CONTENT_TYPE, content_type)])
            }),
        )
        .route(
            "/docs",
            get(async move |headers: HeaderMap| {
                reference.respond(&headers, page_headers(REFERENCE_POLICY))
            }),
        )
        .route("/problems/{slug}", get(problem));
    Ok(assets().into_iter().fold(router, |router, (path, file)| {
        router.route(path, get(async move |headers: HeaderMap| file.respond(&headers)))
    }))
}

async fn problem(Path(slug): Path<String>) -> Response {
    match ProblemKind::of_slug(&slug) {
        Some(kind) => {
            (page_headers(PROBLEM_POLICY), problem_page(kind).into_string()).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn page_headers(policy: &'static str) -> [(HeaderName, HeaderValue); 4] {
    [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ]
}

fn shell(title: &str, head: &Markup, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (title) }
                (head)
                link rel="stylesheet" href=(assets::STYLE);
            }
            body { (body) }
        }
    }
}

fn reference_page() -> Markup {
    let head = html! {
        link rel="stylesheet" href=(assets::THEME);
        script src=(assets::BUNDLE) defer {}
        script src=(assets::INITIALIZER) defer {}
    };
    let body = html! {
        header {
            p { a href="/" { "rankduel: all experiments" } }
            noscript { p {
                "This page needs JavaScript. " a href="/openapi.yaml" { "openapi.yaml" }
                " has the same description of the API."
            } }
            details #problems {
                summary { "Types of problems" }
                p {
                    "Every error is answered with " code { (PROBLEM_JSON) } ". Its " code { "type" }
                    " is one of these paths, and the page at the path says what to do."
                }
                dl {
                    @for &kind in ProblemKind::ALL {
                        dt { a href=(kind.type_uri()) { (kind.type_uri()) } " " (kind.status().as_u16()) }
                        dd { (inline(kind.meaning())) }
                    }
                }
            }
        }
        main #swagger-ui {}
        footer { p { "Rendered by Swagger UI, © SmartBear Software Inc., Apache License 2.0." } }
    };
    shell("rankduel API", &head, &body)
}

fn problem_page(kind: ProblemKind) -> Markup {
    let body = html! {
        main.problem {
            p { a href="/docs#problems" { "rankduel: all problems" } }
            h1 { (kind.title()) }
            p { code { (kind.type_uri()) } ", sent with status " strong { (kind.status().to_string()) } }
            h2 { "What it means" }
            p { (inline(kind.meaning())) }
            h2 { "What to do" }
            p { (inline(kind.remedy())) }
            @if let Some(seconds) = kind.retry_after_seconds() {
                p { "The answer has a " code { "Retry-After" } " header, usually of " (seconds) " s." }
            }
        }
    };
    shell(&format!("{} · rankduel", kind.title()), &html! {}, &body)
}

/// Text in which every second piece between backticks is code.
fn inline(text: &str) -> Markup {
    html! {
        @for (index, piece) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}
