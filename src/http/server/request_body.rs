//! Reading the bodies of requests, under a common budget of memory.
//!
//! A body is read before its request takes a permit: a client that sends slowly holds a connection
//! and the bytes that it has sent, and nothing else.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use axum::BoxError;
use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::problem::{Problem, ProblemKind};

/// Bytes of each body that the budget does not count, so that large bodies cannot keep feedback
/// out.
const FREE_BYTES: usize = 16 * 1024;
/// The unit of the budget.
const UNIT_BYTES: usize = 1024;

/// Times the limit that is read and dropped of a body that is too large.
const DROPPED_TIMES: usize = 8;

/// The memory that bodies may take.
#[derive(Debug)]
pub(crate) struct BodyBudget(Arc<Semaphore>);

/// The share of a body in the budget, while the request runs.
#[derive(Debug, Default)]
pub(crate) struct Share(Option<OwnedSemaphorePermit>);

impl BodyBudget {
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / UNIT_BYTES).min(Semaphore::MAX_PERMITS))))
    }

    /// The whole body, at most `limit` bytes.
    pub async fn read<B>(
        &self,
        headers: &HeaderMap,
        mut body: Pin<&mut B>,
        limit: usize,
    ) -> Result<(Bytes, Share), Problem>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        if body.is_end_stream() {
            return Ok((Bytes::new(), Share::default()));
        }
        refuse_coding(headers)?;
        let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let declared = declared.and_then(|text| text.parse::<usize>().ok());
        let mut share = Share::default();
        let mut whole = Vec::new();
        let mut fits = declared.is_none_or(|bytes| bytes <= limit);
        while fits && let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
            let frame = frame.map_err(|error| incomplete(&*error.into()))?;
            let Ok(chunk) = frame.into_data() else { continue };
            fits = whole.len() + chunk.len() <= limit;
            if !fits {
                continue;
            }
            if whole.is_empty() && declared == Some(chunk.len()) {
                self.grow(&mut share, chunk.len())?;
                return Ok((chunk, share));
            }
            self.grow(&mut share, whole.len() + chunk.len())?;
            whole.extend_from_slice(&chunk);
        }
        if !fits {
            // a client that asks before it sends has sent nothing
            let has_sent = !whole.is_empty() || !headers.contains_key(header::EXPECT);
            drop((whole, share));
            if has_sent {
                drop_rest(body, DROPPED_TIMES * limit).await;
            }
            return Err(too_large(limit));
        }
        Ok((whole.into(), share))
    }

    /// Let the share of a body have this number of bytes.
    fn grow(&self, share: &mut Share, bytes: usize) -> Result<(), Problem> {
        let units = bytes.saturating_sub(FREE_BYTES).div_ceil(UNIT_BYTES);
        let missing = units.saturating_sub(share.0.as_ref().map_or(0, |own| own.num_permits()));
        if missing == 0 {
            return Ok(());
        }
        let more = u32::try_from(missing).ok();
        let more = more.and_then(|more| Arc::clone(&self.0).try_acquire_many_owned(more).ok());
        let more = more.ok_or_else(|| {
            Problem::new(
                ProblemKind::Overloaded,
                "The bodies of other requests take all memory that this server has for them.",
            )
        })?;
        match &mut share.0 {
            Some(own) => own.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

/// Refuse a body that is compressed: its size would say nothing about the memory that it takes.
fn refuse_coding(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(coding) = headers.get(header::CONTENT_ENCODING) else { return Ok(()) };
    let coding = String::from_utf8_lossy(coding.as_bytes());
    if coding.trim().eq_ignore_ascii_case("identity") {
        return Ok(());
    }
    let detail = format!("The Content-Encoding is {coding:?}; send the body without one.");
    Err(Problem::new(ProblemKind::UnsupportedMediaType, detail))
}

/// Read at most so many bytes more. Many clients read no response before they have sent their whole
/// body: they would see a broken connection instead.
async fn drop_rest<B: Body<Data = Bytes>>(mut body: Pin<&mut B>, mut left: usize) {
    while let Some(Ok(frame)) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        let Some(fewer) = left.checked_sub(bytes) else { break };
        left = fewer;
    }
}

fn too_large(limit: usize) -> Problem {
    Problem::new(
        ProblemKind::PayloadTooLarge,
        format!("The body is larger than this server accepts here: {limit} bytes."),
    )
}

fn incomplete(error: &dyn Error) -> Problem {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    Problem::new(
        ProblemKind::MalformedJson,
        format!("The body did not arrive completely: {cause}."),
    )
}
