//! The saved state of a run.

use super::{Run, Targets};
use crate::claims::control::{self, ControlClaims};
use crate::claims::drift::Drift;
use crate::claims::segments::{self, SegmentClaims};
use crate::evidence::{Cohorts, Race, VerdictTracker, cohorts, verdict};
use crate::{PolicySpec, Roster, Setup};

/// The saved state of a [`Run`], without its roster.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct SavedRun {
    policy: Vec<u8>,
    verdict: verdict::State,
    cohorts: cohorts::Saved,
    race: Race,
    claims: Option<control::State>,
    segments: Option<segments::State>,
    drift: Option<Drift>,
}

impl Run {
    /// Version of the layout of a [`SavedRun`], without that of the policy.
    pub const FORMAT: u32 = 1;

    /// The state that is to be saved.
    pub fn saved(&self) -> SavedRun {
        SavedRun {
            policy: self.policy.save(),
            verdict: self.tracker.state().clone(),
            cohorts: self.cohorts.saved().clone(),
            race: self.race.clone(),
            claims: self.claims.as_ref().map(|claims| claims.state().clone()),
            segments: self.segments.as_ref().map(|segments| segments.state().clone()),
            drift: self.drift.clone(),
        }
    }

    /// The run that was saved, with the policy of `spec` started at `setup`; `None` if the state
    /// does not fit.
    pub fn restore(
        (spec, setup): (&PolicySpec, Setup),
        targets: impl Into<Targets>,
        roster: Roster,
        saved: SavedRun,
    ) -> Option<Self> {
        let targets = targets.into();
        let format = spec.start(setup).format();
        let policy = spec.restore(setup, format, &saved.policy)?;
        let rankers = roster.rankers();
        let is_sound = policy.tally().rankers() == rankers
            && saved.verdict.is_sound(policy.tally(), &roster)
            && saved.race.is_sound(rankers)
            && saved.cohorts.is_sound(rankers)
            && saved.drift.as_ref().is_none_or(|drift| drift.is_sound(rankers));
        is_sound.then_some(())?;
        let tracker =
            VerdictTracker::restore(targets.verdict, saved.verdict, roster.active().len());
        let cohorts = Cohorts::restore(saved.cohorts);
        let restored =
            |state| ControlClaims::restore(targets.control, rankers, state).map(Box::new);
        let claims = match saved.claims {
            Some(state) => Some(restored(state)?),
            None => None,
        };
        let restored =
            |state| SegmentClaims::restore(targets.segments, rankers, state).map(Box::new);
        let segments = match saved.segments {
            Some(state) => Some(restored(state)?),
            None => None,
        };
        let drift = saved.drift;
        Some(Self {
            targets,
            claims,
            segments,
            drift,
            ..Self::with(policy, roster, tracker, cohorts, saved.race)
        })
    }
}
