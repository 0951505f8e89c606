//! Changes of the settings of an experiment.

use serde_json::{Map, Value};

use crate::service::change::{Decided, Decision, Newest};
use crate::service::error::ServiceError;
use dueling_bandits::evidence::Target;
use rankduel_engine::experiment_spec::{
    ConcludeAt, ConcludeAtChange, Errors, ExperimentSpec, FieldError, MAX_WINDOWS, Settings,
};
use rankduel_store::events::ControlEvent;

/// The settings to change; `None` leaves one as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettingsChange {
    pub description: Option<String>,
    /// Whom to ask about it.
    pub owner: Option<String>,
    /// The answer window of duels that are issued from now on.
    pub answer_window_seconds: Option<u32>,
    /// Share of units that take part from now on.
    pub coverage: Option<f64>,
    /// When it concludes by itself; the inner `None` is never.
    pub conclude_at: Option<Option<ConcludeAtChange>>,
}

impl SettingsChange {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The spec with these settings, which may be invalid.
    fn of(&self, spec: &ExperimentSpec) -> Result<ExperimentSpec, ServiceError> {
        let mut settings = spec.settings();
        settings.coverage = self.coverage.unwrap_or(settings.coverage);
        if let Some(description) = &self.description {
            settings.description.clone_from(description);
        }
        if let Some(owner) = &self.owner {
            settings.owner.clone_from(owner);
        }
        if let Some(window) = self.answer_window_seconds {
            if (window == 0) != spec.counts_at_once() {
                let detail = format!(
                    "`answer_window_seconds` is {}, and changes neither from nor to 0: answers that \
                     count as they arrive follow another rule; create another experiment",
                    spec.answer_window_seconds
                );
                return Err(ServiceError::field("/answer_window_seconds", detail));
            }
            settings.answer_window_seconds = window;
        }
        if let Some(change) = self.conclude_at {
            let at = change.map(|change| change.of(spec.conclude_at)).transpose();
            settings.conclude_at = at.map_err(|error| ServiceError::Invalid(vec![error]))?;
            refuse_other_target(spec, settings.conclude_at)?;
        }
        Ok(spec.with_settings(settings))
    }
}

/// Refuse a rule of conclusion that would change the target of the verdict, or that concludes at
/// another target than the one its policy works towards.
fn refuse_other_target(spec: &ExperimentSpec, at: Option<ConcludeAt>) -> Result<(), ServiceError> {
    let (own, target) = (spec.verdict_target(), Errors::targets(spec.errors, at).verdict);
    if own != target {
        let detail = format!(
            "the verdict has confidence {} and margin {}, which cannot change, and without \
             `conclude_at` it would have {} and {}",
            own.confidence, own.margin, target.confidence, target.margin
        );
        return Err(ServiceError::field("/conclude_at", detail));
    }
    if at.is_none() {
        return Ok(());
    }
    let Target { confidence, margin } = target;
    let policy = serde_json::to_value(&spec.policy).unwrap_or_default();
    for (name, value) in [("confidence", confidence), ("margin", margin)] {
        if let Some(own) = policy[name].as_f64().filter(|own| *own != value) {
            let detail = format!(
                "the experiment would conclude at `{name}` {value}, and its policy works towards \
                 {own}: create another experiment"
            );
            return Err(ServiceError::field("/conclude_at", detail));
        }
    }
    Ok(())
}

/// Decide a change of the settings.
pub(super) fn set(on: &Newest<'_>, change: &SettingsChange) -> Decision {
    let &Newest { loaded, spec, .. } = on;
    let changed = change.of(spec)?;
    let (before, after) = (spec.settings(), changed.settings());
    if before == after {
        return Ok(None);
    }
    let window = after.answer_window_seconds;
    let answer_window_seconds = (window != before.answer_window_seconds).then_some(window);
    let mut errors = changed.errors();
    if answer_window_seconds.is_some() && loaded.fold()?.cohorts().windows() >= MAX_WINDOWS {
        let detail =
            format!("the experiment has had {MAX_WINDOWS} answer windows, which is the limit");
        errors.push(FieldError::new("/answer_window_seconds", detail));
    }
    ServiceError::unless_valid(errors)?;
    let (old, new) = difference(&before, &after);
    let event = ControlEvent::Settings { answer_window_seconds };
    Ok(Some(Decided::of_spec(&changed, event, old, new)))
}

/// The members that differ, with their old and their new values.
fn difference(before: &Settings, after: &Settings) -> (Value, Value) {
    let members = |settings| serde_json::to_value(settings).unwrap_or_default();
    let (before, after) = (members(before), members(after));
    let (mut old, mut new) = (Map::new(), Map::new());
    for name in ["answer_window_seconds", "conclude_at", "coverage", "description", "owner"] {
        let (was, is) = (before[name].clone(), after[name].clone());
        if was != is {
            old.insert(name.to_owned(), was);
            new.insert(name.to_owned(), is);
        }
    }
    (old.into(), new.into())
}
