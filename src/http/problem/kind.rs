//! The kinds of problem, with their texts.

use axum::http::StatusCode;

/// The properties of a kind of problem, as sent to the caller and shown at `/problems/{slug}`.
struct Entry {
    slug: &'static str,
    status: StatusCode,
    title: &'static str,
    meaning: &'static str,
    remedy: &'static str,
}

macro_rules! problems {
    ($($kind:ident: $slug:literal, $status:ident, $title:literal, $meaning:literal, $remedy:literal;)*) => {
        /// A kind of problem. Each has one stable type URI and one status.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ProblemKind {
            $(#[doc = $meaning] $kind,)*
        }

        impl ProblemKind {
            /// Every kind, ordered by status.
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

// Kind: slug, status, title, meaning, remedy.
problems! {
    MalformedJson: "malformed-json", BAD_REQUEST, "The body is not valid JSON",
        "The request body could not be parsed as JSON. The detail gives the line and column of the \
         first error.",
        "Send the body as one JSON value in UTF-8. If it looks correct, check that it was not \
         truncated or encoded twice.";
    Unauthorized: "unauthorized", UNAUTHORIZED, "A valid API key is required",
        "The server has API keys, and the request has no valid one. Its key is missing, unknown, \
         expired or revoked.",
        "Send `Authorization: Bearer KEY`. Create a key with `rankduel keys create`, or use one of \
         the server's RANKDUEL_API_KEYS.";
    Forbidden: "forbidden", FORBIDDEN, "Not allowed",
        "The API key is valid, but it lacks the required scope, or it is restricted to other \
         experiments.",
        "Use a key that has the required scope and includes the experiment, or ask the server's \
         operator for one (`rankduel keys create`).";
    NotFound: "not-found", NOT_FOUND, "No such path",
        "The server has no route for this path.",
        "Compare the path with the list of operations at /docs. Paths have no trailing slash.";
    ExperimentNotFound: "experiment-not-found", NOT_FOUND, "No such experiment",
        "No experiment has this name.",
        "Check the spelling, or create the experiment first. Names are case-sensitive.";
    MethodNotAllowed: "method-not-allowed", METHOD_NOT_ALLOWED, "Method not allowed",
        "The path exists, but it does not support this method.",
        "Use one of the methods in the `Allow` header.";
    ExperimentExists: "experiment-exists", CONFLICT, "The name is already in use",
        "An experiment with this name exists, with different rankers, policy or settings. A name can \
         be used only once, even after the experiment is archived.",
        "Choose another name. Repeating the request that created an experiment is safe and not a \
         conflict.";
    ExperimentPaused: "experiment-paused", CONFLICT, "The experiment is paused",
        "A paused experiment issues no duels. Feedback on duels that were issued before still counts.",
        "Show your default ranking, or resume the experiment.";
    ExperimentArchived: "experiment-archived", CONFLICT, "The experiment is archived",
        "An archived experiment cannot be changed. It issues no duels and accepts no feedback. Its \
         log is kept.",
        "Create a new experiment with another name.";
    NotConcluded: "not-concluded", CONFLICT, "The experiment is not concluded",
        "This request requires a concluded experiment, one whose winner is decided.",
        "Conclude the experiment first.";
    NotABatchPolicy: "not-a-batch-policy", CONFLICT, "The policy has no batches",
        "The experiment's policy chooses one duel at a time. It has no batches to read or to report \
         results for.",
        "Request single duels, or create the experiment with a batch policy.";
    BatchNotOpen: "batch-not-open", CONFLICT, "The batch is not open",
        "The batch in the request is already closed or not yet open. The results of a batch count once.",
        "Read the current batch and send its results.";
    LogPruned: "log-pruned", CONFLICT, "The beginning of the log was pruned",
        "This change folds the log of the experiment from its beginning, which was pruned.",
        "Create another experiment.";
    RankersFixed: "rankers-fixed", CONFLICT, "This change of rankers is not possible",
        "The experiment's policy fixes its rankers at the start, or no experiment allows the change: \
         it would leave fewer than two rankers or bring back a retired one. The detail gives the \
         reason.",
        "Create another experiment, with a policy that allows rankers to be added and retired \
         (`rankduel policies` lists them).";
    SettingFixed: "setting-fixed", CONFLICT, "The setting is fixed at creation",
        "An experiment keeps what decides it, and the time in which that comes, from its creation on.",
        "Create another experiment.";
    NoOrders: "no-orders", CONFLICT, "No experiment counts these orders",
        "Orders count in an experiment that has `decide_by`, and this one has none. Of orders for all \
         experiments: no experiment that this key includes counts orders now.",
        "Create an experiment with `decide_by`, or send the orders to the one that has it.";
    FeedbackConflict: "feedback-conflict", CONFLICT, "The duel already has a different outcome",
        "A different outcome was recorded for this duel before. The first one counts.",
        "If the first outcome is correct, do nothing. Send one outcome for each duel. Repeating the \
         same outcome is safe and not a conflict.";
    DuelExpired: "duel-expired", GONE, "The duel has expired",
        "The feedback arrived after the duel's expiry time. It was not counted.",
        "Drop the feedback; no correction is needed. If this happens often, send feedback sooner, or \
         create the experiment with a longer `duel_ttl_seconds`.";
    PreconditionFailed: "precondition-failed", PRECONDITION_FAILED, "The experiment has changed",
        "The version in `If-Match` is not the current one. The experiment was changed after it was \
         read.",
        "Read the experiment again, check that the change is still correct, and send it with the new \
         `ETag`.";
    PayloadTooLarge: "payload-too-large", PAYLOAD_TOO_LARGE, "The body is too large",
        "The request body is larger than the server accepts.",
        "Split the request. The server's operator can raise the limit with --body-limit-bytes.";
    UnsupportedMediaType: "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "The body must be JSON",
        "The request has a body, and its `Content-Type` is missing or not JSON, or it has a \
         `Content-Encoding`.",
        "Send `Content-Type: application/json`, and the body uncompressed.";
    InvalidRequest: "invalid-request", UNPROCESSABLE_ENTITY, "The request is not valid",
        "The request is well-formed, but a value is missing, unknown, of the wrong type or out of \
         range. `errors` lists each error with its location: a JSON pointer into the body, or the \
         name of a header, query parameter or path parameter.",
        "Correct the values listed in `errors`. The API rejects unknown field names instead of \
         ignoring them, so check the spelling.";
    InvalidDuel: "invalid-duel", UNPROCESSABLE_ENTITY, "Not a duel of this experiment",
        "The `duel_id` is damaged, was not issued by this service, or belongs to another experiment.",
        "Send the `duel_id` exactly as received, to the experiment that issued it.";
    PreconditionRequired: "precondition-required", PRECONDITION_REQUIRED, "If-Match is required",
        "A request that changes an experiment must name the version it changes. This prevents two \
         people from overwriting each other's changes.",
        "Read the experiment and send its `ETag` in `If-Match`.";
    HeaderFieldsTooLarge: "header-fields-too-large", REQUEST_HEADER_FIELDS_TOO_LARGE,
        "The headers are too large",
        "The request's header fields are larger than the server accepts.",
        "Send fewer or smaller headers. Cookies are the usual cause, and the API needs no cookies.";
    Internal: "internal", INTERNAL_SERVER_ERROR, "Internal server error",
        "The server failed unexpectedly. The cause is in its log output, with the `request_id` of this response.",
        "Try again. If the problem persists, report the `request_id` to the server's operator.";
    Overloaded: "overloaded", SERVICE_UNAVAILABLE, "The server is overloaded",
        "Too many requests are running, or too much feedback is waiting to be written. The server \
         refused this request and did not process any part of it.",
        "Try again after the time in `Retry-After`. If you requested a duel, show your default \
         ranking instead.";
    Unavailable: "unavailable", SERVICE_UNAVAILABLE, "The server is temporarily unavailable",
        "The server is shutting down, or a resource it needs, usually the database, does not answer. \
         Feedback in the request may or may not have been recorded.",
        "Try again after the time in `Retry-After`. Feedback counts once, even if it is sent several \
         times.";
    ExperimentUnreadable: "experiment-unreadable", SERVICE_UNAVAILABLE,
        "This server cannot read the experiment",
        "The experiment contains data that is damaged or that this version of the server does not \
         know, such as a policy or a kind of event from a newer version. Other experiments are not \
         affected.",
        "Try again: another replica may be able to read it. The server's operator should upgrade the \
         server or check the output of `rankduel verify`.";
    Timeout: "timeout", GATEWAY_TIMEOUT, "The request timed out",
        "The request did not finish within the server's time limit and was cancelled. Unlike with \
         503, its effect may have been recorded.",
        "Try again after the time in `Retry-After`. Feedback counts once, even if it is sent several \
         times. After a change, read the experiment first.";
}

impl ProblemKind {
    /// Identifies the kind in its type URI, in code and in the OpenAPI document.
    pub fn slug(self) -> &'static str {
        self.entry().slug
    }

    /// The kind with this slug.
    pub fn of_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.slug() == slug)
    }

    /// The kind for a bare error response of the framework with this status.
    pub fn of_status(status: StatusCode) -> Option<Self> {
        match status {
            StatusCode::NOT_FOUND => Some(Self::NotFound),
            StatusCode::METHOD_NOT_ALLOWED => Some(Self::MethodNotAllowed),
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                Some(Self::InvalidRequest)
            }
            status if status.is_server_error() => Some(Self::Internal),
            _ => None,
        }
    }

    /// `type`: a relative reference, and the path of the page that explains the kind.
    pub fn type_uri(self) -> String {
        format!("/problems/{}", self.slug())
    }

    /// The status of a response with this kind of problem.
    pub fn status(self) -> StatusCode {
        self.entry().status
    }

    /// A short title, the same for every occurrence.
    pub fn title(self) -> &'static str {
        self.entry().title
    }

    /// The meaning of the problem, in full sentences.
    pub fn meaning(self) -> &'static str {
        self.entry().meaning
    }

    /// The remedy for the caller, in full sentences.
    pub fn remedy(self) -> &'static str {
        self.entry().remedy
    }

    /// The default `Retry-After`, for problems where retrying makes sense.
    pub fn retry_after_seconds(self) -> Option<u32> {
        match self {
            Self::Overloaded | Self::Unavailable | Self::Timeout => Some(1),
            Self::ExperimentUnreadable => Some(10),
            _ => None,
        }
    }
}
