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

use prometheus_client::collector::Collector;
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
    /// It counts and is durable.
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
}

impl FeedbackStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Recorded, Self::Duplicate, Self::Conflict, Self::Expired, Self::Late, Self::Invalid];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::Expired => "expired",
            Self::Late => "late",
            Self::Invalid => "invalid",
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

/// Every metric.
#[derive(Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// Notices that the webhook has taken.
    pub webhook_sent: Counter,
    /// Failed attempts to send one.
    pub webhook_failures: Counter,
    /// Notices that wait for the webhook.
    pub webhook_queue: Gauge,
    registry: Mutex<Registry>,
    /// Answered requests.
    pub http_requests: Family<RequestLabels, Counter>,
    /// Time from reading a request's head to having its response's head.
    pub http_request_duration_seconds: Family<RouteLabels, Histogram, Seconds>,
    /// Running requests.
    pub http_requests_in_flight: Gauge,
    /// Requests refused because too many were running.
    pub http_requests_shed: Counter,
    /// Connections that were refused, or closed before they showed a key, because there were too
    /// many.
    pub connections_shed: Counter,
    /// Panics caught and answered with 500.
    pub panics: Counter,
    /// Issued duels, in the order of [`DuelKind::ALL`].
    duels: [Counter; DuelKind::ALL.len()],
    /// Feedback, in the order of [`FeedbackStatus::ALL`].
    feedback: [Counter; FeedbackStatus::ALL.len()],
    /// Events in one commit of the log.
    pub commit_events: Histogram,
    /// Duration of a commit of the log.
    pub commit_duration_seconds: Histogram,
    /// Failed commits of the log.
    pub commit_failures: Counter,
    /// Log regressions: the database has lost acknowledged entries.
    pub log_regressions: Counter,
    /// Events waiting for a commit.
    pub queue_events: Gauge,
    /// Time from issuing a duel to having its answer in the log.
    pub feedback_delay_seconds: Histogram,
    /// Log entries that this process had not folded yet when it last polled, of the experiment with
    /// the most.
    pub replica_lag_entries: Gauge,
    /// 1 while the database answers and this process can serve from it.
    pub database_up: Gauge,
    /// Unix time at which this process last knew all entries of other processes.
    pub followed_timestamp_seconds: Gauge<f64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Every metric, at zero. All label values exist, so rates are right from the first event on.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("rankduel");
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The running program", build);
        Self {
            http_requests: counted(&mut registry, "http_requests", "Answered requests"),
            http_request_duration_seconds: in_seconds(
                &mut registry,
                "http_request_duration",
                "Time from a request's head to its response's head",
                Family::new_with_constructor(Seconds),
            ),
            http_requests_in_flight: counted(
                &mut registry,
                "http_requests_in_flight",
                "Running requests",
            ),
            http_requests_shed: counted(
                &mut registry,
                "http_requests_shed",
                "Requests refused because too many were running",
            ),
            connections_shed: counted(
                &mut registry,
                "connections_shed",
                "Connections refused, or closed without a key, because there were too many",
            ),
            panics: counted(&mut registry, "panics", "Panics caught and answered with 500"),
            duels: labelled(
                counted(&mut registry, "duels", "Issued duels"),
                DuelKind::ALL.map(|kind| DuelLabels { kind }),
            ),
            feedback: labelled(
                counted(&mut registry, "feedback", "Feedback, by its result"),
                FeedbackStatus::ALL.map(|status| FeedbackLabels { status }),
            ),
            commit_events: registered(
                &mut registry,
                "commit_events",
                "Events in one commit of the log",
                Histogram::new(EVENTS),
            ),
            commit_duration_seconds: in_seconds(
                &mut registry,
                "commit_duration",
                "Duration of a commit of the log",
                Histogram::new(SECONDS),
            ),
            commit_failures: counted(&mut registry, "commit_failures", "Failed commits of the log"),
            log_regressions: counted(
                &mut registry,
                "log_regressions",
                "Log regressions: a log is shorter than before, so acknowledged outcomes are lost",
            ),
            queue_events: counted(&mut registry, "queue_events", "Events waiting for a commit"),
            feedback_delay_seconds: in_seconds(
                &mut registry,
                "feedback_delay",
                "Time from issuing a duel to having its answer in the log",
                Histogram::new(DELAY_SECONDS),
            ),
            replica_lag_entries: counted(
                &mut registry,
                "replica_lag_entries",
                "Log entries that this process had not folded yet when it last polled",
            ),
            database_up: counted(
                &mut registry,
                "database_up",
                "1 while the database answers and this process can serve from it",
            ),
            followed_timestamp_seconds: in_seconds(
                &mut registry,
                "followed_timestamp",
                "Unix time at which this process last knew all entries of other processes",
                Gauge::default(),
            ),
            webhook_sent: counted(
                &mut registry,
                "webhook_sent",
                "Notices that the webhook has taken",
            ),
            webhook_failures: counted(
                &mut registry,
                "webhook_failures",
                "Attempts to send a notice to the webhook that failed",
            ),
            webhook_queue: counted(
                &mut registry,
                "webhook_queue",
                "Notices that wait for the webhook",
            ),
            registry: Mutex::new(registry),
        }
    }

    /// Add metrics that are computed for each scrape. Their names get the prefix, too: a collector
    /// uses `experiment_log_position`.
    pub fn register(&self, collector: Box<dyn Collector>) {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).register_collector(collector);
    }

    /// Count an issued duel.
    pub fn duel(&self, kind: DuelKind) {
        self.duels[kind as usize].inc();
    }

    /// Count a piece of feedback.
    pub fn feedback(&self, status: FeedbackStatus) {
        self.feedback[status as usize].inc();
    }

    /// All metrics in the OpenMetrics text format ([`CONTENT_TYPE`]).
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }
}

/// Register a metric that starts at its default.
fn counted<M: Metric + Default + Clone>(registry: &mut Registry, name: &str, help: &str) -> M {
    registered(registry, name, help, M::default())
}

/// The counters of these labels. Finding one by its label takes longer than counting.
fn labelled<L, const N: usize>(family: Family<L, Counter>, labels: [L; N]) -> [Counter; N]
where
    L: Clone + Eq + Hash,
{
    labels.map(|label| family.get_or_create_owned(&label))
}

fn registered<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Register a metric whose unit is seconds; its name gets the suffix `_seconds`.
fn in_seconds<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}
