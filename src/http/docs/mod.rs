//! The documentation that a server serves: `/openapi.yaml`, the API reference at `/docs`, and a
//! page for each type of problem at `/problems/{slug}`.
//!
//! The API reference is [Swagger UI](https://github.com/swagger-api/swagger-ui), which reads
//! `/openapi.yaml` in the browser. Its files are part of the program ([`assets`]); no page loads
//! anything from another host.

mod assets;
mod pages;

pub(crate) use pages::{OPEN, routes};
