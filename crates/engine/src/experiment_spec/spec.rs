//! The spec of an experiment, and how it is validated.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::changes::Changes;
use super::conclude_at::ConcludeAt;
use super::drift::{OnDrift, watch_error};
use super::enrolment::{is_whole, whole_coverage};
use super::errors::{Errors, division_errors};
use super::exclusions;
use super::field_error::{FieldError, FirstErrors, excerpt, range_error};
use super::metrics::{self, Metric};
use super::page_rules::PageRules;
use super::ranker::Ranker;
use super::segments::segment_errors;
use super::settings::{Settings, text_errors};
use dueling_bandits::claims::control::Goal;
use dueling_bandits::evidence::Target;
use dueling_bandits::run::Targets;
use dueling_bandits::{MIN_RANKERS, PolicySpec, Roster, TieRule};
use rankduel_store::audience::Segment;
use rankduel_store::events::{Exclusion, UnitHash};

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

/// An experiment as requested, with defaults filled in. Two requests for one name are repeats of
/// each other if their specs are equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSpec {
    /// 2 to 256 rankers: all that the experiment has ever had, in the order they were added.
    pub rankers: Vec<Ranker>,
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
    /// The requested seed; without one, the service draws it.
    pub seed: Option<u64>,
    /// When the service concludes the experiment by itself; without it, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclude_at: Option<ConcludeAt>,
    /// Its purpose; empty if nobody has said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whom to ask about it; empty if nobody has said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The settings at its creation, if they have changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_settings: Option<Settings>,
    /// How often settings were changed: one change for each such entry of the log.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub settings_changes: u64,
    /// Id of the ranker that people see today. Claims are made against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// The controls before the current one, oldest first: one for each change in the log. The first
    /// is `None` if the experiment was created without a control.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_controls: Vec<Option<String>>,
    /// The declared segments, about which claims are made. Labels beyond these count as the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segment>,
    /// How the claims divide one error; without it, each kind has that error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Errors>,
    /// The claim that it proves first.
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
    /// How `rankers` has changed since the creation: one change for each such entry of the log.
    #[serde(default, skip_serializing_if = "RosterChanges::is_none")]
    pub roster_changes: RosterChanges,
    /// The units whose answers do not count: one exclusion for each such entry of the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<Exclusion>,
    /// Rules for its pages.
    #[serde(default)]
    pub pages: PageRules,
}

/// How the rankers of an experiment differ from its initial rankers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RosterChanges {
    /// How many rankers were added. They are the last ones.
    pub enlisted: u16,
    /// Indices of the retired rankers, in the order of their retirement.
    pub retired: Vec<u16>,
}

impl RosterChanges {
    /// Whether the rankers are the initial ones.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Number of changes.
    pub fn changes(&self) -> usize {
        usize::from(self.enlisted) + self.retired.len()
    }
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
        FieldError::new(
            "/name",
            "an experiment's name is 1 to 64 of a-z, 0-9, `.`, `_`, `-`, and starts with a letter or digit",
        )
    })
}

