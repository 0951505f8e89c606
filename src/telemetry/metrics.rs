//! What is counted and measured, for Prometheus.
//!
//! One struct with a typed field for each metric, made once and handed around; nothing global, so
//! every test reads its own numbers. Names have the prefix `rankduel_`, base units, and labels from
//! small closed sets. What must be read when it is asked for (an experiment's log position, its
//! regret) comes from a [`Collector`] that is registered with [`Metrics::register`].

use std::fmt::Write;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

/// The media type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a request is counted under.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// Method, or `other`.
    pub method: &'static str,
    /// Template of the route, such as `/v1/experiments/{name}`, or `unmatched`.
    pub route: String,
    /// Status of the answer.
    pub status: u16,
}

/// What a request's time is measured under.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteLabels {
    /// Method, or `other`.
    pub method: &'static str,
    /// Template of the route, or `unmatched`.
    pub route: String,
}

/// Which duel was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DuelKind {
    /// Two different rankers.
    Pair,
    /// A ranker alone.
    SelfDuel,
    /// Two different rankers, for a batch.
    Batch,
}

impl EncodeLabelValue for DuelKind {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> std::fmt::Result {
        encoder.write_str(match self {
            Self::Pair => "pair",
            Self::SelfDuel => "self",
            Self::Batch => "batch",
        })
    }
}

/// Label of duels that were handed out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DuelLabels {
    /// Which duel.
    pub kind: DuelKind,
}

/// What came of a piece of feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeedbackStatus {
    /// It is in the log and counts.
    Recorded,
    /// The same was said before.
    Duplicate,
    /// Something else was said before.
    Conflict,
    /// It came too late.
    Expired,
    /// Clicks that came after their duel was settled.
    Late,
    /// Its duel is not one of ours.
    Invalid,
}

impl FeedbackStatus {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Recorded, Self::Duplicate, Self::Conflict, Self::Expired, Self::Late, Self::Invalid];
}

impl FeedbackStatus {
    /// As a label's value.
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
    /// What came of it.
    pub status: FeedbackStatus,
}

/// Makes histograms of seconds.
#[derive(Debug, Clone)]
pub struct Seconds;

impl MetricConstructor<Histogram> for Seconds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(SECONDS)
    }
}

/// From 100 µs, because a duel takes less than a millisecond, to the time limit of a request.
const SECONDS: [f64; 15] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    10.0,
];

/// How long searchers take: from a tenth of a second to a day.
pub const DELAY_SECONDS: [f64; 16] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 21_600.0,
    86_400.0,
];

/// Events in one commit.
const EVENTS: [f64; 11] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0];

