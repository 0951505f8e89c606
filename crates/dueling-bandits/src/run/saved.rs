//! The saved state of a run.

use super::{Changes, Run, Targets};
use crate::claims::control::ControlClaims;
use crate::claims::drift::Drift;
use crate::claims::segments::SegmentClaims;
use crate::evidence::{Cohorts, Race, VerdictTracker, verdict};
use crate::{PolicySpec, Roster, Setup};

/// The saved state of a [`Run`], without its roster.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct SavedRun {
    policy: Vec<u8>,
    verdict: verdict::State,
    cohorts: Cohorts,
    race: Race,
    claims: Option<Box<ControlClaims>>,
    segments: Option<Box<SegmentClaims>>,
    drift: Option<Drift>,
    changes: Changes,
}

impl Run {
    /// Version of the layout of a [`SavedRun`], without that of the policy.
    pub const FORMAT: u32 = 1;

    /// The state that is to be saved.
    pub fn saved(&self) -> SavedRun {
        SavedRun {
            policy: self.policy.save(),
            verdict: self.tracker.state().clone(),
            cohorts: self.cohorts.clone(),
            race: self.race.clone(),
            claims: self.claims.clone(),
            segments: self.segments.clone(),
            drift: self.drift.clone(),
            changes: self.changes.clone(),
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
        let policy = spec.restore(setup, &saved.policy)?;
        let rankers = roster.rankers();
        let is_sound = policy.tally().rankers() == rankers
            && saved.verdict.is_sound(policy.tally(), &roster)
            && saved.race.is_sound(rankers)
            && saved.changes.is_sound(&roster)
            && saved.drift.as_ref().is_none_or(|drift| drift.is_sound(rankers));
        is_sound.then_some(())?;
        let tracker =
            VerdictTracker::restore(targets.verdict, saved.verdict, roster.active().len());
        let cohorts = saved.cohorts.restored(rankers)?;
        let claims = match saved.claims {
            Some(claims) => Some(Box::new(claims.restored(targets.control, rankers)?)),
            None => None,
        };
        let segments = match saved.segments {
            Some(claims) => Some(Box::new(claims.restored(targets.segments, rankers)?)),
            None => None,
        };
        Some(Self {
            targets,
            claims,
            segments,
            drift: saved.drift,
            changes: saved.changes,
            ..Self::with(policy, roster, tracker, cohorts, saved.race)
        })
    }
}
