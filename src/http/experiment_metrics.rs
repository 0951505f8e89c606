//! Metrics of each loaded experiment, computed when `/metrics` is read.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel, EncodeLabelSet, EncodeMetric, LabelSetEncoder,
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::service::Service;
use crate::service::answer::SeenAlarm;
use crate::service::answers::stored;
use crate::service::reports::alarms::traffic_now;
use crate::service::reports::regret::{Band, RegretEstimate, keep_estimate, known_estimate};
use crate::service::reports::traffic::BatchSummary;
use dueling_bandits::BatchProgress;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::metrics::FeedbackStatus;
use rankduel_store::audience::Segment;
use rankduel_store::events::Status;

/// Maximum number of experiments with metrics of their own. It bounds the number of labels. Those
/// that need somebody come first, then all by name; archived ones have none.
const EXPERIMENTS_MAX: usize = 200;

/// Metrics of the open batch of a policy that runs in batches.
const BATCH: [(&str, &str); 5] = [
    ("experiment_batch_number", "Number of the open batch"),
    ("experiment_batch_number_max", "The highest number that a batch can get"),
    ("experiment_batch_needed", "Comparisons in the open batch; the policy adapts after them"),
    ("experiment_batch_answered", "Answered comparisons of the open batch"),
    ("experiment_batch_pairs_missing", "Pairs of the open batch that need more answers"),
];

type PerExperiment = Family<Labels, Gauge<f64, AtomicU64>>;
type Counted = Family<Labels, Counter>;
type Estimated = Family<EstimateLabels, Gauge<f64, AtomicU64>>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    experiment: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EstimateLabels {
    experiment: String,
    /// `mean`, `low` or `high` of the posterior, `least` or `most` of the bounds.
    estimate: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabels {
    experiment: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FeedbackLabels {
    experiment: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AlarmLabels {
    experiment: String,
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    experiment: String,
    state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClaimLabels {
    experiment: String,
    claim: &'static str,
    ranker: String,
    #[prometheus(flatten)]
    subject: Subject,
}

/// The segment or the metric of a claim about one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Subject {
    segment: Option<Segment>,
    metric: Option<String>,
}

impl EncodeLabelSet for Subject {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), fmt::Error> {
        let segment = self.segment.as_ref().map(|segment| ("segment", segment.as_str()));
        let metric = self.metric.as_ref().map(|metric| ("metric", metric.as_str()));
        let mut labels = segment.into_iter().chain(metric);
        labels.try_for_each(|label| EncodeLabel::encode(&label, encoder.encode_label()))
    }
}

/// How long a scrape computes estimates. Those that are still old then come first in the next one.
const ESTIMATES_WITHIN: Duration = Duration::from_millis(250);

/// The experiments in memory that have metrics of their own, and the number of those beyond the
/// maximum.
fn shown(service: &Service) -> (Vec<Arc<LoadedExperiment>>, usize) {
    let mut shown = service.loaded();
    shown.retain(|loaded| loaded.with_record(|record| record.archived_at.is_none()));
    let needs_nobody = |loaded: &Arc<LoadedExperiment>| {
        let answer = loaded.with_record(stored);
        answer.is_none_or(|answer| !answer.needs_you && answer.alarms.is_empty())
    };
    // each is by name already
    let (others, first): (Vec<_>, Vec<_>) = shown.into_iter().partition(needs_nobody);
    let mut shown = [first, others].concat();
    let beyond = shown.len().saturating_sub(EXPERIMENTS_MAX);
    shown.truncate(EXPERIMENTS_MAX);
    (shown, beyond)
}

/// Compute the estimates that [`ExperimentMetrics`] encodes, the oldest one first and one after the
/// other, so that no number of experiments takes the processor from others. The last one is
/// computed to the end, even if this does not wait for it.
pub(crate) async fn prepare(service: &Service) {
    let is_old = |loaded: Arc<LoadedExperiment>| {
        let position = loaded.fold().ok()?.state().position;
        let known = known_estimate(&loaded);
        let is_new = known.as_ref().is_some_and(|(_, known)| known.position == position);
        (!is_new).then_some((known.map(|(at, _)| at), loaded))
    };
    let mut old: Vec<_> = shown(service).0.into_iter().filter_map(is_old).collect();
    old.sort_by_key(|(at, _)| *at);
    let estimates = async {
        for (_, loaded) in old {
            // While the state of an experiment is folded again, it has no estimates.
            if let Err(error) = keep_estimate(&service.reports, &loaded).await {
                tracing::debug!(%error, experiment = loaded.name, "no metrics");
            }
        }
    };
    drop(tokio::time::timeout(ESTIMATES_WITHIN, estimates).await);
}

/// Collects the metrics of a service's experiments.
#[derive(Debug)]
pub struct ExperimentMetrics(Weak<Service>);

impl ExperimentMetrics {
    /// The collector for this service; it is empty once the service is dropped.
    pub fn new(service: Weak<Service>) -> Self {
        Self(service)
    }
}

impl Collector for ExperimentMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let Some(service) = self.0.upgrade() else { return Ok(()) };
        let (experiments, beyond) = shown(&service);
        let values = Values::default();
        values.loaded.set(service.loaded().len() as i64);
        values.beyond.set(beyond as i64);
        if let Some(age) = service.engine.metrics.replication_age() {
            values.replication_age.set(age.as_secs_f64());
        }
        values.refused.set(service.engine.registry.refused() as i64);
        values.foreign.inc_by(service.engine.store.foreign_answers());
        for loaded in &experiments {
            values.add(&service, loaded);
        }
        values.write(&mut encoder)
    }
}

