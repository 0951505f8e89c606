//! Metrics for Prometheus.
//!
//! One struct has a typed field for each metric. It is created once and passed on; nothing is
//! global, so every test reads its own numbers. Names have the prefix `rankduel_` and base units,
//! and labels have values from small closed sets. Values that are computed for each scrape (an
//! experiment's log position, its regret) come from a [`Collector`] that is registered with
//! [`Metrics::register`].

use std::fmt::Write;
use std::hash::Hash;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::process;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use serde::Serialize;
use utoipa::ToSchema;

/// The media type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The media type of [`as_plain`].
pub const PLAIN_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Labels of counted requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// Method, or `other`.
    pub method: &'static str,
    /// Template of the route, such as `/v1/experiments/{name}`, or `unmatched`.
    pub route: String,
    /// Status of the response.
    pub status: u16,
}

/// Labels of the duration of requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteLabels {
    /// Method, or `other`.
    pub method: &'static str,
    /// Template of the route, or `unmatched`.
    pub route: String,
}

/// Kind of an issued duel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DuelKind {
    /// Two different rankers.
    Pair,
    /// One ranker alone.
    SelfDuel,
    /// Two different rankers, for a batch.
    Batch,
    /// The control, to somebody who takes no part.
    Outside,
}

impl DuelKind {
    /// Every kind, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Pair, Self::SelfDuel, Self::Batch, Self::Outside];
}

impl EncodeLabelValue for DuelKind {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> std::fmt::Result {
        encoder.write_str(match self {
            Self::Pair => "pair",
            Self::SelfDuel => "self",
            Self::Batch => "batch",
            Self::Outside => "outside",
        })
    }
}

/// Label of issued duels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DuelLabels {
    /// Kind of the duel.
    pub kind: DuelKind,
}

/// The result of an item of feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackStatus {
    /// It counts and is durable. Where orders decide, also clicks of which nothing can count: none,
    /// or on a page of one ranker.
    Recorded,
    /// The same feedback was sent before; it counts once.
    Duplicate,
    /// Different feedback was sent before; that one counts.
    Conflict,
    /// It arrived after the duel expired.
    Expired,
    /// The duel was settled before these clicks arrived. They change nothing, even if sent again.
    Late,
    /// It is malformed, or its `duel_id` is not of this experiment.
    Invalid,
    /// It counts for nothing, which is no mistake: it has only values of metrics, of which none
    /// counts (`ignored` says why), is an event without a weight, or is about a page that takes no
    /// part.
    Ignored,
}

impl FeedbackStatus {
    /// Every status.
    pub const ALL: [Self; 7] = [
        Self::Recorded,
        Self::Duplicate,
        Self::Conflict,
        Self::Expired,
        Self::Late,
        Self::Invalid,
        Self::Ignored,
    ];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::Expired => "expired",
            Self::Late => "late",
            Self::Invalid => "invalid",
            Self::Ignored => "ignored",
        }
    }
}

impl EncodeLabelValue for FeedbackStatus {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> std::fmt::Result {
        encoder.write_str(self.name())
    }
}

/// Label of feedback.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct FeedbackLabels {
    /// Result of the feedback.
    pub status: FeedbackStatus,
}

/// The result of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderStatus {
    /// It is durable.
    Recorded,
    /// It was sent before; it counts once.
    Duplicate,
    /// Everything that it could count for has counted. It is not kept.
    Late,
    /// It was sent before with another content, which stands.
    Conflict,
    /// It is malformed: `detail` and `pointer` say where.
    Invalid,
}

impl OrderStatus {
    /// Every status.
    pub const ALL: [Self; 5] =
        [Self::Recorded, Self::Duplicate, Self::Late, Self::Conflict, Self::Invalid];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Duplicate => "duplicate",
            Self::Late => "late",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
        }
    }
}

impl EncodeLabelValue for OrderStatus {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> std::fmt::Result {
        encoder.write_str(self.name())
    }
}

