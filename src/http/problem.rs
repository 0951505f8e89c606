//! What the API says when it cannot do what was asked: RFC 9457 problem details.
//!
//! A handler returns a [`Problem`]; [`IntoResponse`] puts it into the response's extensions, and
//! the outermost layer ([`super::middleware::describe`]) writes the body, because only there the
//! request's id, trace and path are known. Bare answers of the framework (an unknown route, a wrong
//! method, a body that is too large) become problems at the same place.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// The media type of every problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// What a handler returns.
pub type ApiResult<T> = Result<T, Problem>;

/// A kind of problem and what is said about it, on the wire and at `/problems/{slug}`.
struct Entry {
    slug: &'static str,
    status: StatusCode,
    title: &'static str,
    meaning: &'static str,
    remedy: &'static str,
}

macro_rules! problems {
    ($($kind:ident: $slug:literal, $status:ident, $title:literal, $meaning:literal, $remedy:literal;)*) => {
        /// Everything that can be wrong, each with one stable type URI and one status.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ProblemKind {
            $(#[doc = $meaning] $kind,)*
        }

        impl ProblemKind {
            /// Every kind, by status.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            fn entry(self) -> Entry {
                match self {
                    $(Self::$kind => Entry {
                        slug: $slug,
                        status: StatusCode::$status,
                        title: $title,
                        meaning: $meaning,
                        remedy: $remedy,
                    },)*
                }
            }
        }
    };
}

