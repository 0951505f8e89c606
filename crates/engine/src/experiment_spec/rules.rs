//! The rules that a spec must satisfy.

use std::collections::HashMap;

use super::by_orders;
use super::conclude_at::{CONFIDENCE, ConcludeAt};
use super::drift::watch_error;
use super::exclusions;
use super::field_error::{FieldError, FirstErrors, excerpt, percent_hint, range_error};
use super::metrics::{DEFAULT_VALUE_WINDOW_SECONDS, METRICS_MAX};
use super::spec::{ExperimentSpec, MAX_DUEL_TTL_SECONDS, MAX_SEED, RANKERS_MAX};
use dueling_bandits::MIN_RANKERS;
use dueling_bandits::claims::control::Goal;
use dueling_bandits::claims::segments::SEGMENTS_MAX;
use rankduel_store::label::{as_seen, label_fault};

/// The name of the segment of all pages without a declared one.
pub const OTHER: &str = "other";
/// Most characters of a description.
pub const MAX_DESCRIPTION_CHARS: usize = 1000;
/// Most characters of an owner.
pub const MAX_OWNER_CHARS: usize = 200;
/// The smallest part of a divided error.
const LEAST_ERROR: f64 = 0.0001;
/// Tolerance for sums of such parts, which are decimal fractions.
const ROUNDING: f64 = 1e-9;

impl ExperimentSpec {
    /// The first errors, at most [`ERRORS_MAX`](super::ERRORS_MAX); empty if the experiment can be
    /// created.
    pub fn errors(&self) -> Vec<FieldError> {
        let mut errors = FirstErrors::default();
        let count = self.rankers.len();
        errors.extend(self.ranker_count_error());
        if count > RANKERS_MAX {
            // a list of the wrong ones would help nobody
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
        errors.extend(by_orders::errors(self));
        if self.decide_by.is_none() {
            errors.extend(self.answer_window_errors());
        }
        errors.extend(self.pages.errors(&self.rankers, self.duel_ttl_seconds));
        errors.extend(self.control_error());
        errors.extend(segment_errors(self));
        errors.extend(division_errors(self));
        errors.extend(watch_error(self.watch, self.drift));
        errors.extend(self.coverage_error());
        errors.extend(self.alone_error());
        errors.extend(metric_errors(self));
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
            if let Some(earlier) = seen.insert(as_seen(&ranker.id), index) {
                let id = excerpt(&ranker.id);
                let detail = match self.rankers[earlier].id == ranker.id {
                    true => format!("ranker `{id}` is listed twice; it is also at index {earlier}"),
                    false => format!("ranker `{id}` looks the same as the one at index {earlier}"),
                };
                errors.push(FieldError::new(&pointer, detail));
            }
            errors.extend(ranker.description_error(&pointer));
        }
    }

