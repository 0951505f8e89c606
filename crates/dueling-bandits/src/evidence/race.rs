//! The race to the verdict: how the evidence for the leader grew, rival by rival.
//!
//! Points are taken at numbers of comparisons that grow by a twelfth each time, so there are some
//! 200 of them after ten million comparisons. The last point is taken at the verdict.

use crate::Tally;
use crate::evidence::verdict::VerdictTracker;

/// Comparisons before the first point.
const FIRST: u64 = 12;
/// The numbers of comparisons at points grow by the inverse of this.
const GROWTH: u64 = 12;
/// With more rankers than this the race is not kept: a point takes a time that grows with their
/// square.
pub const RANKERS_MAX: usize = 128;
/// Most rivals of a point: those with the least evidence against them.
const RIVALS_MAX: usize = 16;

/// The evidence at one moment.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RacePoint {
    /// Steps so far, self-duels included.
    pub steps: u64,
    /// Unix milliseconds at which the newest entry was recorded.
    pub recorded_at: i64,
    /// The leader: the ranker nearest to a verdict.
    pub leader: u16,
    /// Rivals, the one with the least evidence against it first, with the natural logarithm of the
    /// evidence that the leader wins against it.
    pub rivals: Vec<(u16, f32)>,
}

/// The points so far.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Race {
    points: Vec<RacePoint>,
    /// Comparisons so far, and those at which the next point is taken.
    comparisons: u64,
    next: u64,
}

impl Race {
    /// `count` comparisons, or none, were added to `tally`, and `tracker` has observed them.
    pub fn observe(
        &mut self,
        tracker: &VerdictTracker,
        tally: &Tally,
        active: &[usize],
        count: u64,
        recorded_at: i64,
    ) {
        self.comparisons += count;
        let is_due = self.comparisons >= self.next.max(FIRST) || tracker.verdict().is_some();
        if !is_due || active.len() > RANKERS_MAX || self.is_over(tracker) {
            return;
        }
        self.next = self.comparisons + (self.comparisons / GROWTH).max(1);
        self.points.push(point(tracker, tally, active, recorded_at));
    }

    /// The roster changed: the race starts again.
    pub fn roster_changed(&mut self) {
        *self = Self::default();
    }

    /// The points so far, in order of time.
    pub fn points(&self) -> &[RacePoint] {
        &self.points
    }

    /// Whether the points are of this many rankers. A decoded race may not be.
    pub fn is_sound(&self, rankers: usize) -> bool {
        let known = |ranker: u16| usize::from(ranker) < rankers;
        self.points
            .iter()
            .all(|point| known(point.leader) && point.rivals.iter().all(|&(rival, _)| known(rival)))
    }

    /// Whether there is a point at the verdict, or later.
    fn is_over(&self, tracker: &VerdictTracker) -> bool {
        let newest = self.points.last().map_or(0, |point| point.steps);
        tracker.verdict().is_some_and(|verdict| newest >= verdict.steps)
    }
}

/// Where the race stands.
fn point(tracker: &VerdictTracker, tally: &Tally, active: &[usize], recorded_at: i64) -> RacePoint {
    let standing = tracker.leader(tally, active);
    let mut rivals: Vec<(u16, f32)> =
        standing.rivals.iter().map(|&(rival, ln)| (rival as u16, ln as f32)).collect();
    rivals.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    rivals.truncate(RIVALS_MAX);
    RacePoint { steps: tally.steps(), recorded_at, leader: standing.ranker as u16, rivals }
}