/// Every metric.
#[derive(Debug)]
#[non_exhaustive]
pub struct Metrics {
    registry: Mutex<Registry>,
    /// Requests that were answered.
    pub http_requests: Family<RequestLabels, Counter>,
    /// From reading the request's head to having the answer's head.
    pub http_request_duration_seconds: Family<RouteLabels, Histogram, Seconds>,
    /// Requests that are running.
    pub http_requests_in_flight: Gauge,
    /// Requests that were refused because too many were running.
    pub http_requests_shed: Counter,
    /// Panics that were caught and answered with 500.
    pub panics: Counter,
    /// Duels that were handed out.
    pub duels: Family<DuelLabels, Counter>,
    /// Feedback, by what came of it.
    pub feedback: Family<FeedbackLabels, Counter>,
    /// Events in one commit of the log.
    pub commit_events: Histogram,
    /// Time that a commit of the log took.
    pub commit_duration_seconds: Histogram,
    /// Commits of the log that failed.
    pub commit_failures: Counter,
    /// Signs that the database has lost what was acknowledged.
    pub log_regressions: Counter,
    /// Events that wait for a commit.
    pub queue_events: Gauge,
    /// From handing out a duel to having its answer in the log.
    pub feedback_delay_seconds: Histogram,
    /// Entries that the log had and this process had not folded when it last looked, of the
    /// experiment with most.
    pub replica_lag_entries: Gauge,
    /// Unix time at which this process last saw all that others had appended.
    pub followed_timestamp_seconds: Gauge<f64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Every metric at zero, and there: a rate can be taken from the first event on.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("rankduel");
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program that runs", build);
        Self {
            http_requests: counted(&mut registry, "http_requests", "Requests that were answered"),
            http_request_duration_seconds: {
                let family = Family::new_with_constructor(Seconds);
                let help = "Time from a request's head to its answer's head";
                registry.register_with_unit(
                    "http_request_duration",
                    help,
                    Unit::Seconds,
                    family.clone(),
                );
                family
            },
            http_requests_in_flight: counted(
                &mut registry,
                "http_requests_in_flight",
                "Requests that are running",
            ),
            http_requests_shed: counted(
                &mut registry,
                "http_requests_shed",
                "Requests that were refused because too many were running",
            ),
            panics: counted(
                &mut registry,
                "panics",
                "Panics that were caught and answered with 500",
            ),
            duels: {
                let family: Family<DuelLabels, Counter> =
                    counted(&mut registry, "duels", "Duels that were handed out");
                for kind in [DuelKind::Pair, DuelKind::SelfDuel, DuelKind::Batch] {
                    drop(family.get_or_create(&DuelLabels { kind }));
                }
                family
            },
            feedback: {
                let family: Family<FeedbackLabels, Counter> =
                    counted(&mut registry, "feedback", "Feedback, by what came of it");
                for status in FeedbackStatus::ALL {
                    drop(family.get_or_create(&FeedbackLabels { status }));
                }
                family
            },
            commit_events: {
                let histogram = Histogram::new(EVENTS);
                registry.register(
                    "commit_events",
                    "Events in one commit of the log",
                    histogram.clone(),
                );
                histogram
            },
            commit_duration_seconds: {
                let histogram = Histogram::new(SECONDS);
                let help = "Time that a commit of the log took";
                registry.register_with_unit(
                    "commit_duration",
                    help,
                    Unit::Seconds,
                    histogram.clone(),
                );
                histogram
            },
            commit_failures: counted(
                &mut registry,
                "commit_failures",
                "Commits of the log that failed",
            ),
            log_regressions: counted(
                &mut registry,
                "log_regressions",
                "Signs that a log is shorter than it was: the database has lost acknowledged outcomes",
            ),
            queue_events: counted(&mut registry, "queue_events", "Events that wait for a commit"),
            feedback_delay_seconds: {
                let histogram = Histogram::new(DELAY_SECONDS);
                let help = "Time from handing out a duel to having its answer in the log";
                registry.register_with_unit(
                    "feedback_delay",
                    help,
                    Unit::Seconds,
                    histogram.clone(),
                );
                histogram
            },
            replica_lag_entries: counted(
                &mut registry,
                "replica_lag_entries",
                "Entries that the log had and this process had not folded when it last looked",
            ),
            followed_timestamp_seconds: {
                let gauge = Gauge::default();
                let help = "Unix time at which this process last saw what others had appended";
                registry.register_with_unit(
                    "followed_timestamp",
                    help,
                    Unit::Seconds,
                    gauge.clone(),
                );
                gauge
            },
            registry: Mutex::new(registry),
        }
    }

    /// Add metrics that are read when they are asked for. Their descriptors' names get the prefix,
    /// too: a collector says `experiment_log_position`.
    pub fn register(&self, collector: Box<dyn Collector>) {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).register_collector(collector);
    }

    /// Count a duel that was handed out.
    pub fn duel(&self, kind: DuelKind) {
        self.duels.get_or_create(&DuelLabels { kind }).inc();
    }

    /// Count a piece of feedback.
    pub fn feedback(&self, status: FeedbackStatus) {
        self.feedback.get_or_create(&FeedbackLabels { status }).inc();
    }

    /// All of it in the OpenMetrics text format ([`CONTENT_TYPE`]).
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }
}

fn counted<M>(registry: &mut Registry, name: &str, help: &str) -> M
where
    M: prometheus_client::registry::Metric + Default + Clone,
{
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}