/// The metrics of all loaded experiments at one moment.
#[derive(Default)]
struct Values {
    loaded: Gauge,
    beyond: Gauge,
    replication_age: Gauge<f64, AtomicU64>,
    refused: Gauge,
    foreign: Counter,
    position: PerExperiment,
    steps: Counted,
    regret: Estimated,
    uniform: Estimated,
    recent: Estimated,
    recent_uniform: PerExperiment,
    in_flight: PerExperiment,
    last_feedback: PerExperiment,
    status: Family<StatusLabels, Gauge>,
    batch: [PerExperiment; 5],
    duels: Counted,
    self_duels: Counted,
    unanswered: Counted,
    feedback: Family<FeedbackLabels, Counter>,
    state: Family<StateLabels, Gauge>,
    alarm: Family<AlarmLabels, Gauge>,
    claim: Family<ClaimLabels, Gauge>,
}

impl Values {
    /// Add an experiment. While its state is folded again, only its last estimate is known.
    fn add(&self, service: &Service, loaded: &LoadedExperiment) {
        let labels = Labels { experiment: loaded.name.clone() };
        if let Some((_, estimate)) = known_estimate(loaded) {
            self.add_estimate(&labels, &estimate);
        }
        let status = match loaded.with_record(|record| record.status) {
            Status::Running => "running",
            Status::Paused => "paused",
            Status::Concluded => "concluded",
        };
        let experiment = loaded.name.clone();
        self.status.get_or_create(&StatusLabels { experiment, status }).set(1);
        if let Some(answer) = loaded.with_record(stored) {
            let (experiment, state) = (loaded.name.clone(), answer.state.name());
            self.state.get_or_create(&StateLabels { experiment, state }).set(1);
            for SeenAlarm { kind, .. } in answer.alarms {
                let labels = AlarmLabels { experiment: loaded.name.clone(), kind };
                self.alarm.get_or_create(&labels).set(1);
            }
        }
        let read = loaded.fold().map(|fold| {
            (fold.state().position, fold.state().history.steps(), fold.decided_claims())
        });
        let Ok((folded_to, steps, decided)) = read else { return };
        for decided in decided {
            let labels = ClaimLabels {
                experiment: loaded.name.clone(),
                claim: decided.claim,
                ranker: loaded.spec.rankers[decided.ranker].id.clone(),
                subject: Subject {
                    segment: decided.segment,
                    metric: decided.metric.map(|(it, _)| loaded.spec.metrics[it].name.clone()),
                },
            };
            self.claim.get_or_create(&labels).set(1);
        }
        self.position.get_or_create(&labels).set(folded_to as f64);
        self.steps.get_or_create(&labels).inc_by(steps);
        let Ok((traffic, _)) = traffic_now(service, loaded) else { return };
        // clicks are no answers where orders decide
        if !traffic.by_orders {
            self.in_flight.get_or_create(&labels).set(traffic.in_flight as f64);
        }
        if let Some(at) = traffic.counts.last_feedback_ms {
            self.last_feedback.get_or_create(&labels).set(at as f64 / 1000.0);
        }
        if let Some(BatchSummary { number, number_max, progress, .. }) = traffic.batch {
            let BatchProgress { open_pairs, needed, answered, .. } = progress;
            let values = [number.into(), number_max.into(), needed, answered, open_pairs as u64];
            for (metric, value) in self.batch.iter().zip(values) {
                metric.get_or_create(&labels).set(value as f64);
            }
        }
        self.duels.get_or_create(&labels).inc_by(traffic.counts.pairs);
        self.self_duels.get_or_create(&labels).inc_by(traffic.counts.self_duels);
        if let Some(unanswered) = traffic.unanswered() {
            self.unanswered.get_or_create(&labels).inc_by(unanswered);
        }
        for (status, count) in FeedbackStatus::ALL.into_iter().zip(traffic.counts.feedback) {
            let labels = FeedbackLabels { experiment: loaded.name.clone(), status: status.name() };
            self.feedback.get_or_create(&labels).inc_by(count);
        }
    }

