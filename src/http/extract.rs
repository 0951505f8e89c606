//! Extractors like those of axum, but their rejections are [`Problem`]s with the location of the
//! error.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::Buf as _;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_path_to_error::Segment;

use super::problem::{Problem, ProblemKind};
use crate::service::threads::WorkThreads;
pub use rankduel_engine::experiment_spec::{Object, UniqueKeys};

/// Approximate nanoseconds to read a byte of JSON, measured with many short strings.
pub(crate) const READ_NANOSECONDS: usize = 5;

/// A byte order mark, which some programs put before JSON.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// An extension of a request with a large body: the threads that read it.
#[derive(Debug, Clone)]
pub(crate) struct LargeBody(pub Arc<WorkThreads>);

/// A JSON body. `T` should `deny_unknown_fields`, so that a misspelt field is rejected, not
/// ignored.
#[derive(Debug, Clone, Copy)]
pub struct JsonBody<T>(pub T);

/// The body of a request, as the shell has read it.
#[derive(Debug, Clone)]
pub(crate) struct WholeBody {
    pub bytes: Bytes,
    /// The threads that read it, if it is large.
    pub threads: Option<Arc<WorkThreads>>,
}

/// The bytes of a body whose content type is JSON.
#[derive(Debug, Clone)]
pub struct JsonText(WholeBody);

/// An optional JSON body; `null` is the same as no body.
#[derive(Debug, Clone)]
pub struct OptionalText(pub Option<JsonText>);

/// The one parameter of the path, the name of an experiment.
#[derive(Debug, Clone)]
pub struct PathName(pub String);

/// The parameters of the query. `T` must be a struct that has `deny_unknown_fields`, so that a
/// misspelt parameter is rejected, not ignored.
#[derive(Debug, Clone, Copy)]
pub struct QueryOf<T>(pub T);

impl<T: DeserializeOwned + Send + 'static, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        JsonText::from_request(request, state).await?.read(json).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for JsonText {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (headers, body) = whole(request, state).await?;
        Self::of(&headers, body)
    }
}

impl<S: Send + Sync> FromRequest<S> for OptionalText {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (headers, body) = whole(request, state).await?;
        JsonText::optional(&headers, body).map(Self)
    }
}

impl JsonText {
    /// The text of this body, without a byte order mark.
    pub(crate) fn of(headers: &HeaderMap, body: WholeBody) -> Result<Self, Problem> {
        require(headers, "application/json")?;
        Ok(Self::without_mark(body))
    }

    fn without_mark(mut body: WholeBody) -> Self {
        let mark = if body.bytes.starts_with(MARK) { MARK.len() } else { 0 };
        body.bytes.advance(mark);
        Self(body)
    }

    /// The same; `None` if there is no body, or a `null`.
    pub(crate) fn optional(headers: &HeaderMap, body: WholeBody) -> Result<Option<Self>, Problem> {
        if matches!(&*body.bytes, b"" | MARK) {
            return Ok(None);
        }
        Self::of(headers, body).map(|text| Some(text).filter(|text| !text.is_null()))
    }

    fn is_null(&self) -> bool {
        self.0.bytes.trim_ascii() == b"null"
    }

    /// The value that `read` makes of the bytes. It reads those of a large body on the threads for
    /// large bodies, so it should do all the work on them that takes long.
    pub async fn read<T: Send + 'static>(
        self,
        read: impl Fn(&[u8]) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let WholeBody { bytes, threads } = self.0;
        let read = move || {
            read(&bytes).or_else(|problem| match with_integers(&bytes) {
                Some(integers) => read(&integers),
                None => Err(problem),
            })
        };
        match threads {
            None => read(),
            Some(threads) => threads.run(read).await?,
        }
    }
}

/// The text with `10` for `10.0` and for `1e1`, if it has such a number. In JSON all are the same
/// integer, but only the first is read as one.
pub(crate) fn with_integers(text: &[u8]) -> Option<Vec<u8>> {
    let (mut kept, mut rest, mut in_string, mut is_other) = (Vec::new(), text, false, false);
    while let [byte, after @ ..] = rest {
        let mut length = 1;
        match byte {
            b'"' => in_string = !in_string,
            // An escape has a second byte, which may be a quote.
            b'\\' if in_string => length = rest.len().min(2),
            b'-' | b'0'..=b'9' if !in_string => {
                let is_of_number =
                    |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                length += after.iter().take_while(is_of_number).count();
                if let Some(integer) = integer(&rest[..length]) {
                    kept.extend(integer.to_string().bytes());
                    is_other = true;
                    rest = &rest[length..];
                    continue;
                }
            }
            _ => {}
        }
        kept.extend(&rest[..length]);
        rest = &rest[length..];
    }
    is_other.then_some(kept)
}

/// The integer that a number with a point or an exponent is.
fn integer(number: &[u8]) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.iter().find(|byte| matches!(byte, b'.' | b'e' | b'E'))?;
    let value: f64 = serde_json::from_slice(number).ok()?;
    (value.fract() == 0.0 && value.abs() < EXACT).then_some(value as i64)
}

/// The bytes of a body that is JSON, or one JSON value a line (`application/x-ndjson`).
#[derive(Debug, Clone)]
pub struct JsonOrLines {
    /// The bytes.
    pub text: JsonText,
    /// Whether it is one value a line.
    pub is_lines: bool,
}

