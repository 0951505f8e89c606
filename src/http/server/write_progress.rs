//! A stream that fails when the other end does not take what is sent to it.
//!
//! The time limit of a request ends with its response, and the response can be large. Without a
//! limit of its own, a client that reads nothing keeps it in memory.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How fast the other end must read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Bytes that it must take in each period in which anything waits for it.
    pub bytes: usize,
    /// The period.
    pub period: Duration,
}

/// A stream whose other end must read at a [`Pace`].
#[derive(Debug)]
pub(crate) struct WriteProgress<S> {
    stream: S,
    pace: Pace,
    /// The end of the period; `None` while nothing waits.
    period: Option<Pin<Box<Sleep>>>,
    /// Bytes that were taken in this period.
    taken: usize,
}

impl<S> WriteProgress<S> {
    pub fn new(stream: S, pace: Pace) -> Self {
        Self { stream, pace, period: None, taken: 0 }
    }

    fn written(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<Result<usize>>,
    ) -> Poll<Result<usize>> {
        match result {
            Poll::Ready(Ok(bytes)) => self.taken += bytes,
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                if let Some(error) = self.period_ends(context) {
                    return Poll::Ready(Err(error));
                }
            }
        }
        result
    }

    /// The error if a period ends now in which too little was taken.
    fn period_ends(&mut self, context: &mut Context<'_>) -> Option<Error> {
        let Pace { bytes, period } = self.pace;
        if self.period.is_none() {
            self.taken = 0;
        }
        let ends = self.period.get_or_insert_with(|| Box::pin(tokio::time::sleep(period)));
        while ends.as_mut().poll(context).is_ready() {
            if self.taken < bytes {
                return Some(Error::new(
                    ErrorKind::TimedOut,
                    "the client does not read its answer",
                ));
            }
            self.taken = 0;
            ends.as_mut().reset(Instant::now() + period);
        }
        None
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteProgress<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteProgress<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        // Everything was written before a flush, so nothing waits.
        self.period = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