/// Label of orders.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OrderLabels {
    /// Result of the order.
    pub status: OrderStatus,
}

/// Constructor of histograms of seconds.
#[derive(Debug, Clone)]
pub struct Seconds;

impl MetricConstructor<Histogram> for Seconds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(SECONDS)
    }
}

/// Buckets from 100 µs, because a duel takes less than a millisecond, to the time limit of a
/// request.
const SECONDS: [f64; 15] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    10.0,
];

/// Buckets for the delay of feedback: from a tenth of a second to a day.
pub const DELAY_SECONDS: [f64; 16] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 21_600.0,
    86_400.0,
];

/// Buckets for the events in one commit.
const EVENTS: [f64; 11] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0];

/// Defines [`Metrics`] by its table of metrics. Each has a help text, which is also its
/// documentation, a name, a type and, unless it is the default of the type, its value at the start.
macro_rules! metrics {
    (@start) => { Default::default() };
    (@start $start:expr) => { $start };
    ($( #[doc = $help:literal] $name:ident: $Type:ty $(= $start:expr)?; )*) => {
        /// Every metric.
        #[derive(Debug)]
        #[non_exhaustive]
        pub struct Metrics {
            $( #[doc = $help] pub $name: $Type, )*
            /// Issued duels, in the order of [`DuelKind::ALL`].
            duels: [Counter; DuelKind::ALL.len()],
            /// Feedback, in the order of [`FeedbackStatus::ALL`].
            feedback: [Counter; FeedbackStatus::ALL.len()],
            /// Orders, in the order of [`OrderStatus::ALL`].
            orders: [Counter; OrderStatus::ALL.len()],
            /// When this process last knew all entries of other processes.
            followed_at: Mutex<Option<Instant>>,
            registry: Mutex<Registry>,
        }

        impl Metrics {
            /// Every metric, at its start. All label values exist, so rates are right from the
            /// first event on.
            pub fn new() -> Self {
                let mut registry = Registry::with_prefix("rankduel");
                let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
                registry.register("build", "The running program", build);
                let duels = registered(&mut registry, "duels", "Issued duels", Family::default());
                let feedback = "Feedback, by its result";
                let feedback = registered(&mut registry, "feedback", feedback, Family::default());
                let orders = "Orders, by their result";
                let orders = registered(&mut registry, "orders", orders, Family::default());
                Self {
                    $( $name: registered(
                        &mut registry,
                        stringify!($name),
                        $help,
                        metrics!(@start $($start)?),
                    ), )*
                    duels: labelled(duels, DuelKind::ALL.map(|kind| DuelLabels { kind })),
                    feedback: labelled(
                        feedback,
                        FeedbackStatus::ALL.map(|status| FeedbackLabels { status }),
                    ),
                    orders: labelled(orders, OrderStatus::ALL.map(|status| OrderLabels { status })),
                    followed_at: Mutex::default(),
                    registry: Mutex::new(registry),
                }
            }
        }
    };
}

metrics! {
    /// Answered requests.
    http_requests: Family<RequestLabels, Counter>;
    /// Time from a request's head to its response's head.
    http_request_duration_seconds: Family<RouteLabels, Histogram, Seconds>
        = Family::new_with_constructor(Seconds);
    /// Running requests.
    http_requests_in_flight: Gauge;
    /// Requests refused because too many were running.
    http_requests_shed: Counter;
    /// Connections refused, or closed without a key, because there were too many.
    connections_shed: Counter;
    /// Panics caught and answered with 500.
    panics: Counter;
    /// Events in one commit of the log.
    commit_events: Histogram = Histogram::new(EVENTS);
    /// Duration of a commit of the log.
    commit_duration_seconds: Histogram = Histogram::new(SECONDS);
    /// Failed commits of the log.
    commit_failures: Counter;
    /// Log regressions: a log is shorter than before, so acknowledged outcomes are lost.
    log_regressions: Counter;
    /// Events waiting for a commit.
    queue_events: Gauge;
    /// Time from issuing a duel to having its answer in the log.
    feedback_delay_seconds: Histogram = Histogram::new(DELAY_SECONDS);
    /// Log entries that this process had not folded yet when it last polled.
    replica_lag_entries: Gauge;
    /// 1 while the database answers and this process can serve from it.
    database_up: Gauge;
    /// Seconds by which the clock of this machine is ahead of the database's; negative if behind.
    clock_ahead_seconds: Gauge<f64, AtomicU64>;
    /// Times that an experiment was loaded into memory.
    experiment_loads: Counter;
    /// Times that an experiment left memory because it was idle or memory was short.
    experiment_evictions: Counter;
    /// Notices that the webhook has taken.
    webhook_sent: Counter;
    /// Attempts to send a notice to the webhook that failed.
    webhook_failures: Counter;
    /// Notices that wait for the webhook.
    webhook_queue: Gauge;
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Add metrics that are computed for each scrape. Their names get the prefix, too: a collector
    /// uses `experiment_log_position`.
    pub fn register(&self, collector: Box<dyn Collector>) {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).register_collector(collector);
    }

    /// This process knows all entries of other processes.
    pub fn followed(&self) {
        *self.followed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// The time since this process last knew all entries of other processes. No clock that was set
    /// changes it.
    pub fn replication_age(&self) -> Option<Duration> {
        let followed_at = *self.followed_at.lock().unwrap_or_else(PoisonError::into_inner);
        followed_at.map(|at| at.elapsed())
    }

    /// Count an issued duel.
    pub fn duel(&self, kind: DuelKind) {
        self.duels[kind as usize].inc();
    }

    /// Count a piece of feedback.
    pub fn feedback(&self, status: FeedbackStatus) {
        self.feedback[status as usize].inc();
    }

    /// Count an order.
    pub fn order(&self, status: OrderStatus) {
        self.orders[status as usize].inc();
    }

    /// All metrics in the OpenMetrics text format ([`CONTENT_TYPE`]), and after them what the system
    /// knows of this process, under the names that every program uses.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        encode_registry(&mut text, &registry)?;
        process::encode(&mut text)?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

/// Metrics in the older text format of Prometheus ([`PLAIN_CONTENT_TYPE`]): counters and information
/// have the names of their samples, and there are no units and no end.
pub fn as_plain(open_metrics: &str) -> String {
    let lines = open_metrics.lines();
    let is_kept = |line: &&str| !line.starts_with("# UNIT ") && *line != "# EOF";
    let mut plain = String::with_capacity(open_metrics.len());
    // the line with the help of a family comes before that with its type
    let mut help = None;
    for line in lines.filter(is_kept) {
        if let Some(of_family) = line.strip_prefix("# HELP ") {
            help = of_family.split_once(' ');
            continue;
        }
        let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' '))
        else {
            plain.push_str(line);
            plain.push('\n');
            continue;
        };
        let (end, kind) = match kind {
            "counter" => ("_total", "counter"),
            "info" => ("_info", "gauge"),
            kind => ("", kind),
        };
        if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
            plain.push_str(&format!("# HELP {name}{end} {help}\n"));
        }
        plain.push_str(&format!("# TYPE {name}{end} {kind}\n"));
    }
    plain
}

/// The counters of these labels. Finding one by its label takes longer than counting.
fn labelled<L, const N: usize>(family: Family<L, Counter>, labels: [L; N]) -> [Counter; N]
where
    L: Clone + Eq + Hash,
{
    labels.map(|label| family.get_or_create_owned(&label))
}

/// Register a metric. The unit of one whose name ends with `_seconds` is seconds.
fn registered<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    let help = help.trim().trim_end_matches('.');
    match name.strip_suffix("_seconds") {
        Some(name) => registry.register_with_unit(name, help, Unit::Seconds, metric.clone()),
        None => registry.register(name, help, metric.clone()),
    }
    metric
}
