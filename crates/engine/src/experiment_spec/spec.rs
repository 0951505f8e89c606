//! The spec of an experiment, and how it is validated.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conclude_at::ConcludeAt;
use super::decide_by::DecideBy;
use super::drift::OnDrift;
use super::errors::Errors;
use super::exclusions::{self, Exclusion};
use super::field_error::FieldError;
use super::metrics::{self, Better, Metric, MetricOf};
use super::page_rules::PageRules;
use super::ranker::Ranker;
use dueling_bandits::claims::control::Goal;
use dueling_bandits::claims::guardrails;
use dueling_bandits::evidence::Target;
use dueling_bandits::run::Targets;
use dueling_bandits::{MIN_RANKERS, PolicySpec, Roster, TieRule};
use rankduel_store::audience::Segment;
use rankduel_store::events::UnitHash;
use rankduel_store::label::label_fault;

/// Default time to live of a duel.
pub const DEFAULT_DUEL_TTL_SECONDS: u32 = 3600;
/// Longest time to live of a duel: 30 days.
pub const MAX_DUEL_TTL_SECONDS: u32 = 30 * 24 * 3600;
/// Most rankers of an experiment, the retired included. The library allows more; up to here the
/// state of an experiment is small enough to copy, write and fold between two duels.
pub const RANKERS_MAX: usize = 256;
/// Largest seed: every JSON parser reads the integers up to here exactly.
pub const MAX_SEED: u64 = (1 << 53) - 1;
const MAX_NAME_BYTES: usize = 64;
/// The default coverage: all units.
pub const WHOLE_COVERAGE: f64 = 1.0;

/// An experiment as it was created and then changed, with defaults filled in. Two requests for one
/// name are repeats of each other if their specs are equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSpec {
    /// 2 to 256 rankers: all that the experiment has ever had, in the order they were added.
    pub rankers: Vec<Ranker>,
    /// Indices of the retired rankers, in the order of their retirement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retired: Vec<u16>,
    /// The policy.
    pub policy: PolicySpec,
    /// How a tie is counted.
    pub ties: TieRule,
    /// Time to live of a duel: feedback after it is refused.
    pub duel_ttl_seconds: u32,
    /// Time within which the answers come that the verdict counts: it counts a duel once this time
    /// has passed since its issue. 0: it counts every answer as it arrives.
    #[serde(default)]
    pub answer_window_seconds: u32,
    /// The seed of all random draws of the fold. `None` in a request: the service draws a seed.
    pub seed: Option<u64>,
    /// When the service concludes the experiment by itself; without it, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclude_at: Option<ConcludeAt>,
    /// Purpose of the experiment; empty if none is given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The person or team to ask about the experiment; empty if none is given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Id of the ranker that people see today. Claims are made against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// The declared segments, about which claims are made. Labels beyond these count as the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segment>,
    /// How the claims divide one error; without it, each kind has that error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Errors>,
    /// The claim that the experiment proves first.
    #[serde(default)]
    pub goal: Goal,
    /// The reaction to changed preferences.
    #[serde(default)]
    pub drift: OnDrift,
    /// Share of pages on which the winner of the concluded experiment meets another ranker, so that
    /// a change shows.
    #[serde(default)]
    pub watch: f64,
    /// Share of units that take part, above 0 and up to 1. The others see the control.
    #[serde(default = "whole_coverage", skip_serializing_if = "is_whole")]
    pub coverage: f64,
    /// Share of units that see the leader or the control alone.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub alone: f64,
    /// Metrics of rankers, with the limits that are guarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Time within which the values of a page come.
    #[serde(
        default = "metrics::default_value_window",
        skip_serializing_if = "metrics::is_default_value_window"
    )]
    pub value_window_seconds: u32,
    /// The orders that decide; without it, clicks do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decide_by: Option<DecideBy>,
    /// The units whose answers do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<Exclusion>,
    /// Rules for the pages.
    #[serde(default)]
    pub pages: PageRules,
}

/// Most answer windows that one experiment can have had. Each is part of its state.
pub const MAX_WINDOWS: usize = 100;

/// Most controls that one experiment can have had. Each change leaves less evidence to stake.
pub const MAX_CONTROLS: usize = 20;

/// Why a name is not valid for an experiment; `None` if it is valid.
pub fn name_error(name: &str) -> Option<FieldError> {
    let starts = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let valid = name.len() <= MAX_NAME_BYTES
        && name.starts_with(starts)
        && name.chars().all(|c| starts(c) || matches!(c, '.' | '_' | '-'));
    (!valid).then(|| {
        let rule = "an experiment's name is 1 to 64 of a-z, 0-9, `.`, `_`, `-`, and starts with a letter or digit";
        let fault = label_fault(name).map(|fault| format!("; {fault}")).unwrap_or_default();
        FieldError::new("/name", format!("{rule}{fault}"))
    })
}

impl ExperimentSpec {
    /// Read a spec from a record. Another version of this program may have written it; the error
    /// says what this version cannot read.
    pub fn read(text: &str) -> Result<Self, String> {
        Self::checked(serde_json::from_str(text))
    }

    /// Read a spec from the first entry of a log.
    pub fn read_json(json: &Value) -> Result<Self, String> {
        Self::checked(Self::deserialize(json))
    }

