//! Logs on standard error: text for people, JSON for machines. A thread of its own writes them, so
//! that no request waits for a reader of the log that has stopped reading.

use std::io::{BufWriter, IsTerminal};
use std::time::Duration;

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::EXPORTED;
use super::export::Export;

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// Text if standard error is a terminal, else JSON.
    #[default]
    Auto,
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Lines that may wait to be written: some megabytes. Further ones are dropped.
const WAITING_LINES: usize = 10_000;
/// How often dropped lines are looked for.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// The log. Dropping it writes the lines that wait, for about a second at most.
#[must_use]
pub struct Log {
    dropped: ErrorCounter,
    _writer: WorkerGuard,
}

impl Log {
    /// Log it whenever lines were dropped, until the process ends.
    pub fn report_dropped(&self) -> impl Future<Output = ()> + Send + 'static {
        let dropped = self.dropped.clone();
        async move {
            let mut reported = 0;
            loop {
                tokio::time::sleep(REPORT_EVERY).await;
                let lines = dropped.dropped_lines();
                if lines > reported {
                    reported = lines;
                    // if this line is dropped too, the next round says it again
                    tracing::warn!(lines, "the log is read too slowly: lines of it were dropped");
                }
            }
        }
    }
}

/// Write the events that pass `filter`, and panics, to standard error, and give `export` its spans.
/// Once per process.
pub fn init(filter: &str, format: LogFormat, export: Option<&Export>) -> Result<Log, String> {
    let invalid = |why: &str| {
        format!(
            "the log filter {filter:?} is invalid: {why}; write a level such as `info`, or \
             `info,rankduel::access=warn`"
        )
    };
    let targets: Targets =
        filter.parse().map_err(|error: ParseError| invalid(&error.to_string()))?;
    // no line shows these spans, and to format them took a third of what a `next-duel` cost
    let targets = targets.with_target(EXPORTED, LevelFilter::OFF);
    // A word that is no level is read as the name of a module, and nothing else would be logged.
    let is_known = |word: &str| {
        let level = word.parse::<LevelFilter>().is_ok();
        level || word.is_empty() || word.contains('=') || word.starts_with("rankduel")
    };
    if let Some(word) = filter.split(',').find(|word| !is_known(word.trim())) {
        let why = format!("{word:?} is not a level: off, error, warn, info, debug or trace");
        return Err(invalid(&why));
    }
    let (stderr, writer) = NonBlockingBuilder::default()
        .buffered_lines_limit(WAITING_LINES)
        .thread_name("log")
        // flushed once no line waits: of many requests at once, each line was a system call
        .finish(BufWriter::new(std::io::stderr()));
    let log = Log { dropped: stderr.error_counter(), _writer: writer };
    let lines = tracing_subscriber::fmt::layer().with_writer(stderr);
    let text = match format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    let spans = tracing_subscriber::registry().with(export.and_then(Export::layer));
    let set = if text {
        let lines = lines.with_ansi(std::io::stderr().is_terminal());
        spans.with(lines.with_filter(targets)).try_init()
    } else {
        let lines = lines.json().flatten_event(true).with_current_span(true).with_span_list(false);
        spans.with(lines.with_filter(targets)).try_init()
    };
    set.map_err(|_| "logging is already set up")?;
    if let Some(export) = export {
        export.log();
    }
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("(no message)");
        let place = panic.location().map(ToString::to_string);
        let backtrace = std::backtrace::Backtrace::capture();
        let backtrace =
            (backtrace.status() == std::backtrace::BacktraceStatus::Captured).then_some(backtrace);
        tracing::error!(
            place,
            backtrace = backtrace.map(|trace| trace.to_string()),
            "panic: {message}"
        );
    }));
    Ok(log)
}