impl<S: Send + Sync> FromRequest<S> for JsonOrLines {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (headers, body) = whole(request, state).await?;
        let is_lines = headers.get(header::CONTENT_TYPE).is_some_and(|value| {
            let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
            essence.trim_ascii().eq_ignore_ascii_case(b"application/x-ndjson")
        });
        let text = match is_lines {
            true => JsonText::without_mark(body),
            false => {
                require(
                    &headers,
                    "application/json, or application/x-ndjson with one value a line",
                )?;
                JsonText::without_mark(body)
            }
        };
        Ok(Self { text, is_lines })
    }
}

/// The headers and the whole body of a request.
async fn whole<S: Send + Sync>(
    mut request: Request,
    state: &S,
) -> Result<(HeaderMap, WholeBody), Problem> {
    let threads = request.extensions().get().map(|LargeBody(threads)| Arc::clone(threads));
    let headers = std::mem::take(request.headers_mut());
    // The shell has read it.
    let bytes = Bytes::from_request(request, state).await.map_err(Problem::internal)?;
    Ok((headers, WholeBody { bytes, threads }))
}

/// Require `application/json`, with any parameters, or another type with the suffix `+json`. `wanted`
/// says what to send.
fn require(headers: &HeaderMap, wanted: &str) -> Result<(), Problem> {
    let problem = |detail: String| Problem::new(ProblemKind::UnsupportedMediaType, detail);
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Err(problem(format!("The request has no Content-Type; send {wanted}.")));
    };
    if value == "application/json" {
        return Ok(());
    }
    let text = String::from_utf8_lossy(value.as_bytes());
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
    {
        Ok(())
    } else {
        Err(problem(format!("The Content-Type is {text:?}; send {wanted}.")))
    }
}

/// Parse one JSON object, and nothing after it.
pub fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.is_empty() {
        return Err(Problem::new(
            ProblemKind::MalformedJson,
            "The body is empty; send a JSON value.",
        ));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| {
            let pointer = pointer(error.path());
            (error.into_inner(), pointer)
        })
        .and_then(|Object(value)| match deserializer.end() {
            Ok(()) => Ok(value),
            Err(error) => Err((error, String::new())),
        })
        .map_err(|(error, pointer)| match syntax_error(bytes) {
            Some(problem) => problem,
            None => invalid(&error, pointer),
        })
}

/// Read a `T` from an object that is already parsed.
pub fn object<T: DeserializeOwned>(object: serde_json::Map<String, Value>) -> Result<T, Problem> {
    serde_path_to_error::deserialize(Value::Object(object)).map_err(|error| {
        let pointer = pointer(error.path());
        invalid(&error.into_inner(), pointer)
    })
}

/// The problem of a body that is not JSON; `None` if it is. Called only for a rejected body: the
/// errors of the deserializer do not tell whether the body is malformed or has unexpected content.
fn syntax_error(bytes: &[u8]) -> Option<Problem> {
    if let Err(error) = std::str::from_utf8(bytes) {
        let detail = format!("The body is not UTF-8 (byte {}).", error.valid_up_to() + 1);
        return Some(Problem::new(ProblemKind::MalformedJson, detail));
    }
    let error = serde_json::from_slice::<IgnoredAny>(bytes).err()?;
    let (line, column) = (error.line(), error.column());
    let detail =
        format!("The body is not JSON: {} (line {line}, column {column}).", without_place(&error));
    Some(Problem::new(ProblemKind::MalformedJson, detail))
}

/// The problem of a body that is JSON, but not a valid `T`.
fn invalid(error: &serde_json::Error, pointer: String) -> Problem {
    let what = without_place(error);
    let at = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") };
    Problem::invalid_at(&format!("body{at}"), pointer, what)
}

/// The message of an error, without its line and column.
pub(crate) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    // the names of types are the parser's words
    match text.rsplit_once(", expected ") {
        Some((what, "u16" | "u32" | "u64" | "usize")) => {
            format!("{what}, expected a whole number from 0 on")
        }
        Some((what, "i32" | "i64")) => format!("{what}, expected a whole number"),
        Some((what, "f64")) => format!("{what}, expected a number"),
        _ => text.to_owned(),
    }
}

/// The path as a JSON pointer (RFC 6901), as far as it is known.
pub(crate) fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        let token = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.clone(),
            Segment::Enum { variant } => variant.clone(),
            Segment::Unknown => break,
        };
        pointer.push('/');
        pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
    }
    pointer
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        let deserializer =
            serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
        serde_path_to_error::deserialize(deserializer).map(Self).map_err(|error| {
            let name = match error.path().iter().next() {
                Some(Segment::Map { key }) => key.clone(),
                _ => String::new(),
            };
            let what = match error.inner().to_string() {
                what if what.starts_with("invalid digit") => "it must be a whole number".into(),
                what => what,
            };
            let which = if name.is_empty() { String::new() } else { format!(" {name:?}") };
            Problem::invalid(&format!("Invalid query parameter{which}: {what}")).query(name, what)
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(PathRejection::FailedToDeserializePathParams(rejection)) => {
                let what = rejection.body_text();
                match rejection.into_kind() {
                    ErrorKind::InvalidUtf8InPathParam { key } => {
                        Err(Problem::invalid(&format!("Invalid path: {what}")).path(key, what))
                    }
                    _ => Err(Problem::internal(what)),
                }
            }
            Err(other) => Err(Problem::internal(other)),
        }
    }
}
