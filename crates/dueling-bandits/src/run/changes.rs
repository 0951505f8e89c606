//! Changes that people make, and that the claims follow in the order of issue.
//!
//! Whoever enlists a ranker, retires one or names a control has seen the answers that wait. If the
//! claims followed at once, the change would choose which of these answers count, and for what. So
//! a change waits too: until every duel issued before it is counted, and the changes before it are
//! made. It then rests on nothing that counts after it.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::Run;
use crate::Roster;

/// A change, with the ranker that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Change {
    /// The ranker is the control.
    Control(u16),
    /// It takes part.
    Enlisted(u16),
    /// It takes no part any more.
    Retired(u16),
}

/// The changes that wait, each with the time of issue of the first duels that follow it.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Changes(VecDeque<(i64, Change)>);

impl Changes {
    /// A change, which follows all that wait.
    pub fn add(&mut self, change: Change, from: i64) {
        let newest = self.0.back().map_or(from, |newest| newest.0);
        self.0.push_back((from.max(newest), change));
    }

    /// The next change and its time, if all duels that were issued before it are counted once those
    /// issued before `until` are.
    pub fn take_until(&mut self, until: i64) -> Option<(i64, Change)> {
        self.0.pop_front_if(|(from, _)| *from <= until)
    }

    /// The newest control that waits.
    pub fn control(&self) -> Option<usize> {
        let control = |&(_, change): &_| match change {
            Change::Control(ranker) => Some(ranker.into()),
            Change::Enlisted(_) | Change::Retired(_) => None,
        };
        self.0.iter().rev().find_map(control)
    }

    /// The rankers that took part before the changes that wait, ascending.
    pub fn active_before<'a>(&self, roster: &'a Roster) -> Cow<'a, [usize]> {
        let mut active = Cow::Borrowed(roster.active());
        for &(_, change) in self.0.iter().rev() {
            match change {
                Change::Control(_) => {}
                Change::Enlisted(ranker) => {
                    active.to_mut().retain(|&known| known != usize::from(ranker));
                }
                Change::Retired(ranker) => {
                    let place = active.partition_point(|&known| known < usize::from(ranker));
                    active.to_mut().insert(place, ranker.into());
                }
            }
        }
        active
    }

    /// Whether decoded changes fit this roster.
    pub fn is_sound(&self, roster: &Roster) -> bool {
        let fits = |&(_, change): &(i64, Change)| match change {
            Change::Control(ranker) | Change::Enlisted(ranker) => {
                usize::from(ranker) < roster.rankers()
            }
            Change::Retired(ranker) => {
                usize::from(ranker) < roster.rankers() && !roster.is_active(ranker.into())
            }
        };
        self.0.iter().all(fits) && self.0.iter().is_sorted_by_key(|&(from, _)| from)
    }
}

impl Run {
    /// Somebody makes a change at this time, which the claims follow with the first cohort that is
    /// issued after it.
    pub(super) fn change(&mut self, change: Change, at: i64) {
        match self.cohorts.window_ms() {
            0 => self.make(change),
            _ => self.changes.add(change, self.cohorts.next_cohort(at)),
        }
    }

    /// The claims follow a change, before any answer to a duel issued after it is counted.
    pub(super) fn make(&mut self, change: Change) {
        if let Some(claims) = &mut self.claims {
            match change {
                Change::Control(ranker) => {
                    claims.name(ranker.into(), &self.changes.active_before(&self.roster));
                }
                Change::Enlisted(ranker) => claims.stake_on(ranker.into()),
                Change::Retired(ranker) => claims.retire(ranker.into()),
            }
        }
        if let (Change::Enlisted(_) | Change::Retired(_), Some(segments)) =
            (change, &mut self.segments)
        {
            segments.verdict_started_again();
        }
        self.follow_segments();
    }
}
