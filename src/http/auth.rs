//! Who may call.

/// Whether this path needs no key.
pub(super) fn is_open(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/openapi.yaml" | "/docs") || path.starts_with("/problems/")
}
