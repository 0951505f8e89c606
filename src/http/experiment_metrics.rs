//! Metrics of each loaded experiment, computed when `/metrics` is read.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
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
use crate::service::reports::regret::{estimate, known_estimate};
use crate::service::reports::traffic::BatchSummary;
use dueling_bandits::BatchProgress;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::metrics::FeedbackStatus;
use rankduel_store::audience::Segment;

/// Maximum number of experiments with metrics of their own, the first ones by name. It bounds the
/// number of labels.
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

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    experiment: String,
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

/// How long a scrape waits for estimates. Those that take longer are in the next one.
const ESTIMATES_WITHIN: Duration = Duration::from_millis(250);

/// Compute the estimates that [`ExperimentMetrics`] encodes. They are computed to the end, on the
/// threads for reports, even if this does not wait for them.
pub(crate) async fn prepare(service: &Service) {
    let loaded = measured(service);
    let estimates = loaded.iter().map(async |loaded| {
        // While the state of an experiment is folded again, it has no estimates.
        if let Err(error) = estimate(&service.reports, loaded).await {
            tracing::debug!(%error, experiment = loaded.name, "no metrics");
        }
    });
    drop(tokio::time::timeout(ESTIMATES_WITHIN, join_all(estimates)).await);
}

/// The experiments with metrics of their own: archived ones have none.
fn measured(service: &Service) -> Vec<Arc<LoadedExperiment>> {
    let mut loaded = service.loaded();
    loaded.retain(|loaded| loaded.with_record(|record| record.archived_at.is_none()));
    loaded.truncate(EXPERIMENTS_MAX);
    loaded
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
        let values = Values::default();
        values.loaded.set(service.loaded().len() as i64);
        values.refused.set(service.engine.registry.refused() as i64);
        values.foreign.inc_by(service.engine.store.foreign_answers());
        for loaded in measured(&service) {
            values.add(&service, &loaded);
        }
        values.write(&mut encoder)
    }
}

/// The metrics of all loaded experiments at one moment.
#[derive(Default)]
struct Values {
    loaded: Gauge,
    refused: Gauge,
    foreign: Counter,
    position: PerExperiment,
    regret: PerExperiment,
    uniform: PerExperiment,
    in_flight: PerExperiment,
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
        if let Some(estimate) = known_estimate(loaded) {
            self.regret.get_or_create(&labels).set(estimate.copeland_regret);
            self.uniform.get_or_create(&labels).set(estimate.uniform_copeland_regret);
        }
        if let Some(answer) = loaded.with_record(stored) {
            let (experiment, state) = (loaded.name.clone(), answer.state.name());
            self.state.get_or_create(&StateLabels { experiment, state }).set(1);
            for SeenAlarm { kind, .. } in answer.alarms {
                let labels = AlarmLabels { experiment: loaded.name.clone(), kind };
                self.alarm.get_or_create(&labels).set(1);
            }
        }
        let Ok((folded_to, decided)) =
            loaded.fold().map(|fold| (fold.state().position, fold.decided_claims()))
        else {
            return;
        };
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
        let Ok((traffic, _)) = traffic_now(service, loaded) else { return };
        self.in_flight.get_or_create(&labels).set(traffic.in_flight as f64);
        if let Some(BatchSummary { number, number_max, progress, .. }) = traffic.batch {
            let BatchProgress { open_pairs, needed, answered, .. } = progress;
            let values = [number.into(), number_max.into(), needed, answered, open_pairs as u64];
            for (metric, value) in self.batch.iter().zip(values) {
                metric.get_or_create(&labels).set(value as f64);
            }
        }
        self.duels.get_or_create(&labels).inc_by(traffic.counts.pairs);
        self.self_duels.get_or_create(&labels).inc_by(traffic.counts.self_duels);
        self.unanswered.get_or_create(&labels).inc_by(traffic.unanswered());
        for (status, count) in FeedbackStatus::ALL.into_iter().zip(traffic.counts.feedback) {
            let labels = FeedbackLabels { experiment: loaded.name.clone(), status: status.name() };
            self.feedback.get_or_create(&labels).inc_by(count);
        }
    }

    fn write(&self, to: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        write(to, "experiments_loaded", "Experiments in memory", &self.loaded)?;
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
            "experiment_log_position",
            "Position of the last folded log entry",
            &self.position,
        )?;
        write(
            to,
            "experiment_copeland_regret",
            "Cumulative Copeland regret, plug-in estimate",
            &self.regret,
        )?;
        write(
            to,
            "experiment_uniform_copeland_regret",
            "Cumulative Copeland regret of uniform pairs over the same steps, plug-in estimate",
            &self.uniform,
        )?;
        write(
            to,
            "experiment_duels_in_flight",
            "Duels issued by this process that are neither answered nor expired",
            &self.in_flight,
        )?;
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
