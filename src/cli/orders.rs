//! `rankduel orders`: sends the orders of a file to a server.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use axum::body::{Body, to_bytes};
use clap::Args;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Request, StatusCode, Uri};
use serde::Deserialize;
use serde_json::Value;

use super::output::print;
use super::{CommandError, one_line, runtime};
use crate::config::text_or_file;
use crate::service::outgoing::{HttpClient, http_client};
use rankduel_engine::experiment_spec::name_error;

/// Well below the server's limit of a body.
const BYTES_MAX: usize = 1024 * 1024;
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
const WITHIN: Duration = Duration::from_secs(60);
/// The pauses before further attempts of a request double: they last a minute in all.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(32);

/// Send the orders of a file to a server
///
/// The file has an order or a cancellation on each line, as in the body of POST /v1/orders. The
/// command sends a mebibyte at a time, repeats a request that fails for a moment, and prints the
/// number of orders by status. It names the line of each order that is `invalid` or a `conflict`.
/// To resume, run it again: orders that the server has are duplicates.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Exit codes: 0 all orders were sent and none is invalid; 1 one is invalid, \
    the file has none, or the server does not take them; 2 wrong call."
)]
pub(super) struct Arguments {
    /// The file, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The address of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7171")]
    url: String,

    /// An API key with the scope `feedback`. Put it into the variable, not on the command line.
    /// @PATH reads it from the file PATH
    #[arg(long, env = "RANKDUEL_KEY", hide_env_values = true, value_parser = text_or_file)]
    key: Option<String>,

    /// Send them to this experiment [default: every experiment of the key that orders decide]
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let path = &arguments.file;
    let mut file: Box<dyn BufRead> = match path.as_os_str() == "-" {
        true => Box::new(BufReader::new(io::stdin())),
        false => Box::new(BufReader::new(
            File::open(path)
                .map_err(|error| CommandError::Usage(format!("{}: {error}", path.display())))?,
        )),
    };
    let receiver = Receiver::of(arguments)?;
    let mut sent = Sent::default();
    let result = runtime()?.block_on(send(&mut *file, &receiver, &mut sent));
    print(sent.counts())?;
    result.context("the rest is not sent; to resume, run the command again")?;
    if sent.counts.is_empty() {
        return Err(anyhow!("the file has no orders").into());
    }
    match sent.counts.get("invalid") {
        Some(1) => Err(anyhow!("1 order is invalid: see the line above").into()),
        Some(number) => Err(anyhow!("{number} orders are invalid: see the lines above").into()),
        None => Ok(()),
    }
}

/// Orders by status so far.
#[derive(Default)]
struct Sent {
    counts: BTreeMap<String, u64>,
}

impl Sent {
    fn add(&mut self, line: usize, result: Answered) {
        if matches!(&*result.status, "invalid" | "conflict") {
            let pointer = result.pointer.map_or_else(String::new, |pointer| format!("{pointer}: "));
            let detail = result.detail.unwrap_or_default();
            eprintln!("line {line}: {}: {pointer}{detail}", result.status);
        }
        *self.counts.entry(result.status).or_default() += 1;
    }

    fn counts(&self) -> String {
        self.counts.iter().map(|(status, number)| format!("{status} {number}\n")).collect()
    }
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Answered>,
}

/// The result of an order.
#[derive(Deserialize)]
struct Answered {
    status: String,
    detail: Option<String>,
    pointer: Option<String>,
}

/// Orders with the numbers of their lines.
#[derive(Default)]
struct Batch {
    lines: Vec<usize>,
    orders: Vec<u8>,
}

impl Batch {
    fn add(&mut self, line: usize, order: &[u8]) {
        self.orders.extend_from_slice(order);
        self.orders.push(b'\n');
        self.lines.push(line);
    }

    /// Whether it must be sent before another order of so many bytes.
    fn is_full(&self, bytes: usize) -> bool {
        !self.lines.is_empty() && self.orders.len() + bytes > BYTES_MAX
    }
}

/// Send the orders of a file.
async fn send(file: &mut dyn BufRead, receiver: &Receiver, sent: &mut Sent) -> anyhow::Result<()> {
    let mut batch = Batch::default();
    // a line that is not UTF-8 is refused by the server, like any other that is wrong
    for (number, line) in (1..).zip(file.split(b'\n')) {
        let line = line.with_context(|| format!("line {number} cannot be read"))?;
        // some programs begin a file with a byte order mark
        let order = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line).trim_ascii();
        if order.is_empty() {
            continue;
        }
        if batch.is_full(order.len()) {
            receiver.send(std::mem::take(&mut batch), sent).await?;
        }
        batch.add(number, order);
    }
    match batch.lines.is_empty() {
        true => Ok(()),
        false => receiver.send(batch, sent).await,
    }
}

