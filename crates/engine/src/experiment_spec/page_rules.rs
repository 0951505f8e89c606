//! Rules for the pages of an experiment: how they are interleaved, the weights of events on them,
//! and when clicks that arrive in several events are turned into an outcome.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::field_error::{FieldError, excerpt, pointer_part, range_error, share_error};
use super::ranker::Ranker;
use interleaving::{self, MAX_WEIGHT};
use rankduel_store::label::label_fault;

/// The default kind of event.
pub const CLICK: &str = "click";
/// Default time from issuing a duel to settling it on the clicks that have arrived.
pub const DEFAULT_SETTLE_AFTER_SECONDS: u32 = 1800;
/// Default share of pages that compare the two ids of a canary, and the largest one.
pub const DEFAULT_CANARY_SHARE: f64 = 0.05;
const MAX_CANARY_SHARE: f64 = 0.5;
/// Most kinds of events that can have a weight.
pub const MAX_EVENTS: usize = 32;
/// Most method versions of one experiment: pages are counted for each version.
pub const MAX_METHOD_VERSIONS: u32 = 100;
const MAX_EVENT_CHARS: usize = 100;

/// The rules for the pages of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PageRules {
    /// The current method.
    pub interleaving: interleaving::Spec,
    /// Number of the current method: 1 for the method at the creation.
    pub interleaving_version: u32,
    /// Weight of each kind of event on a document, 1 to [`MAX_WEIGHT`].
    pub event_weights: BTreeMap<String, u32>,
    /// Time from issuing a duel to settling it on the clicks that have arrived. Without it,
    /// [`DEFAULT_SETTLE_AFTER_SECONDS`] or the time in which answers come, whichever is shorter.
    pub settle_after_seconds: Option<u32>,
    /// Two ids of the same ranker, for an A/A test: they should show no difference.
    pub canary: Option<[String; 2]>,
    /// Share of pages that compare the two ids of the canary. Above 0, the second id takes no part
    /// in the tournament. With 0 it does, and the policy selects the duels of the two.
    #[serde(skip_serializing_if = "super::is_default")]
    pub canary_share: f64,
}

impl Default for PageRules {
    fn default() -> Self {
        Self {
            interleaving: interleaving::Spec::default(),
            interleaving_version: 1,
            event_weights: BTreeMap::from([(CLICK.to_owned(), 1)]),
            settle_after_seconds: None,
            canary: None,
            canary_share: 0.0,
        }
    }
}

impl PageRules {
    /// Time from issuing a duel to settling it, for duels whose answers come within `answers_within`
    /// seconds.
    pub fn settle_after_seconds(&self, answers_within: u32) -> u32 {
        self.settle_after_seconds
            .unwrap_or_else(|| DEFAULT_SETTLE_AFTER_SECONDS.min(answers_within))
    }

    /// All errors. If there are too many kinds of events, this is their only error.
    pub(crate) fn errors(&self, rankers: &[Ranker], duel_ttl_seconds: u32) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Err(error) = self.interleaving.validate() {
            errors
                .push(FieldError::new(format!("/interleaving/{}", error.parameter), error.detail));
        }
        let version = self.interleaving_version;
        errors.extend(range_error("/interleaving", version, 1..=MAX_METHOD_VERSIONS));
        if self.event_weights.len() > MAX_EVENTS {
            let detail = format!(
                "{} kinds of events have a weight; at most {MAX_EVENTS} can",
                self.event_weights.len()
            );
            errors.push(FieldError::new("/event_weights", detail));
        }
        let is_few = self.event_weights.len() <= MAX_EVENTS;
        for (event, weight) in self.event_weights.iter().filter(|_| is_few) {
            let pointer = format!("/event_weights/{}", pointer_part(event));
            if !(1..=MAX_EVENT_CHARS).contains(&event.chars().count()) {
                let detail = format!("the name of an event has 1 to {MAX_EVENT_CHARS} characters");
                errors.push(FieldError::new(&pointer, detail));
            }
            if let Some(fault) = label_fault(event) {
                let detail = format!("`{}` is no name of an event: {fault}", excerpt(event));
                errors.push(FieldError::new(&pointer, detail));
            }
            if !(1..=MAX_WEIGHT).contains(weight) {
                let detail =
                    format!("`{}` weighs {weight}; a weight is 1 to {MAX_WEIGHT}", excerpt(event));
                errors.push(FieldError::new(&pointer, detail));
            }
        }
        if let Some(seconds) = self.settle_after_seconds
            && !(1..=duel_ttl_seconds).contains(&seconds)
        {
            errors.push(FieldError::new(
                "/settle_after_seconds",
                format!(
                    "`settle_after_seconds` is {seconds}; it must be 1 to `duel_ttl_seconds`, {duel_ttl_seconds}"
                ),
            ));
        }
        if let Some(canary) = &self.canary {
            for (index, id) in canary.iter().enumerate() {
                if !rankers.iter().any(|ranker| ranker.id == *id) {
                    let detail = format!("there is no ranker `{}` among `rankers`", excerpt(id));
                    errors.push(FieldError::new(format!("/canary/{index}"), detail));
                }
            }
            if canary[0] == canary[1] {
                let detail = "a canary is two different ids of the same ranker".to_owned();
                errors.push(FieldError::new("/canary", detail));
            }
        }
        let share = self.canary_share;
        errors.extend(share_error("/canary_share", share, 0.0..=MAX_CANARY_SHARE));
        if share != 0.0 && self.canary.is_none() {
            let detail = "`canary_share` needs a `canary`".to_owned();
            errors.push(FieldError::new("/canary_share", detail));
        }
        errors
    }
}
