//! A light load generator: one thread, kept connections, requests that were rendered before.
//!
//! It runs beside the server on the same machine, so what it spends is taken from the server. Hence
//! one thread over `poll` and no HTTP library: sending a request and reading its answer are two
//! system calls.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each connection sends its next request when it has its answer: what the server can do at
    /// most.
    Closed,
    /// So many a second, whether answers come or not. A latency counts from the moment at which its
    /// request was due, so that a request that waits for a free connection is seen to wait (no
    /// coordinated omission).
    Open(f64),
}

/// What a run saw.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Requests that were answered, all of them well.
    pub answered: u64,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// Ascending.
    latencies: Vec<Duration>,
}

impl Observed {
    /// Answers a second.
    pub fn per_second(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency in milliseconds that this share of the requests did not exceed.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let rank = (share * self.latencies.len() as f64).ceil() as usize;
        let latency = self.latencies.get(rank.saturating_sub(1)).copied().unwrap_or_default();
        latency.as_secs_f64() * 1000.0
    }
}

/// Kept connections to one or more servers.
#[derive(Debug)]
pub struct Connections(Vec<TcpStream>);

/// What one connection is at.
#[derive(Debug, Default)]
struct Exchange {
    request: Vec<u8>,
    sent: usize,
    answer: Vec<u8>,
    due: Option<Instant>,
}

impl Exchange {
    fn clear(&mut self) {
        self.request.clear();
        self.sent = 0;
        self.answer.clear();
    }
}

impl Connections {
    /// `count` connections, dealt out to the servers in turn.
    pub fn open(servers: &[SocketAddr], count: usize) -> anyhow::Result<Self> {
        let connect = |server: &SocketAddr| -> std::io::Result<TcpStream> {
            let stream = TcpStream::connect(server)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        let streams = servers.iter().cycle().take(count).map(connect).collect::<Result<_, _>>();
        Ok(Self(streams.context("the server cannot be connected to")?))
    }

    /// Send what `next` renders until it says that there is no more, or for `within`; then wait for
    /// the last answers.
    pub fn run(
        &self,
        pace: Pace,
        within: Duration,
        mut next: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> anyhow::Result<Observed> {
        self.run_each(pace, within, |_, request| next(request))
    }

    /// The same, where `next` is told for which of the connections it renders.
    pub fn run_each(
        &self,
        pace: Pace,
        within: Duration,
        mut next: impl FnMut(usize, &mut Vec<u8>) -> bool,
    ) -> anyhow::Result<Observed> {
        let mut exchanges: Vec<Exchange> = self.0.iter().map(|_| Exchange::default()).collect();
        let mut idle: Vec<usize> = (0..self.0.len()).collect();
        let mut watched = self.watched(&exchanges);
        let mut latencies = Vec::new();
        let (mut issued, mut exhausted) = (0u64, false);
        let started = Instant::now();
        let mut last_answer = started;
        loop {
            let now = Instant::now();
            exhausted |= now - started >= within;
            let mut pause = Duration::from_millis(100);
            while let (false, Some(&connection)) = (exhausted, idle.last()) {
                let due = match pace {
                    Pace::Closed => Instant::now(),
                    Pace::Open(rate) => started + Duration::from_secs_f64(issued as f64 / rate),
                };
                if due > now && pace != Pace::Closed {
                    pause = due - now;
                    break;
                }
                let exchange = &mut exchanges[connection];
                exchange.clear();
                if !next(connection, &mut exchange.request) {
                    exhausted = true;
                    break;
                }
                idle.pop();
                issued += 1;
                exchange.due = Some(due);
                if !send(&self.0[connection], exchange)? {
                    watched = self.watched(&exchanges);
                }
            }
            if exhausted && idle.len() == self.0.len() {
                break;
            }
            wait(&mut watched, pause)?;
            let ready: Vec<usize> =
                (0..watched.len()).filter(|&at| !watched[at].revents().is_empty()).collect();
            for connection in ready {
                let exchange = &mut exchanges[connection];
                if exchange.sent < exchange.request.len() && send(&self.0[connection], exchange)? {
                    watched = self.watched(&exchanges);
                }
                let exchange = &mut exchanges[connection];
                if receive(&self.0[connection], exchange)?
                    && let Some(due) = exchange.due.take()
                {
                    last_answer = Instant::now();
                    latencies.push(last_answer - due);
                    idle.push(connection);
                }
            }
        }
        latencies.sort_unstable();
        Ok(Observed { answered: latencies.len() as u64, elapsed: last_answer - started, latencies })
    }

    fn watched(&self, exchanges: &[Exchange]) -> Vec<PollFd<'_>> {
        let flags = |exchange: &Exchange| {
            if exchange.sent < exchange.request.len() {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            }
        };
        self.0
            .iter()
            .zip(exchanges)
            .map(|(stream, exchange)| PollFd::new(stream, flags(exchange)))
            .collect()
    }
}

fn wait(watched: &mut [PollFd<'_>], pause: Duration) -> anyhow::Result<()> {
    let pause = Timespec::try_from(pause).context("a pause")?;
    match poll(watched, Some(&pause)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("waiting for answers"),
    }
}

/// Whether the request is out whole.
fn send(mut stream: &TcpStream, exchange: &mut Exchange) -> anyhow::Result<bool> {
    while exchange.sent < exchange.request.len() {
        match stream.write(&exchange.request[exchange.sent..]) {
            Ok(bytes) => exchange.sent += bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error).context("sending a request"),
        }
    }
    Ok(true)
}

/// Whether the answer is there whole. One that is not good ends the run: what a server refuses is
/// quickly done.
fn receive(mut stream: &TcpStream, exchange: &mut Exchange) -> anyhow::Result<bool> {
    let mut part = [0; 16 * 1024];
    loop {
        match stream.read(&mut part) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(bytes) => {
                exchange.answer.extend_from_slice(&part[..bytes]);
                if bytes < part.len() {
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error).context("reading an answer"),
        }
    }
    let Some(head) = exchange.answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(false);
    };
    let body = body_bytes(&exchange.answer[..head])?;
    if exchange.answer.len() < head + 4 + body {
        return Ok(false);
    }
    if !exchange.answer.starts_with(b"HTTP/1.1 200") {
        bail!("the server answered {}", String::from_utf8_lossy(&exchange.answer));
    }
    Ok(true)
}

fn body_bytes(head: &[u8]) -> anyhow::Result<usize> {
    const NAME: &[u8] = b"content-length:";
    head.split(|&byte| byte == b'\n')
        .find_map(|line| {
            let (name, value) = line.split_at_checked(NAME.len())?;
            let value = name.eq_ignore_ascii_case(NAME).then_some(value)?;
            std::str::from_utf8(value).ok()?.trim().parse().ok()
        })
        .context("an answer without a length")
}

/// A POST as it goes over the wire.
pub fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// One request on a connection of its own; the body of its answer, which must be a good one.
pub fn ask(server: SocketAddr, method: &str, path: &str, body: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(server).context("the server cannot be connected to")?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .and_then(|()| stream.flush())
    .with_context(|| format!("{method} {path}"))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(|| format!("{method} {path}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
    if !head.starts_with("HTTP/1.1 20") {
        bail!("{method} {path} was answered with {answer}");
    }
    Ok(body.to_owned())
}