/// The server that gets the orders.
struct Receiver {
    client: HttpClient<Body>,
    url: Uri,
    authorization: Option<HeaderValue>,
}

/// Why a request has no result.
struct Failed {
    why: String,
    is_transient: bool,
    retry_after: Option<Duration>,
}

impl Receiver {
    fn of(arguments: &Arguments) -> Result<Self, CommandError> {
        let wrong = |why: &str| CommandError::Usage(why.to_owned());
        if let Some(error) = arguments.experiment.as_deref().and_then(name_error) {
            return Err(wrong(&format!("--experiment: {}", error.detail)));
        }
        let path = match &arguments.experiment {
            Some(name) => format!("experiments/{name}/orders"),
            None => "orders".to_owned(),
        };
        let url = format!("{}/v1/{path}", arguments.url.trim_end_matches('/')).parse::<Uri>().ok();
        let url = url.filter(|url| {
            let is_host = url.authority().is_some_and(|host| !host.as_str().contains('@'));
            let has_more = arguments.url.contains(['?', '#']);
            is_host && !has_more && matches!(url.scheme_str(), Some("http" | "https"))
        });
        // neither error may show a password or the key
        let url = url.ok_or_else(|| {
            wrong("--url is not the address of a server; write it like http://127.0.0.1:7171")
        })?;
        let header = |key| HeaderValue::from_str(&format!("Bearer {key}"));
        let authorization = arguments.key.as_ref().map(header).transpose();
        let authorization =
            authorization.map_err(|_| wrong("--key has a character that no key has"))?;
        let client = http_client(&url).map_err(anyhow::Error::from)?;
        Ok(Self { client, url, authorization })
    }

    /// Send orders together. Repeats what may succeed in a moment: the server counts each order
    /// once.
    async fn send(&self, Batch { lines, orders }: Batch, sent: &mut Sent) -> anyhow::Result<()> {
        let mut pause = FIRST_PAUSE;
        loop {
            let failed = match self.post(&orders, lines.len()).await {
                Ok(results) => {
                    lines.into_iter().zip(results).for_each(|(line, it)| sent.add(line, it));
                    return Ok(());
                }
                Err(failed) => failed,
            };
            let why = format!("{}: {}", self.url, failed.why);
            if !failed.is_transient || pause > PAUSE_MAX {
                let first = lines.first().copied().unwrap_or_default();
                return Err(anyhow!("from line {first} on: {why}"));
            }
            eprintln!("{why}; trying again");
            tokio::time::sleep(failed.retry_after.unwrap_or(pause).clamp(pause, PAUSE_MAX)).await;
            pause *= 2;
        }
    }

    /// The results of one attempt.
    async fn post(&self, body: &[u8], number: usize) -> Result<Vec<Answered>, Failed> {
        let failed = |why, is_transient| Failed { why, is_transient, retry_after: None };
        let mut request =
            Request::post(self.url.clone()).header(CONTENT_TYPE, "application/x-ndjson");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Body::from(body.to_owned()));
        let request = request.map_err(|error| failed(error.to_string(), false))?;
        let answer = async {
            let (head, body) = self.client.request(request).await?.into_parts();
            anyhow::Ok((head, to_bytes(Body::new(body), ANSWER_BYTES_MAX).await?))
        };
        let (head, text) = tokio::time::timeout(WITHIN, answer)
            .await
            .map_err(|_| failed(format!("no answer within {} s", WITHIN.as_secs()), true))?
            .map_err(|error| failed(one_line(&error), true))?;
        let status = head.status;
        if status == StatusCode::OK {
            let answer = serde_json::from_slice::<Answer>(&text).ok();
            let results = answer.map(|it| it.results).filter(|results| results.len() == number);
            return results.ok_or_else(|| failed("the answer is not from rankduel".into(), true));
        }
        let problem = serde_json::from_slice(&text).unwrap_or(Value::Null);
        let detail = problem["detail"].as_str().unwrap_or_default();
        // a line of more than a mebibyte is sent alone, and may be more than the server reads
        if status == StatusCode::PAYLOAD_TOO_LARGE && number == 1 {
            let (status, detail) = ("invalid".into(), Some(detail.to_owned()));
            return Ok(vec![Answered { status, detail, pointer: None }]);
        }
        let seconds =
            head.headers.get(RETRY_AFTER).and_then(|text| text.to_str().ok()?.parse().ok());
        Err(Failed {
            why: format!("{status}: {detail}"),
            is_transient: status.is_server_error() || matches!(status.as_u16(), 408 | 429),
            retry_after: seconds.map(Duration::from_secs),
        })
    }
}
