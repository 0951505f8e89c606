//! A light load generator: one thread, persistent connections, and requests rendered in advance.
//!
//! It runs on the same machine as the server and takes processor time from it. It therefore uses
//! one thread with `poll` and no HTTP library: sending a request and reading its answer are two
//! system calls.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The pace of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each connection sends its next request after the answer to the previous one. This measures
    /// the maximum throughput of the server.
    Closed,
    /// A fixed number of requests per second, independent of answers. A latency counts from the
    /// time at which the request was due, so that it includes the wait for a free connection (no
    /// coordinated omission).
    Open(f64),
}

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Number of answered requests; all answers were successful.
    pub answered: u64,
    /// The time from the first request to the last answer.
    pub elapsed: Duration,
    /// In ascending order.
    latencies: Vec<Duration>,
}

impl Observed {
    /// Answers per second.
    pub fn per_second(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64()
    }

    /// The quantile of the latency in milliseconds.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let rank = (share * self.latencies.len() as f64).ceil() as usize;
        let latency = self.latencies.get(rank.saturating_sub(1)).copied().unwrap_or_default();
        latency.as_secs_f64() * 1000.0
    }
}

/// Persistent connections to one or more servers.
#[derive(Debug)]
pub struct Connections(Vec<TcpStream>);

/// The current request and answer of a connection.
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
    /// Opens `count` connections, distributed over the servers in turn.
    pub fn open(servers: &[SocketAddr], count: usize) -> anyhow::Result<Self> {
        let connect = |server: &SocketAddr| -> std::io::Result<TcpStream> {
            let stream = TcpStream::connect(server)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        let streams = servers.iter().cycle().take(count).map(connect).collect::<Result<_, _>>();
        Ok(Self(streams.context("cannot connect to the server")?))
    }

    /// Sends the requests that `next` renders, until it returns `false` or `within` has passed.
    /// Then waits for the last answers.
    pub fn run(
        &self,
        pace: Pace,
        within: Duration,
        mut next: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> anyhow::Result<Observed> {
        self.run_each(pace, within, |_, request| next(request))
    }

    /// Like [`Connections::run`], but `next` receives the index of the connection.
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
    let pause = Timespec::try_from(pause).context("the pause is invalid")?;
    match poll(watched, Some(&pause)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("poll failed"),
    }
}

/// Sends the rest of the request; `true` when it is complete.
fn send(mut stream: &TcpStream, exchange: &mut Exchange) -> anyhow::Result<bool> {
    while exchange.sent < exchange.request.len() {
        match stream.write(&exchange.request[exchange.sent..]) {
            Ok(bytes) => exchange.sent += bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error).context("a request cannot be sent"),
        }
    }
    Ok(true)
}

/// Reads the available part of the answer; `true` when it is complete. An answer other than 200 is
/// an error, because refused requests would distort the result.
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
            Err(error) => return Err(error).context("an answer cannot be read"),
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
        .context("an answer has no length")
}

/// The bytes of a POST request.
pub fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends one request on a separate connection, and returns the body of the successful answer.
pub fn ask(server: SocketAddr, method: &str, path: &str, body: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(server).context("cannot connect to the server")?;
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
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no body")?;
    if !head.starts_with("HTTP/1.1 20") {
        bail!("the server answered {method} {path} with {answer}");
    }
    Ok(body.to_owned())
}