// Kind: slug, status, title, what it means, what to do.
problems! {
    MalformedJson: "malformed-json", BAD_REQUEST, "The body is not JSON",
        "The request body could not be parsed as JSON. The detail names line and column of the first error.",
        "Send the body as one JSON value in UTF-8. If it looks right, check that it was not cut off or \
         encoded twice.";
    Unauthorized: "unauthorized", UNAUTHORIZED, "An API key is needed",
        "The server has API keys, and the request has none, or one that the server does not know, that has expired \
         or that was revoked.",
        "Send `Authorization: Bearer KEY` with a key that `rankduel keys create` has made, or one of the server's \
         RANKDUEL_API_KEYS.";
    Forbidden: "forbidden", FORBIDDEN, "Not allowed",
        "The API key is known, but lacks the scope that this needs, or is for other experiments.",
        "Use a key that may, or ask whoever runs the server for one (`rankduel keys create`).";
    NotFound: "not-found", NOT_FOUND, "There is nothing here",
        "The server has no route of this path.",
        "Compare the path with the list of operations at /docs. Paths have no trailing slash.";
    ExperimentNotFound: "experiment-not-found", NOT_FOUND, "No such experiment",
        "There is no experiment of this name.",
        "Check the spelling, or create the experiment first. Names are case-sensitive.";
    MethodNotAllowed: "method-not-allowed", METHOD_NOT_ALLOWED, "The method is not allowed here",
        "The path exists, but not with this method.",
        "Use one of the methods in the `Allow` header.";
    ExperimentExists: "experiment-exists", CONFLICT, "The name is taken",
        "Another experiment has this name, with other rankers, policy or settings. Names are unique for \
         ever, archived experiments included.",
        "Choose another name. Repeating the request that created an experiment is safe and no conflict.";
    ExperimentPaused: "experiment-paused", CONFLICT, "The experiment is paused",
        "A paused experiment hands out no duels. Feedback of duels that are out still counts.",
        "Show your default ranking, or resume the experiment.";
    ExperimentArchived: "experiment-archived", CONFLICT, "The experiment is archived",
        "An archived experiment cannot be changed and takes no duels or feedback. Its log is kept.",
        "Create a new experiment under another name.";
    NotConcluded: "not-concluded", CONFLICT, "The experiment is not concluded",
        "This needs a concluded experiment, one whose winner is decided.",
        "Conclude the experiment first.";
    NotABatchPolicy: "not-a-batch-policy", CONFLICT, "The policy has no batches",
        "The experiment's policy chooses one duel at a time; it has no batches to read or to answer.",
        "Ask for single duels, or create the experiment with a batch policy.";
    BatchNotOpen: "batch-not-open", CONFLICT, "That batch is not open",
        "The batch that the request names is closed already, or not yet open. A batch's results count once.",
        "Read the current batch and answer that one.";
    CannotReplay: "cannot-replay", CONFLICT, "The log cannot be replayed",
        "A replay folds the whole log from its beginning. This one was pruned, or is too long for a request.",
        "Replay a long log with `rankduel replay` where the database can be reached. A pruned one can be replayed from an \
         export that was made before.";
    RankersFixed: "rankers-fixed", CONFLICT, "The rankers cannot be changed so",
        "The experiment's policy fixes its rankers at the start, or the change is one that no experiment takes: it would leave \
         fewer than two rankers, or bring back one that was retired. The detail says which.",
        "Change to a policy whose rankers may come and go (`rankduel policies` says which may), or create another \
         experiment.";
    FeedbackConflict: "feedback-conflict", CONFLICT, "The duel has another answer already",
        "This duel was answered before, differently. The first answer counts and stands.",
        "Nothing to do if the first answer is the right one. Send one answer for each duel; repeating the \
         same answer is safe and no conflict.";
    DuelExpired: "duel-expired", GONE, "The duel has expired",
        "The feedback came later than the experiment accepts feedback. It was not counted.",
        "Nothing to repair: drop the feedback. If this happens often, send feedback sooner, or create the \
         experiment with a longer time for feedback.";
    PreconditionFailed: "precondition-failed", PRECONDITION_FAILED, "The experiment has changed meanwhile",
        "`If-Match` names another version than the current one: somebody changed the experiment since it \
         was read.",
        "Read the experiment again, decide whether the change still makes sense, and send it with the new \
         `ETag`.";
    PayloadTooLarge: "payload-too-large", PAYLOAD_TOO_LARGE, "The body is too large",
        "The request body is larger than the server accepts.",
        "Split the request. Whoever runs the server can raise the limit with --body-limit-bytes.";
    UnsupportedMediaType: "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "The body must be JSON",
        "The request has a body whose `Content-Type` is missing or not JSON.",
        "Send `Content-Type: application/json`.";
    InvalidRequest: "invalid-request", UNPROCESSABLE_ENTITY, "The request is not valid",
        "The request is well-formed, but a value is missing, unknown, of the wrong type or out of its \
         range. `errors` lists what is wrong: a JSON pointer into the body, or the name of a query or path \
         parameter.",
        "Correct what `errors` names. Field names that the API does not know are refused rather than \
         ignored, so check their spelling.";
    InvalidDuel: "invalid-duel", UNPROCESSABLE_ENTITY, "Not a duel of this experiment",
        "The `duel_id` is damaged, was not issued by this service, or belongs to another experiment.",
        "Send the `duel_id` exactly as it was received, to the experiment that it came from.";
    PreconditionRequired: "precondition-required", PRECONDITION_REQUIRED, "If-Match is needed",
        "A change of an experiment must say which version it changes, so that two people cannot overwrite \
         one another.",
        "Read the experiment and send its `ETag` in `If-Match`.";
    HeaderFieldsTooLarge: "header-fields-too-large", REQUEST_HEADER_FIELDS_TOO_LARGE, "The headers are too large",
        "The request's header fields are larger than the server accepts.",
        "Send fewer or smaller headers; cookies are the usual cause, and the API needs none.";
    Internal: "internal", INTERNAL_SERVER_ERROR, "Something is wrong in the server",
        "The server failed in a way it should not. The cause is in its log, under the `request_id` of the \
         answer.",
        "Trying again may help. Tell whoever runs the server, with the `request_id`.";
    Overloaded: "overloaded", SERVICE_UNAVAILABLE, "The server is overloaded",
        "More requests are running, or more feedback is waiting, than the server takes on. This one was \
         refused; nothing of it was done.",
        "Wait as long as `Retry-After` says and try again. For a duel: show your default ranking instead.";
    Unavailable: "unavailable", SERVICE_UNAVAILABLE, "The server cannot do this now",
        "Something that the server needs, usually its database, does not answer, or the server is shutting \
         down. Whether feedback was kept is not known.",
        "Wait as long as `Retry-After` says and try again; feedback counts once however often it is sent.";
    ExperimentUnreadable: "experiment-unreadable", SERVICE_UNAVAILABLE, "This server cannot read the experiment",
        "The experiment holds something that this server's version does not know, such as a policy or a kind \
         of event of a newer one, or that is damaged. Other experiments are served.",
        "Another replica may be able to: try again. Whoever runs the server: upgrade it, or see what \
         `rankduel verify` says.";
    Timeout: "timeout", GATEWAY_TIMEOUT, "It took too long",
        "The request was not finished within the server's time limit and was given up. Unlike 503, it may \
         have been done.",
        "Try again after `Retry-After`; feedback counts once however often it is sent. After a change, read \
         the experiment first.";
}

impl ProblemKind {
    /// Names it in its type URI, in code and in the OpenAPI document.
    pub fn slug(self) -> &'static str {
        self.entry().slug
    }

    /// The kind of this slug.
    pub fn of_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.slug() == slug)
    }

    /// What a bare answer of the framework with this status means.
    pub fn of_status(status: StatusCode) -> Option<Self> {
        match status {
            StatusCode::NOT_FOUND => Some(Self::NotFound),
            StatusCode::METHOD_NOT_ALLOWED => Some(Self::MethodNotAllowed),
            StatusCode::PAYLOAD_TOO_LARGE => Some(Self::PayloadTooLarge),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Some(Self::UnsupportedMediaType),
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Some(Self::HeaderFieldsTooLarge),
            StatusCode::SERVICE_UNAVAILABLE => Some(Self::Unavailable),
            StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => Some(Self::Timeout),
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                Some(Self::InvalidRequest)
            }
            status if status.is_server_error() => Some(Self::Internal),
            _ => None,
        }
    }

    /// `type`: a relative reference, which is also the path of the page that explains it.
    pub fn type_uri(self) -> String {
        format!("/problems/{}", self.slug())
    }

    /// The status it is sent with.
    pub fn status(self) -> StatusCode {
        self.entry().status
    }

    /// What it is, in a few words; the same for every occurrence.
    pub fn title(self) -> &'static str {
        self.entry().title
    }

    /// What it means, in full sentences.
    pub fn meaning(self) -> &'static str {
        self.entry().meaning
    }

    /// What the caller can do about it.
    pub fn remedy(self) -> &'static str {
        self.entry().remedy
    }

    /// Seconds after which trying again makes sense, where it does.
    pub fn retry_after_seconds(self) -> Option<u32> {
        match self {
            Self::Overloaded | Self::Unavailable | Self::Timeout => Some(1),
            Self::ExperimentUnreadable => Some(10),
            _ => None,
        }
    }
}