    fn add_estimate(&self, labels: &Labels, of: &RegretEstimate) {
        let set = |family: &Estimated, estimate, value| {
            let experiment = labels.experiment.clone();
            family.get_or_create(&EstimateLabels { experiment, estimate }).set(value);
        };
        let set_band = |family: &Estimated, band: Band| {
            let Band { mean, low, high } = band;
            for (estimate, value) in [("mean", mean), ("low", low), ("high", high)] {
                set(family, estimate, value);
            }
        };
        set_band(&self.regret, of.copeland_regret);
        if let Some(bounds) = of.bounds {
            set(&self.regret, "least", bounds.low);
            set(&self.regret, "most", bounds.high);
        }
        set_band(&self.uniform, of.uniform_copeland_regret);
        if let Some(recent) = &of.recent {
            set_band(&self.recent, recent.copeland_regret);
            self.recent_uniform.get_or_create(labels).set(recent.uniform);
        }
    }

    fn write(&self, to: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        write(to, "experiments_loaded", "Experiments in memory", &self.loaded)?;
        write(
            to,
            "experiments_without_series",
            "Experiments in memory without metrics of their own, because there are too many",
            &self.beyond,
        )?;
        write(
            to,
            "experiments_unreadable",
            "Requested experiments that this version cannot read",
            &self.refused,
        )?;
        write(
            to,
            "database_foreign_answers",
            "Answers of the database that were refused because they belong to another question",
            &self.foreign,
        )?;
        write(
            to,
            "replication_age_seconds",
            "Time since this process last knew all entries of other processes",
            &self.replication_age,
        )?;
        write(
            to,
            "experiment_log_position",
            "Position of the last folded log entry",
            &self.position,
        )?;
        write(
            to,
            "experiment_steps",
            "Answered duels and pages of one ranker in the log: what regret covers",
            &self.steps,
        )?;
        let estimates: [(_, _, &dyn EncodeMetric); 4] = [
            ("experiment_copeland_regret", "Copeland regret so far, by estimate", &self.regret),
            (
                "experiment_uniform_copeland_regret",
                "Copeland regret of uniform pairs over the same steps, by estimate",
                &self.uniform,
            ),
            (
                "experiment_recent_copeland_regret",
                "Copeland regret of the newest steps, per 1000, by estimate",
                &self.recent,
            ),
            (
                "experiment_recent_uniform_copeland_regret",
                "Copeland regret of 1000 uniform pairs, posterior mean",
                &self.recent_uniform,
            ),
        ];
        for (name, help, metric) in estimates {
            metric.encode(to.encode_descriptor(name, help, None, metric.metric_type())?)?;
        }
        write(
            to,
            "experiment_duels_in_flight",
            "Duels issued by this process that are neither answered nor expired",
            &self.in_flight,
        )?;
        write(
            to,
            "experiment_last_feedback_timestamp_seconds",
            "Unix time at which feedback last came to this process",
            &self.last_feedback,
        )?;
        write(to, "experiment_status", "1 for the status of the experiment", &self.status)?;
        for ((name, help), metric) in BATCH.into_iter().zip(&self.batch) {
            write(to, name, help, metric)?;
        }
        write(
            to,
            "experiment_duels",
            "Duels of two different rankers issued by this process",
            &self.duels,
        )?;
        write(to, "experiment_self_duels", "Self-duels issued by this process", &self.self_duels)?;
        write(
            to,
            "experiment_unanswered_duels",
            "Duels issued by this process that expired without feedback",
            &self.unanswered,
        )?;
        write(
            to,
            "experiment_feedback",
            "Feedback received by this process, by its result",
            &self.feedback,
        )?;
        write(to, "experiment_state", "1 for the state of the answer", &self.state)?;
        write(
            to,
            "experiment_alarm",
            "1 while the alarm is active; docs/operations.md describes each kind",
            &self.alarm,
        )?;
        write(to, "claim_decided", "1 for each claim that is proven, such as `better`", &self.claim)
    }
}

/// Write a metric with its name and description.
fn write(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &impl EncodeMetric,
) -> Result<(), fmt::Error> {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}