impl ExperimentSpec {
    /// Read a spec from a record. Another version of this program may have written it; the error
    /// says what this version cannot read.
    pub fn read(text: &str) -> Result<Self, String> {
        let spec: Self = serde_json::from_str(text).map_err(|error| {
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
        let initial_rankers = count.checked_sub(spec.roster_changes.enlisted.into());
        if initial_rankers.is_none_or(|initial_rankers| initial_rankers < MIN_RANKERS)
            || spec.roster().is_none()
        {
            return Err("its lists of enlisted and retired rankers are inconsistent".into());
        }
        // a policy starts with the initial rankers
        for rankers in [spec.initial_rankers(), count] {
            let valid = spec.policy.validate(rankers);
            valid.map_err(|error| format!("its policy cannot run: {error}"))?;
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

    /// The first errors, at most [`ERRORS_MAX`](super::ERRORS_MAX); empty if the experiment can be
    /// created.
    pub fn errors(&self) -> Vec<FieldError> {
        let mut errors = FirstErrors::default();
        let count = self.rankers.len();
        errors.extend(self.ranker_count_error());
        if count > RANKERS_MAX {
            // Which of them are wrong helps nobody.
            return errors.into_vec();
        }
        self.add_ranker_errors(&mut errors);
        if let Err(error) = self.policy.validate(count) {
            let pointer = match error.parameter.as_str() {
                "" => "/policy".to_string(),
                parameter => format!("/policy/{parameter}"),
            };
            errors.push(FieldError::new(pointer, error.detail));
        }
        errors.extend(self.canary_error());
        if let Some(conclude_at) = &self.conclude_at {
            errors.extend(conclude_at.errors());
        }
        let ttl = self.duel_ttl_seconds;
        errors.extend(range_error("/duel_ttl_seconds", ttl, 1..=MAX_DUEL_TTL_SECONDS));
        if let Some(seed) = self.seed
            && seed > MAX_SEED
        {
            let detail = format!("`seed` is {seed}; it must be at most {MAX_SEED}");
            errors.push(FieldError::new("/seed", detail));
        }
        errors.extend(text_errors(self));
        errors.extend(self.answer_window_errors());
        errors.extend(self.pages.errors(&self.rankers, self.duel_ttl_seconds));
        errors.extend(self.control_error());
        errors.extend(segment_errors(self));
        errors.extend(division_errors(self));
        errors.extend(watch_error(self.watch, self.drift));
        errors.extend(self.coverage_error());
        errors.extend(self.alone_error());
        errors.extend(metrics::errors(self));
        errors.extend(exclusions::errors(&self.exclusions, "/exclude"));
        errors.into_vec()
    }

    fn ranker_count_error(&self) -> Option<FieldError> {
        let count = self.rankers.len();
        let remedy = match count > RANKERS_MAX {
            true => ": leave out the least promising, or compare parts of them first",
            false => "",
        };
        let detail = format!(
            "an experiment has {MIN_RANKERS} to {RANKERS_MAX} rankers; this one has {count}{remedy}"
        );
        (!(MIN_RANKERS..=RANKERS_MAX).contains(&count)).then(|| FieldError::new("/rankers", detail))
    }

    fn add_ranker_errors(&self, errors: &mut FirstErrors) {
        let mut seen = HashMap::new();
        for (index, ranker) in self.rankers.iter().enumerate() {
            if errors.is_full() {
                return;
            }
            let pointer = format!("/rankers/{index}");
            errors.extend(ranker.id_error(&pointer));
            if let Some(earlier) = seen.insert(ranker.id.as_str(), index) {
                let id = excerpt(&ranker.id);
                let detail =
                    format!("ranker `{id}` is listed twice; it is also at index {earlier}");
                errors.push(FieldError::new(&pointer, detail));
            }
            errors.extend(ranker.description_error(&pointer));
        }
    }

    /// Why the second id of the canary cannot be left out of the tournament.
    fn canary_error(&self) -> Option<FieldError> {
        self.held_out()?;
        let why = match self.policy.description().fixed_rankers {
            Some(why) => format!(
                "policy `{}` cannot leave a ranker out of the tournament: {why}",
                self.policy.kind()
            ),
            None if self.initial_rankers() <= MIN_RANKERS => {
                format!("without the canary's second id, fewer than {MIN_RANKERS} rankers are left")
            }
            None => return None,
        };
        let detail = format!("{why}; with `canary_share` 0, it is a ranker like the others");
        Some(FieldError::new("/canary", detail))
    }

    fn answer_window_errors(&self) -> Vec<FieldError> {
        let (window, ttl) = (self.answer_window_seconds, self.duel_ttl_seconds);
        let mut details = Vec::new();
        if window > ttl {
            details.push(format!(
                "`answer_window_seconds` is {window}; it must be 0 to `duel_ttl_seconds`, {ttl}"
            ));
        }
        if let Some(settle) = self.pages.settle_after_seconds
            && window > 0
            && window < settle
        {
            details.push(format!(
                "`answer_window_seconds` is {window}; clicks settle later, after \
                 `settle_after_seconds`, {settle}"
            ));
        }
        let error = |detail| FieldError::new("/answer_window_seconds", detail);
        details.into_iter().map(error).collect()
    }

    fn control_error(&self) -> Option<FieldError> {
        let Some(id) = &self.control else {
            let detail = "`goal` is `improve`, and there is nothing to improve on; name the \
                          `control`, or leave `goal` out";
            return (self.goal == Goal::Improve).then(|| FieldError::new("/goal", detail));
        };
        let ranker = self.ranker_index(id);
        let id = excerpt(id);
        let detail = match ranker {
            None => format!("`control` is `{id}`, which is no ranker; name one of `rankers`"),
            Some(ranker) if self.held_out() == Some(ranker) => format!(
                "`control` is `{id}`, the second id of the canary, which takes no part in the \
                 tournament; name the first id"
            ),
            Some(_) => return None,
        };
        Some(FieldError::new("/control", detail))
    }

    /// The settings that can be changed.
    pub fn settings(&self) -> Settings {
        Settings {
            answer_window_seconds: self.answer_window_seconds,
            conclude_at: self.conclude_at,
            coverage: self.coverage,
            description: self.description.clone(),
            owner: self.owner.clone(),
        }
    }

    fn set(&mut self, settings: Settings) {
        let Settings { answer_window_seconds, conclude_at, coverage, description, owner } =
            settings;
        (self.answer_window_seconds, self.conclude_at) = (answer_window_seconds, conclude_at);
        (self.coverage, self.description, self.owner) = (coverage, description, owner);
    }

    /// Time within which the answers come that the verdict counts, in milliseconds, at the creation
    /// of the experiment.
    pub fn first_answer_window_ms(&self) -> i64 {
        let first = self.initial_settings.as_ref();
        let seconds = first.map_or(self.answer_window_seconds, |it| it.answer_window_seconds);
        i64::from(seconds) * 1000
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

    /// The spec with other settings.
    pub fn with_settings(&self, settings: Settings) -> Self {
        let mut changed = self.clone();
        changed.initial_settings.get_or_insert_with(|| self.settings());
        changed.set(settings);
        changed.settings_changes += 1;
        changed
    }

    /// The spec with another control.
    pub fn with_control(&self, id: String) -> Self {
        let mut changed = self.clone();
        changed.former_controls.push(changed.control.replace(id));
        changed
    }

    /// The spec with one more ranker.
    pub fn with_enlisted(&self, ranker: Ranker) -> Self {
        let mut changed = self.clone();
        changed.rankers.push(ranker);
        changed.roster_changes.enlisted += 1;
        changed
    }

    /// The spec with `ranker` retired.
    pub fn with_retired(&self, ranker: usize) -> Self {
        let mut changed = self.clone();
        changed.roster_changes.retired.push(ranker as u16);
        changed
    }

    /// The spec with more units excluded.
    pub fn with_exclusion(&self, exclusion: Exclusion) -> Self {
        let mut changed = self.clone();
        changed.exclusions.push(exclusion);
        changed
    }

    /// The units whose answers do not count.
    pub fn excluded_units(&self) -> impl Iterator<Item = UnitHash> + '_ {
        exclusions::units(&self.exclusions)
    }

    /// How often each part was changed since the creation.
    pub fn changes(&self) -> Changes {
        Changes {
            control: self.former_controls.len(),
            settings: self.settings_changes,
            exclusions: self.exclusions.len(),
        }
    }

    /// The spec that the experiment was created from.
    pub fn as_created(&self) -> Self {
        let rankers = self.rankers[..self.initial_rankers()].to_vec();
        let roster_changes = RosterChanges::default();
        let control = self.former_controls.first().unwrap_or(&self.control).clone();
        let mut created = Self {
            rankers,
            control,
            former_controls: Vec::new(),
            roster_changes,
            exclusions: Vec::new(),
            settings_changes: 0,
            ..self.clone()
        };
        if let Some(settings) = created.initial_settings.take() {
            created.set(settings);
        }
        created
    }

    /// Whether a request to create `requested` repeats the creation of this experiment, which has
    /// `seed`. A request may spell out the defaults and the seed that the service has chosen.
    pub fn is_repeated_by(&self, requested: &Self, seed: u64) -> bool {
        let spelt_out = |spec: &Self| {
            let mut spec = spec.clone();
            spec.seed.get_or_insert(seed);
            spec.pages.settle_after_seconds = Some(spec.settle_after_seconds());
            spec
        };
        spelt_out(&self.as_created()) == spelt_out(requested)
    }

    /// How many rankers the experiment was created with.
    pub fn initial_rankers(&self) -> usize {
        self.rankers.len() - usize::from(self.roster_changes.enlisted)
    }

    /// The roster; `None` if the list of retired rankers is invalid. A ranker that is held out is
    /// not active.
    pub fn roster(&self) -> Option<Roster> {
        let held_out = self.held_out().map(|ranker| ranker as u16);
        let mut retired: Vec<u16> =
            self.roster_changes.retired.iter().copied().chain(held_out).collect();
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

    /// The control that the experiment was created with.
    pub fn first_control(&self) -> Option<usize> {
        let first = self.former_controls.first().unwrap_or(&self.control);
        self.ranker_index(first.as_ref()?)
    }

    /// Whether this ranker is retired.
    pub fn is_retired(&self, ranker: usize) -> bool {
        self.roster_changes.retired.iter().any(|&retired| usize::from(retired) == ranker)
    }

    /// Index of the ranker with this id.
    pub fn ranker_index(&self, id: &str) -> Option<usize> {
        self.rankers.iter().position(|ranker| ranker.id == id)
    }
}