/// One thing that is wrong with a request, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "in", rename_all = "lowercase")]
pub enum FieldError {
    /// In the body.
    Body {
        /// JSON pointer (RFC 6901) to the value, or to the object that lacks one; empty for the
        /// whole body.
        #[schema(example = "/rankers/3/id")]
        pointer: String,
        /// What is wrong.
        detail: String,
    },
    /// In the query.
    Query {
        /// The parameter; empty when it is not known which.
        name: String,
        /// What is wrong.
        detail: String,
    },
    /// In the path.
    Path {
        /// The parameter; empty when it is not known which.
        name: String,
        /// What is wrong.
        detail: String,
    },
    /// In a header.
    Header {
        /// The header.
        name: String,
        /// What is wrong.
        detail: String,
    },
}

/// A problem as it is sent: RFC 9457 with `request_id`, `trace_id` and `errors`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// Which kind of problem: a stable URI reference, resolved against the server, that leads to an
    /// explanation.
    #[schema(example = "/problems/experiment-not-found", format = "uri-reference")]
    pub r#type: String,
    /// The kind in a few words.
    #[schema(example = "No such experiment")]
    pub title: String,
    /// The status of the answer.
    #[schema(example = 404)]
    pub status: u16,
    /// What is wrong this time.
    #[schema(example = "There is no experiment \"checkout\".")]
    pub detail: String,
    /// Path of the request.
    #[schema(example = "/v1/experiments/checkout")]
    pub instance: String,
    /// Finds the request in the server's log; also in the `x-request-id` header.
    #[schema(example = "5f0c7a1be2d94c36-00000a1f")]
    pub request_id: String,
    /// The trace that the request's `traceparent` header named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736", nullable = false)]
    pub trace_id: Option<String>,
    /// What is wrong, one by one, where the request itself is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

#[derive(Debug, Clone)]
struct Inner {
    kind: ProblemKind,
    detail: String,
    errors: Vec<FieldError>,
    headers: HeaderMap,
}

/// A problem on its way out. Small, so that it can be an error type.
#[derive(Debug, Clone)]
pub struct Problem(Box<Inner>);

impl Problem {
    /// A problem of this kind; `detail` says in a sentence what is wrong this time, and is for the
    /// caller to read.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let mut headers = HeaderMap::new();
        if let Some(seconds) = kind.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        Self(Box::new(Inner { kind, detail: detail.into(), errors: Vec::new(), headers }))
    }

    /// A failure of ours: the cause goes to the log, and the caller is told only that there is one.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(error = %cause, "a request failed");
        Self::new(
            ProblemKind::Internal,
            "The server failed; its log has the cause under this request_id.",
        )
    }

    /// Add what is wrong at a JSON pointer into the body, such as `/rankers/3/id`.
    pub fn field(self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.error(FieldError::Body { pointer: pointer.into(), detail: detail.into() })
    }

    /// Add what is wrong with a query parameter.
    pub fn query(self, name: impl Into<String>, detail: impl Into<String>) -> Self {
        self.error(FieldError::Query { name: name.into(), detail: detail.into() })
    }

    /// Add what is wrong with a path parameter.
    pub fn path(self, name: impl Into<String>, detail: impl Into<String>) -> Self {
        self.error(FieldError::Path { name: name.into(), detail: detail.into() })
    }

    /// Add one thing that is wrong.
    pub fn error(mut self, error: FieldError) -> Self {
        self.0.errors.push(error);
        self
    }

    /// Say when trying again makes sense, instead of the kind's own idea.
    pub fn retry_after(self, seconds: u32) -> Self {
        self.header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// Send this header, too; one of the same name is replaced.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// Which kind it is.
    pub fn kind(&self) -> ProblemKind {
        self.0.kind
    }

    /// What is wrong this time.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// What is sent, for a request of this path and id.
    pub(crate) fn document(
        self,
        instance: String,
        request_id: String,
        trace_id: Option<String>,
    ) -> ProblemDocument {
        ProblemDocument {
            r#type: self.0.kind.type_uri(),
            title: self.0.kind.title().to_owned(),
            status: self.0.kind.status().as_u16(),
            detail: self.0.detail,
            instance,
            request_id,
            trace_id,
            errors: self.0.errors,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.0.kind.status().into_response();
        *response.headers_mut() = self.0.headers.clone();
        response.extensions_mut().insert(self);
        response
    }
}
