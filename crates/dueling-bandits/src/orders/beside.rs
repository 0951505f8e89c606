//! Beside the orders: what clicks say, how often the two agree, and what the window cut off.
//!
//! Each basket has one sign of clicks: whose credit is larger on its first page. Preferences by
//! clicks have intervals of [`Sequence`] with an error of their own, and so has the share of baskets
//! whose signs of clicks and orders agree.
//!
//! *Clicks mislead* if the clicks of a pair prove one ranker and its orders the other. For that to
//! be false, the clicks of a pair must have proven the wrong ranker, or its orders: each of them
//! happens in at most a share δ of experiments, so both in 2 δ. It decides nothing.
//!
//! *Cut off*: orders that come after the window do not count. If more of them are of rivals, the
//! window may have made the winner. Lines that were placed after the window and received before the
//! basket closed show by how much: three times their surplus are taken as losses of the winner. An
//! arrival time of a fifth of the window sees about a third of what an exponential delay cuts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evidence::lead::LeadEvidence;
use crate::evidence::scores::ScoreCounts;
use crate::evidence::{Sequence, VerdictTracker};
use crate::{Duel, Outcome, Tally};

/// Losses of the winner for each basket by which rivals have more after the window.
const UNSEEN: u32 = 3;

/// Counts of one pair, of the lower ranker and of the higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Counts {
    /// Baskets by the sign of their clicks.
    clicks: [u32; 2],
    /// Baskets by the sign of the credit of lines after the window.
    beyond: [u32; 2],
}

/// The findings of closed baskets beside their scores.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Beside {
    pairs: BTreeMap<(u16, u16), Counts>,
    /// Baskets whose clicks and orders have equal signs, and opposite ones.
    agreement: [u32; 2],
}

/// How often clicks and orders of a basket agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Baskets in which both prefer the same ranker.
    pub agree: u32,
    /// Baskets in which they do not.
    pub disagree: u32,
    /// The interval of the share that agree, at all times.
    pub interval: (f64, f64),
}

impl Beside {
    pub(super) fn count(&mut self, pair: (u16, u16), clicks: i32, credit: f64, beyond: f64) {
        let side = |sign: f64| usize::from(sign < 0.0);
        let clicks = f64::from(clicks);
        if clicks != 0.0 || beyond != 0.0 {
            let counts = self.pairs.entry(pair).or_default();
            counts.clicks[side(clicks)] += u32::from(clicks != 0.0);
            counts.beyond[side(beyond)] += u32::from(beyond != 0.0);
        }
        if clicks != 0.0 && credit != 0.0 {
            self.agreement[usize::from(side(clicks) != side(credit))] += 1;
        }
    }

    /// Counts of `x`, and of `y`.
    fn of(&self, x: usize, y: usize, counts: impl Fn(&Counts) -> [u32; 2]) -> [u32; 2] {
        let of_pair = self.pairs.get(&(x.min(y) as u16, x.max(y) as u16));
        let mut sides = of_pair.map_or([0, 0], counts);
        if x > y {
            sides.reverse();
        }
        sides
    }

    /// Baskets whose clicks prefer `x` to `y`, and `y` to `x`.
    pub fn clicks(&self, x: usize, y: usize) -> [u32; 2] {
        self.of(x, y, |counts| counts.clicks)
    }

    /// Baskets whose lines after the window prefer `x` to `y`, and `y` to `x`.
    pub fn beyond(&self, x: usize, y: usize) -> [u32; 2] {
        self.of(x, y, |counts| counts.beyond)
    }

    /// The interval of the clicks' preference for `x` over `y`, of so many `rankers`. All of them
    /// hold at all times together with this confidence.
    pub fn clicks_interval(
        &self,
        (x, y): (usize, usize),
        rankers: usize,
        confidence: f64,
    ) -> (f64, f64) {
        let [wins, losses] = self.clicks(x, y).map(f64::from);
        Sequence::for_pairs(rankers, confidence).interval(wins, losses)
    }

    /// How often clicks and orders agree, with an interval of this confidence at all times.
    pub fn agreement(&self, confidence: f64) -> Agreement {
        let [agree, disagree] = self.agreement;
        let sequence = Sequence::of_level(1.0 - confidence);
        let interval = sequence.interval(agree.into(), disagree.into());
        Agreement { agree, disagree, interval }
    }

    /// The pairs in which clicks mislead: the clicks prove that the first ranker is preferred, and
    /// the orders with these `scores` that the second one is. Any of them is false in at most twice
    /// the error of this confidence.
    pub fn misleading(&self, scores: &ScoreCounts, rankers: usize, confidence: f64) -> Vec<Duel> {
        let sequence = Sequence::for_pairs(rankers, confidence);
        let even = LeadEvidence::over(0.0);
        let misleads = |&(&(x, y), counts): &(&(u16, u16), &Counts)| {
            let [of_x, of_y] = counts.clicks.map(f64::from);
            let (x, y) = if of_x > of_y { (x, y) } else { (y, x) };
            let (x, y) = (usize::from(x), usize::from(y));
            let levels = |x, y| scores.levels(x, y).copied().unwrap_or_default();
            let orders = even.ln_with_scores(0.0, 0.0, &levels(y, x), &levels(x, y));
            (sequence.excludes_half(of_x, of_y) && orders >= sequence.threshold())
                .then(|| Duel::new(x, y))
        };
        self.pairs.iter().filter_map(|pair| misleads(&pair)).collect()
    }

    /// Whether the window may have made this winner of a verdict, on the counts of `tally` and with
    /// these `active` rankers.
    pub fn cuts_off(
        &self,
        tracker: &VerdictTracker,
        tally: &Tally,
        active: &[usize],
        winner: usize,
    ) -> bool {
        let mut with_lost = tally.clone();
        let mut lost = 0;
        for &rival in active.iter().filter(|&&rival| rival != winner) {
            let [of_rival, of_winner] = self.beyond(rival, winner);
            let more = of_rival.saturating_sub(of_winner).saturating_mul(UNSEEN);
            with_lost.record_run(Duel::new(rival, winner), Outcome::First, more);
            lost += more;
        }
        lost > 0 && !tracker.would_name(winner, &with_lost, active)
    }

    pub(super) fn is_sound(&self, rankers: usize) -> bool {
        self.pairs.keys().all(|&(x, y)| x < y && usize::from(y) < rankers)
    }
}