    /// The error of a canary whose second id cannot be left out of the tournament.
    fn canary_error(&self) -> Option<FieldError> {
        self.held_out()?;
        let why = match self.policy.description().fixed_rankers {
            Some(why) => format!(
                "policy `{}` cannot leave a ranker out of the tournament: {why}",
                self.policy.kind()
            ),
            None if self.rankers.len() <= MIN_RANKERS => {
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
}

/// Errors of the texts of a spec.
fn text_errors(spec: &ExperimentSpec) -> impl Iterator<Item = FieldError> + '_ {
    let texts = [
        ("description", &spec.description, MAX_DESCRIPTION_CHARS),
        ("owner", &spec.owner, MAX_OWNER_CHARS),
    ];
    texts.into_iter().filter_map(|(name, text, most)| {
        let is_right = text.chars().count() <= most && !text.chars().any(char::is_control);
        let fault = label_fault(text).filter(|_| name == "owner");
        let detail = match fault {
            Some(fault) => format!("`{name}` is a label: {fault}"),
            None if is_right => return None,
            None => {
                format!("`{name}` has at most {most} characters, none of them a control character")
            }
        };
        Some(FieldError::new(format!("/{name}"), detail))
    })
}

/// The errors of the segments of a spec.
fn segment_errors(spec: &ExperimentSpec) -> Vec<FieldError> {
    let segments = &spec.segments;
    let mut errors = Vec::new();
    if segments.len() > SEGMENTS_MAX {
        let detail = format!(
            "an experiment has at most {SEGMENTS_MAX} `segments`; this one has {}: leave out the \
             smallest, which then count as `{OTHER}`",
            segments.len()
        );
        return vec![FieldError::new("/segments", detail)];
    }
    for (index, segment) in segments.iter().enumerate() {
        let pointer = format!("/segments/{index}");
        if let Some(earlier) = segments[..index].iter().position(|it| it == segment) {
            let detail = format!(
                "segment `{segment}` is listed twice; it is also at index {earlier}: leave one out"
            );
            errors.push(FieldError::new(&pointer, detail));
        }
        if segment.as_str() == OTHER {
            let detail = format!("`{OTHER}` is what all other labels count as: leave it out");
            errors.push(FieldError::new(&pointer, detail));
        }
    }
    let waits = spec.conclude_at.is_some_and(|at| at.segments);
    if segments.is_empty() && waits {
        let detail = "`segments` of `conclude_at` is true, and there is nothing to wait for: \
                      declare `segments`, or leave it out";
        errors.push(FieldError::new("/conclude_at/segments", detail));
    }
    errors
}

/// The errors of the division of a spec.
fn division_errors(spec: &ExperimentSpec) -> Vec<FieldError> {
    let Some(division) = spec.errors else { return Vec::new() };
    let whole = 1.0 - ConcludeAt::target(spec.conclude_at).confidence;
    let (named, most) = (division.named(), 1.0 - CONFIDENCE.start());
    let mut errors = Vec::new();
    let mut refuse = |name: &str, detail: String| {
        errors.push(FieldError::new(format!("/errors{name}"), detail));
    };
    let sum: f64 = named.iter().filter_map(|(_, part)| *part).sum();
    for (name, part) in named {
        if let Some(part) = part.filter(|part| !(LEAST_ERROR..=most).contains(part)) {
            let hint = percent_hint(part);
            let detail = format!(
                "`{name}` of `errors` is {part:?}; it must be {LEAST_ERROR} to {most}{hint}"
            );
            refuse(&format!("/{name}"), detail);
        }
    }
    // the sum of parts that are wrong says nothing
    let is_sound = errors.is_empty();
    let mut refuse = |name: &str, detail: String| {
        errors.push(FieldError::new(format!("/errors{name}"), detail));
    };
    if is_sound && sum > whole + ROUNDING {
        let round = |share: f64| (share * 1e9).round() / 1e9;
        let (sum, whole, least) = (round(sum), round(whole), round(1.0 - sum));
        let lower = match CONFIDENCE.contains(&least) {
            true => format!(", or set `confidence` of `conclude_at` to {least}"),
            false => String::new(),
        };
        let detail = format!(
            "`errors` sum to {sum:?}, which is above {whole}, one minus `confidence`: make one of \
             them smaller{lower}"
        );
        refuse("", detail);
    } else if is_sound {
        let needed =
            [true, spec.control.is_some(), !spec.segments.is_empty(), !spec.metrics.is_empty()];
        let parts = division.parts(whole).into_iter().zip(needed).zip(named);
        for ((part, is_needed), (name, own)) in parts {
            if is_needed && own.is_none() && part < LEAST_ERROR - ROUNDING {
                let detail = format!(
                    "`errors` leave nothing to `{name}`: make one of them smaller, or name `{name}`"
                );
                refuse(&format!("/{name}"), detail);
            }
        }
    }
    errors
}

/// The errors of the metrics of an experiment, and of the time within which their values come.
fn metric_errors(spec: &ExperimentSpec) -> Vec<FieldError> {
    let metrics = &spec.metrics;
    let mut errors = Vec::new();
    if metrics.len() > METRICS_MAX {
        let detail = format!(
            "an experiment has at most {METRICS_MAX} metrics; this one has {}",
            metrics.len()
        );
        return vec![FieldError::new("/metrics", detail)];
    }
    for (at, metric) in metrics.iter().enumerate() {
        errors.extend(metric.errors(at, spec.alone, spec.control.is_some()));
        if metrics[..at].iter().any(|earlier| earlier.name == metric.name) {
            let detail = format!("metric `{}` is listed twice", excerpt(&metric.name));
            errors.push(FieldError::new(format!("/metrics/{at}/name"), detail));
        }
    }
    let (window, most) = (spec.value_window_seconds, spec.duel_ttl_seconds);
    let is_default = window == DEFAULT_VALUE_WINDOW_SECONDS;
    // a time to live of 0 is refused by itself
    let is_valid = (1..=most).contains(&window) || metrics.is_empty() && is_default || most == 0;
    if !is_valid {
        let detail = format!(
            "`value_window_seconds` is {window}; it must be 1 to `duel_ttl_seconds`, {most}"
        );
        errors.push(FieldError::new("/value_window_seconds", detail));
    }
    errors
}
