//! Refuses requests that two readers can understand differently.
//!
//! hyper accepts a bare LF as the end of a line, any coding before `chunked`, and any number of
//! `Host`s. A proxy in front may read such a request otherwise, and a request can then hide in
//! another one. [`Strict`] reads the bytes before hyper does. It passes on no end of such a line,
//! but bytes that hyper refuses in its place: hyper answers 400 and closes the connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// A line buffer of this size is kept between requests. Most header lines fit.
const LINE_KEPT_BYTES: usize = 256;

/// Takes the place of the rest of a refused request. A NUL is valid nowhere. The empty line
/// completes the head, which hyper checks only then.
const REFUSED: &[u8] = b"\0\r\n\r\n";

/// The bytes of a connection from a client.
pub(super) struct Strict<R> {
    reader: R,
    part: Part,
    /// The current line, as far as it has arrived. hyper bounds it: it stops reading a head, or a
    /// line between chunks, that is too long.
    line: Vec<u8>,
    head: Head,
    /// The rest of [`REFUSED`] that hyper has not read yet, once a request was refused.
    refused: Option<&'static [u8]>,
}

/// The part of a request that the next byte belongs to.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The request line and the headers.
    Head,
    /// This many bytes of a body, or of a chunk and the end of its line.
    Body(u64),
    ChunkSize,
    Trailers,
}

/// The lines of a head that decide where the request ends and whom it is for.
#[derive(Debug, Default)]
struct Head {
    has_begun: bool,
    /// HTTP/1.0 needs no `Host`.
    needs_host: bool,
    has_host: bool,
    is_chunked: bool,
    length: u64,
}

impl<R> Strict<R> {
    pub fn new(reader: R) -> Self {
        let (line, head) = (Vec::new(), Head::default());
        Self { reader, part: Part::Head, line, head, refused: None }
    }

    /// Follow these bytes. Returns how many of them precede the end of a line that is refused.
    fn follow(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if let Part::Body(left) = self.part {
                let taken = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                at += taken;
                match left - taken as u64 {
                    0 if self.head.is_chunked => self.part = Part::ChunkSize,
                    0 => self.begin(),
                    left => self.part = Part::Body(left),
                }
                continue;
            }
            let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
                self.line.extend_from_slice(rest);
                return None;
            };
            self.line.extend_from_slice(&rest[..end]);
            if self.line.pop() != Some(b'\r') || !self.accepts_line() {
                return Some(at + end);
            }
            self.line.clear();
            at += end + 1;
        }
        None
    }

    /// Take the line into account. `false` if it must be refused.
    fn accepts_line(&mut self) -> bool {
        match self.part {
            Part::Head if self.line.is_empty() => return self.ends_head(),
            Part::Head => return self.head.note(&self.line),
            Part::ChunkSize => {
                let size = self.line.split(|&byte| byte == b';').next().unwrap_or_default();
                let size = std::str::from_utf8(size.trim_ascii()).ok();
                match size.and_then(|size| u64::from_str_radix(size, 16).ok()) {
                    Some(0) => self.part = Part::Trailers,
                    Some(size) => self.part = Part::Body(size.saturating_add(2)),
                    None => return false,
                }
            }
            Part::Trailers if self.line.is_empty() => self.begin(),
            Part::Trailers | Part::Body(_) => {}
        }
        true
    }

    fn ends_head(&mut self) -> bool {
        let Head { has_begun, needs_host, has_host, is_chunked, length } = self.head;
        match (is_chunked, length) {
            // empty lines before a request line
            _ if !has_begun => {}
            (true, _) => self.part = Part::ChunkSize,
            (false, 0) => self.begin(),
            (false, length) => self.part = Part::Body(length),
        }
        has_host || !needs_host
    }

    /// Wait for the next request.
    fn begin(&mut self) {
        self.part = Part::Head;
        self.head = Head::default();
        self.line.shrink_to(LINE_KEPT_BYTES);
    }
}

impl Head {
    /// Note a line. Returns `false` if the request must be refused.
    fn note(&mut self, line: &[u8]) -> bool {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.needs_host = !line.ends_with(b"HTTP/1.0");
            return true;
        }
        // hyper refuses a line without a colon
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { return true };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"host") {
            let is_first = !std::mem::replace(&mut self.has_host, true);
            return is_first;
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let is_first = !std::mem::replace(&mut self.is_chunked, true);
            return is_first && value.eq_ignore_ascii_case(b"chunked");
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            // hyper refuses a length that is no number
            let length = std::str::from_utf8(value).ok().and_then(|length| length.parse().ok());
            self.length = length.unwrap_or_default();
        }
        true
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Strict<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.refused.is_none() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.reader).poll_read(context, buffer))?;
            if let Some(accepted) = this.follow(&buffer.filled()[before..]) {
                buffer.set_filled(before + accepted);
                this.refused = Some(REFUSED);
            }
        }
        if let Some(rest) = &mut this.refused {
            let (now, later) = rest.split_at(rest.len().min(buffer.remaining()));
            buffer.put_slice(now);
            *rest = later;
        }
        Poll::Ready(Ok(()))
    }
}
