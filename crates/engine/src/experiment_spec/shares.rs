//! Bounds of the share of pages on which a ranker is shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::field_error::{FieldError, excerpt, pointer_part};
use super::spec::ExperimentSpec;
use dueling_bandits::MIN_RANKERS;
use dueling_bandits::parameters::Setup;

/// Places of a page.
const PLACES: f64 = 2.0;

/// Bounds of the share of duels on which a ranker is shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareBounds {
    /// 0 by default.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub floor: f64,
    /// 1 by default.
    #[serde(default = "whole")]
    #[schema(minimum = 0, maximum = 1)]
    pub cap: f64,
}

fn whole() -> f64 {
    1.0
}

/// The bounds by the id of the ranker.
pub type Shares = BTreeMap<String, ShareBounds>;

impl ExperimentSpec {
    /// The bounds by the index of the ranker, of those that take part.
    pub fn active_shares(&self) -> impl Iterator<Item = (usize, ShareBounds)> + '_ {
        let active = |(id, bounds): (&String, &ShareBounds)| {
            let ranker = self.ranker_index(id).filter(|&ranker| !self.is_retired(ranker))?;
            Some((ranker, *bounds))
        };
        self.shares.iter().filter_map(active)
    }

    /// All errors of the bounds.
    pub(super) fn share_errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if self.shares.is_empty() {
            return errors;
        }
        for (id, ShareBounds { floor, cap }) in &self.shares {
            let pointer = format!("/shares/{}", pointer_part(id));
            if self.ranker_index(id).is_none_or(|ranker| self.held_out() == Some(ranker)) {
                let detail = format!("`{}` takes no part; name one of `rankers`", excerpt(id));
                errors.push(FieldError::new(&pointer, detail));
            }
            if !(0.0..=1.0).contains(floor) || !(0.0..=1.0).contains(cap) || floor > cap {
                let detail = format!(
                    "`floor` is {floor:?} and `cap` {cap:?}; both are 0 to 1, and the floor is not above \
                     the cap"
                );
                errors.push(FieldError::new(&pointer, detail));
            }
        }
        let mut refuse = |is_wrong: bool, detail: String| {
            if is_wrong {
                errors.push(FieldError::new("/shares", detail));
            }
        };
        let floors: f64 = self.active_shares().map(|(_, bounds)| bounds.floor).sum();
        refuse(
            floors > PLACES,
            format!("the floors sum to {floors}; a page has places for {PLACES} rankers"),
        );
        let capped = self.active_shares().filter(|(_, bounds)| bounds.cap < 1.0).count();
        let active = self.roster().map_or(0, |roster| roster.active().len());
        refuse(
            active < capped + MIN_RANKERS,
            format!("at least {MIN_RANKERS} rankers must have no `cap`, to be shown instead"),
        );
        let setup = Setup { rankers: self.initial_rankers(), seed: 0 };
        let can_start = setup.rankers >= MIN_RANKERS && self.policy.validate(setup.rankers).is_ok();
        refuse(
            can_start && self.policy.start(setup).batches().is_some(),
            format!("policy `{}` needs every duel that it selects", self.policy.kind()),
        );
        errors
    }
}