    fn checked(spec: serde_json::Result<Self>) -> Result<Self, String> {
        let spec = spec.map_err(|error| {
            format!(
                "this version cannot read its spec ({error}); was it created by a newer version?"
            )
        })?;
        let count = spec.rankers.len();
        if !(MIN_RANKERS..=RANKERS_MAX).contains(&count) {
            return Err(format!(
                "it has {count} rankers, and this version supports {MIN_RANKERS} to {RANKERS_MAX}"
            ));
        }
        if spec.roster().is_none() {
            return Err("its list of retired rankers is invalid".into());
        }
        match spec.errors().into_iter().next() {
            Some(error) => {
                Err(format!("its spec is invalid at {}: {}", error.pointer, error.detail))
            }
            None => Ok(spec),
        }
    }

    /// The spec as the record keeps it.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("strings, numbers and lists always serialise")
    }

    /// Time within which the answers come that the verdict counts, in milliseconds.
    pub fn answer_window_ms(&self) -> i64 {
        i64::from(self.answer_window_seconds) * 1000
    }

    /// Whether the verdict counts every answer as it arrives.
    pub fn counts_at_once(&self) -> bool {
        self.answer_window_seconds == 0
    }

    /// Time from issuing a duel to settling it on the clicks that have arrived.
    pub fn settle_after_seconds(&self) -> u32 {
        self.settle_within(self.answer_window_seconds)
    }

    /// The same for a duel with this answer window.
    pub fn settle_within(&self, answer_window_seconds: u32) -> u32 {
        let answers_within = match answer_window_seconds {
            0 => self.duel_ttl_seconds,
            window => window,
        };
        self.pages.settle_after_seconds(answers_within)
    }

    /// The target of the verdict of this experiment.
    pub fn verdict_target(&self) -> Target {
        self.targets().verdict
    }

    /// The targets of the verdict and of the claims beside it.
    pub fn targets(&self) -> Targets {
        Errors::targets(self.errors, self.conclude_at)
    }

    /// The units whose answers do not count.
    pub fn excluded_units(&self) -> impl Iterator<Item = UnitHash> + '_ {
        exclusions::units(&self.exclusions)
    }

    /// Whether a request to create `requested` repeats the creation of an experiment from this spec.
    /// A request may spell out the defaults and the seed that the service has chosen.
    pub fn is_repeated_by(&self, requested: &Self) -> bool {
        let spelt_out = |spec: &Self| {
            let mut spec = spec.clone();
            spec.seed = spec.seed.or(self.seed);
            spec.pages.settle_after_seconds = Some(spec.settle_after_seconds());
            spec
        };
        spelt_out(self) == spelt_out(requested)
    }

    /// The roster; `None` if the list of retired rankers is invalid. A ranker that is held out is
    /// not active.
    pub fn roster(&self) -> Option<Roster> {
        let held_out = self.held_out().map(|ranker| ranker as u16);
        let mut retired: Vec<u16> = self.retired.iter().copied().chain(held_out).collect();
        retired.sort_unstable();
        Roster::with_retired(self.rankers.len(), &retired)
    }

    /// The ranker that takes no part in the tournament: the second id of a canary.
    pub fn held_out(&self) -> Option<usize> {
        let [_, twin] = self.pages.canary.as_ref().filter(|_| self.pages.canary_share > 0.0)?;
        self.ranker_index(twin)
    }

    /// The two rankers of the canary, unless the policy selects their duels.
    pub fn canary(&self) -> Option<[usize; 2]> {
        let [ranker, _] = self.pages.canary.as_ref()?;
        Some([self.ranker_index(ranker)?, self.held_out()?])
    }

    /// Index of the control.
    pub fn control_index(&self) -> Option<usize> {
        self.ranker_index(self.control.as_ref()?)
    }

    /// Whether this ranker is retired.
    pub fn is_retired(&self, ranker: usize) -> bool {
        self.retired.iter().any(|&retired| usize::from(retired) == ranker)
    }

    /// Index of the ranker with this id.
    pub fn ranker_index(&self, id: &str) -> Option<usize> {
        self.rankers.iter().position(|ranker| ranker.id == id)
    }

    /// The metrics as guardrails.
    pub fn guardrails(&self) -> Vec<guardrails::Metric> {
        let of = |metric: &Metric| guardrails::Metric {
            cap: metric.cap,
            of_page: metric.of == MetricOf::Page,
            higher_is_better: metric.better == Better::Higher,
            limit: metric.limit,
            difference: metric.difference,
        };
        self.metrics.iter().map(of).collect()
    }

    /// Whether a metric has this subject.
    pub fn has_metric_of(&self, of: MetricOf) -> bool {
        self.metrics.iter().any(|metric| metric.of == of)
    }

    /// Number of the metric with this name.
    pub fn metric_index(&self, name: &str) -> Option<usize> {
        self.metrics.iter().position(|metric| metric.name == name)
    }

    /// Time within which the values of a page come, in milliseconds.
    pub fn value_window_ms(&self) -> i64 {
        i64::from(self.value_window_seconds) * 1000
    }
}

/// The default of `coverage`.
fn whole_coverage() -> f64 {
    WHOLE_COVERAGE
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_whole(coverage: &f64) -> bool {
    *coverage == WHOLE_COVERAGE
}
