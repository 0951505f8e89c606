//! The last step of a response: compression, and the count of the memory that large ones take until
//! they are sent. Both happen away from the threads that serve requests.

use std::io::Write as _;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, IntoResponseParts, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Body as _;

use crate::http::problem::Problem;
use crate::service::reports::pool::ReportPool;

/// Smaller responses are not compressed: they fit into a few packets, and compressing takes longer
/// than sending.
const COMPRESS_FROM_BYTES: usize = 4 * 1024;
/// A response from this size on counts against the memory for answers.
const COUNTED_FROM_BYTES: usize = 64 * 1024;

/// Marks a response whose text is counted already.
#[derive(Debug, Clone, Copy)]
struct Counted;

/// Whether the caller can read gzip (RFC 9110 §12.5.3).
pub(crate) fn accepts_gzip(request: &HeaderMap) -> bool {
    let accepted =
        request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_some_and(|weight| weight > 0.0)
    })
}

/// A response with a text that is counted already, or that all who have it share.
pub(crate) fn counted(text: Bytes, headers: impl IntoResponseParts) -> Response {
    let mut response = (headers, Body::from(text)).into_response();
    response.extensions_mut().insert(Counted);
    response
}

/// Whether a response is to be given to [`deliver`].
pub(crate) fn is_large(response: &Response) -> bool {
    size_of(response) >= COMPRESS_FROM_BYTES
}

fn size_of(response: &Response) -> usize {
    let size = response.body().size_hint().exact();
    size.and_then(|size| usize::try_from(size).ok()).unwrap_or(0)
}

/// Compress a large response if the caller can read it, and count it until it is sent.
pub(crate) async fn deliver(response: Response, compress: bool, pool: &ReportPool) -> Response {
    let size = size_of(&response);
    let (mut parts, body) = response.into_parts();
    let encoded = parts.headers.contains_key(header::CONTENT_ENCODING);
    if !encoded && !parts.headers.contains_key(header::VARY) {
        parts.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
    let compress = compress && !encoded;
    let is_counted = parts.extensions.get::<Counted>().is_some();
    if !compress && (is_counted || size < COUNTED_FROM_BYTES) {
        return Response::from_parts(parts, body);
    }
    let Ok(bytes) = to_bytes(body, size).await else {
        return Problem::internal("a response has no body").into_response();
    };
    match pack(bytes, compress, is_counted, pool).await {
        Ok((bytes, is_compressed)) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            if is_compressed {
                let gzip = HeaderValue::from_static("gzip");
                parts.headers.insert(header::CONTENT_ENCODING, gzip);
                weaken_etag(&mut parts.headers);
            }
            Response::from_parts(parts, Body::from(bytes))
        }
        Err(problem) => problem.into_response(),
    }
}

/// A strong tag would promise the bytes of the uncompressed answer.
fn weaken_etag(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(header::ETAG).filter(|tag| tag.as_bytes().starts_with(b"\""))
    else {
        return;
    };
    if let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()) {
        headers.insert(header::ETAG, weak);
    }
}

/// The text as it is sent, and whether it is compressed. What cannot be compressed in time is sent
/// as it is.
async fn pack(
    bytes: Bytes,
    compress: bool,
    is_counted: bool,
    pool: &ReportPool,
) -> Result<(Bytes, bool), Problem> {
    let compressed = match compress {
        true => {
            let bytes = bytes.clone();
            pool.in_time(pool.threads.run(move || gzip(&bytes))).await?
        }
        false => None,
    };
    let is_compressed = compressed.is_some();
    let bytes = compressed.transpose().map_err(Problem::internal)?.map_or(bytes, Bytes::from);
    match (is_counted && !is_compressed) || bytes.len() < COUNTED_FROM_BYTES {
        true => Ok((bytes, is_compressed)),
        false => Ok((pool.hold(bytes.into())?, is_compressed)),
    }
}

/// `text`, compressed.
fn gzip(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 4), Compression::fast());
    encoder.write_all(text)?;
    encoder.finish()
}

/// A text of the program, which all its readers share.
#[derive(Debug, Clone)]
pub(crate) struct SharedText {
    plain: Bytes,
    gzip: Option<Bytes>,
}

impl SharedText {
    /// The text, and its compressed form if it is large.
    pub fn new(plain: impl Into<Bytes>) -> Self {
        let plain = plain.into();
        let large = plain.len() >= COMPRESS_FROM_BYTES;
        let gzip = large.then(|| gzip(&plain).ok()).flatten().map(Bytes::from);
        Self { plain, gzip }
    }

    /// The text, and a compressed form that exists.
    pub fn with_gzip(plain: &'static [u8], gzip: &'static [u8]) -> Self {
        Self { plain: Bytes::from_static(plain), gzip: Some(Bytes::from_static(gzip)) }
    }

    /// The text, uncompressed.
    pub fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// The response to a request with these headers.
    pub fn respond<const N: usize>(
        &self,
        request: &HeaderMap,
        headers: [(HeaderName, HeaderValue); N],
    ) -> Response {
        let vary = [(header::VARY, HeaderValue::from_static("accept-encoding"))];
        match &self.gzip {
            Some(gzip) if accepts_gzip(request) => {
                let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
                counted(gzip.clone(), (headers, vary, encoding))
            }
            _ => counted(self.plain.clone(), (headers, vary)),
        }
    }
}
