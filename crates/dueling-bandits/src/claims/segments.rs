//! Claims about segments: for whom the winner is wrong.
//!
//! A *segment* is a declared part of the traffic, such as the users of a phone. For the winner w,
//! and in each segment s a *rival* that it may lose to there, there are two kinds of claims on the
//! preference `P_s` of the pages of s:
//!
//! - *Hurt*, for each segment: `P_s(rival≻w) > 1/2 + m`. Any of them is an alarm, so the segments
//!   share one error: each has an equal part of the capital.
//! - *Unhurt*, once for all: `P_s(w≻rival) > 1/2 - m` in every segment. It needs all of its parts.
//!   They share one error too: the claim then errs as seldom whichever of the declared segments
//!   are left.
//!
//! "Hurt" has four fifths of the error and "unhurt" one fifth. Each part is a rung of a
//! [ladder](super::ladder), which also bounds by how much the winner loses.
//!
//! The rival is the control; without one, and if the winner is the control, it is in each segment
//! the ranker that did best against the winner there. Evidence counts from the verdict on: before
//! it, nobody knows whom to protect, and a claim for each ranker would divide the error by their
//! number. Whatever the counted answers before it say can choose the rivals therefore; an answer
//! that waits cannot, because it counts afterwards.
//!
//! Another winner drops all capital, another rival that of its segments, and the new claims get
//! their stakes from what the [reserve](super::capital) keeps for changes. The reserve and the
//! capital of the false claims are together a nonnegative supermartingale that starts at 1, as for
//! a [control](super::control).
//!
//! Whoever starts the verdict again may have seen, in the answers that wait, a winner that would
//! have come next and how it does in the segments. So each start takes the stakes that its winner
//! would have had, whether there was one or not.
//!
//! Equal parts tell three bad segments of sixteen in half of the pages that stakes on the leading
//! claim need.

use std::collections::BTreeMap;

use rand::RngExt;

use crate::claims::capital::Reserve;
use crate::claims::ladder::{
    Answers, Contests, Direction, MOST_COMPARISONS, Progress, Stage, add_half_wins,
};
use crate::evidence::{EqualAnswers, Target};
use crate::{Duel, PolicyRng, Selection};

/// Most segments of an experiment.
pub const SEGMENTS_MAX: usize = 16;
/// Share of the error of "hurt".
const HURT: f64 = 0.8;
/// Most pairs, each in one segment, whose answers are counted: 100 KB.
const PAIRS_MAX: usize = 4096;
/// The win rate of a rival in a segment starts with this many imagined answers at its win rate over
/// all traffic.
const PRIOR_ANSWERS: f64 = 4.0;
/// Largest expected number of answers of which none is seen with a probability of 5 % or more:
/// `-ln 0.05`.
const NONE_SEEN: f64 = 3.0;
/// Where a claim needs more pages than this, [`SegmentClaims::least_pages`] is this number.
const LEAST_PAGES_MAX: u32 = 1000;
/// Directions of the contest of the rival, first, and the winner.
const RIVAL: Direction = Direction::Ahead;
const WINNER: Direction = Direction::Behind;

/// The claims about segments, which have the numbers 1, 2, …; 0 is the rest of the traffic.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SegmentClaims {
    segments: u8,
    reserve: Reserve,
    /// Comparisons that count.
    comparisons: u64,
    /// The winner, and how many comparisons had counted when it became known.
    winner: Option<(u16, u64)>,
    /// By segment; empty without a winner.
    rivals: Vec<u16>,
    /// Of the rival and the winner, by segment.
    contests: Contests,
    /// Half wins of each pair by the number of the segment, of the lower ranker first, with or
    /// without a winner.
    met: BTreeMap<(u8, u16, u16), [u32; 2]>,
    /// Fewest pages that can decide a part. Follows from the rest.
    #[serde(skip)]
    least_pages: u64,
}

impl SegmentClaims {
    /// No winner yet; at most [`SEGMENTS_MAX`] segments.
    pub fn new(target: Target, segments: usize) -> Self {
        let segments = segments.min(SEGMENTS_MAX);
        let mut claims = Self {
            segments: segments as u8,
            reserve: Reserve::without_doublings(),
            comparisons: 0,
            winner: None,
            rivals: Vec::new(),
            contests: Contests::new(target, HURT, segments),
            met: BTreeMap::new(),
            least_pages: 0,
        };
        claims.least_pages = claims.fewest_pages();
        claims
    }

    /// Decoded claims with their target; `None` if they do not fit this many rankers.
    pub fn restored(self, target: Target, rankers: usize) -> Option<Self> {
        let known = |ranker: u16| usize::from(ranker) < rankers;
        let expected = if self.winner.is_some() { self.segments() } else { 0 };
        let is_sound = self.segments() <= SEGMENTS_MAX
            && self.reserve.is_sound()
            && self.winner.is_none_or(|(winner, _)| known(winner))
            && self.rivals.len() == expected
            && self.rivals.iter().copied().all(known)
            && self.met.len() <= PAIRS_MAX
            && self.met.keys().all(|&(_, first, second)| first < second && known(second));
        is_sound.then_some(())?;
        let contests = self.contests.restored(target, HURT, self.segments.into())?;
        let mut claims = Self { contests, ..self };
        claims.least_pages = claims.fewest_pages();
        Some(claims)
    }

    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.segments.into()
    }

    /// The ranker that the claims are about: the newest winner.
    pub fn winner(&self) -> Option<usize> {
        self.winner.map(|(winner, _)| winner.into())
    }

    /// The rival of the winner in a segment, from 0; `None` without a winner.
    pub fn rival(&self, segment: usize) -> Option<usize> {
        self.rivals.get(segment).map(|&rival| rival.into())
    }

    /// The error of "hurt", shared by all segments.
    pub fn hurt_error(&self) -> f64 {
        self.contests.error(RIVAL)
    }

    /// The error of "unhurt".
    pub fn unhurt_error(&self) -> f64 {
        self.contests.error(WINNER)
    }

    /// Estimated bytes in memory.
    pub fn bytes(&self) -> usize {
        32 * self.met.len() + self.contests.bytes()
    }

    /// Count answers. Call [`SegmentClaims::counted`] afterwards, once for a whole cohort.
    pub fn count(&mut self, answers: &EqualAnswers) {
        let &EqualAnswers { duel, outcome, score, segment, .. } = answers;
        let (first, second) = outcome.half_wins();
        if usize::from(segment) > self.segments() || first + second == 0 && score.is_none() {
            return;
        }
        let (low, high) = (duel.first.min(duel.second), duel.first.max(duel.second));
        let key = (segment, low as u16, high as u16);
        if self.met.len() < PAIRS_MAX || self.met.contains_key(&key) {
            let met = self.met.entry(key).or_default();
            add_half_wins(met, low, answers);
        }
        let Some(place) = usize::from(segment).checked_sub(1) else { return };
        let Some((rival, winner)) = self.rival(place).zip(self.winner()) else { return };
        if duel == Duel::new(rival, winner) || duel == Duel::new(winner, rival) {
            self.contests.add(place, rival, answers);
        }
    }

    /// A cohort was counted as a whole, with this many comparisons of any pairs: check the claims.
    pub fn counted(&mut self, comparisons: u64) {
        self.comparisons += comparisons;
        self.contests.check(self.comparisons);
    }

    /// The verdict has started again: what was kept for the winner before is gone.
    pub fn verdict_started_again(&mut self) {
        self.reserve.first_or_change();
        self.least_pages = self.fewest_pages();
    }

    /// The verdict has started again because preferences have changed: no claim holds any more.
    pub fn start_again(&mut self) {
        (self.winner, self.rivals) = (None, Vec::new());
        self.verdict_started_again();
    }

    /// The winner and the control at this moment, after whole cohorts were counted. Another winner
    /// starts all claims again; another control, or a rival that was retired, those of the segments
    /// whose rival changes. `wins(x, y)` are the wins of x over y that count.
    pub fn follow(
        &mut self,
        winner: Option<usize>,
        control: Option<usize>,
        wins: &dyn Fn(usize, usize) -> f64,
        active: &[usize],
    ) {
        let is_active = |ranker: usize| active.contains(&ranker);
        if self.winner().is_some_and(|winner| !is_active(winner)) {
            (self.winner, self.rivals) = (None, Vec::new());
            self.least_pages = self.fewest_pages();
        }
        let Some(winner) = winner.filter(|&winner| is_active(winner)) else { return };
        let control = control.filter(|&control| control != winner && is_active(control));
        let is_same = self.winner() == Some(winner);
        let is_kept = |rival: usize| {
            is_same && is_active(rival) && control.is_none_or(|control| control == rival)
        };
        let places = 0..self.segments();
        let fresh: Vec<usize> =
            places.filter(|&place| !self.rival(place).is_some_and(is_kept)).collect();
        if is_same && fresh.is_empty() {
            return;
        }
        self.rivals.resize(self.segments(), 0);
        let amount = self.reserve.first_or_change();
        let each = amount / fresh.len() as f64;
        for place in fresh {
            let rival = control.or_else(|| self.strongest(place, winner, wins, active));
            self.rivals[place] = rival.unwrap_or(winner) as u16;
            self.contests.reset(place);
            self.contests.stake(place, RIVAL, each);
            self.contests.stake(place, WINNER, each);
        }
        if !is_same {
            self.winner = Some((winner as u16, self.comparisons));
        }
        self.least_pages = self.fewest_pages();
    }

    /// The ranker with the largest win rate against the winner in a segment. The rate over all
    /// traffic starts with one win and one loss, that in the segment with [`PRIOR_ANSWERS`].
    fn strongest(
        &self,
        segment: usize,
        winner: usize,
        wins: &dyn Fn(usize, usize) -> f64,
        active: &[usize],
    ) -> Option<usize> {
        let rate = |rival: usize| {
            let [won, lost] = [wins(rival, winner), wins(winner, rival)];
            let of_all = (won + 1.0) / (won + lost + 2.0);
            let [wins, losses] = self.wins_between(segment + 1, rival, winner);
            (wins + PRIOR_ANSWERS * of_all) / (wins + losses + PRIOR_ANSWERS)
        };
        let rivals = active.iter().copied().filter(|&rival| rival != winner);
        rivals.reduce(|best, rival| if rate(rival) > rate(best) { rival } else { best })
    }

    /// Wins of `x` over `y` and of `y` over `x` that count, with or without a winner, in the
    /// segment with this number.
    pub fn wins_between(&self, number: usize, x: usize, y: usize) -> [f64; 2] {
        let (low, high) = (x.min(y), x.max(y));
        let met = self.met.get(&(number as u8, low as u16, high as u16));
        let [of_low, of_high] = met.copied().unwrap_or_default().map(|half| f64::from(half) / 2.0);
        if x == low { [of_low, of_high] } else { [of_high, of_low] }
    }

    /// Wins and losses of the winner against its rival in a segment that count.
    pub fn wins_and_losses(&self, segment: usize) -> [f64; 2] {
        match self.winner {
            Some(_) => {
                let [wins, losses] = self.contests.wins_and_losses(segment);
                [losses, wins]
            }
            None => [0.0; 2],
        }
    }

    /// The winner is proven to win less than this in a segment.
    pub fn at_most(&self, segment: usize) -> Option<f64> {
        self.winner?;
        Some(1.0 - self.contests.view(segment, RIVAL).bound()?)
    }

    /// How far the claim is that the winner loses to its rival in a segment.
    pub fn hurt(&self, segment: usize) -> Progress {
        let progress = match self.winner {
            Some(_) => self.contests.view(segment, RIVAL).progress(self.contests.rungs().better()),
            None => Progress::Open { comparisons: None },
        };
        match progress {
            Progress::Open { .. } if self.is_too_small(segment) => Progress::OutOfReach,
            progress => progress,
        }
    }

    /// After how many comparisons it was proven that the winner is not hurt in a segment, as a part
    /// of that claim.
    fn unhurt_in(&self, segment: usize) -> Option<u64> {
        self.contests.view(segment, WINNER).reached_at(self.contests.rungs().not_worse())
    }

    /// After how many comparisons it was proven that the winner is hurt in no segment; `None` if it
    /// is not.
    pub fn unhurt_after(&self) -> Option<u64> {
        let reached = (0..self.rivals.len()).map(|place| self.unhurt_in(place));
        reached.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Fewest pages of a segment that can prove that the winner loses there: if it loses them all.
    pub fn least_pages(&self) -> u64 {
        self.least_pages
    }

    fn fewest_pages(&self) -> u64 {
        let rungs = self.contests.rungs();
        let ln =
            |half_wins| rungs.ln_evidence(rungs.better(), &Answers { half_wins, scores: None });
        let stake = match self.rivals[..] {
            [] => libm::log(self.reserve.left() / f64::from(self.segments.max(1))),
            [..] => self.contests.view(0, RIVAL).ln_stake(rungs.better()),
        };
        let needed = -libm::log(self.hurt_error()) - stake;
        let pages = (1..LEAST_PAGES_MAX).find(|&pages| ln([2 * pages, 0]) >= needed);
        pages.unwrap_or(LEAST_PAGES_MAX).into()
    }

    /// Whether a segment has so small a part of the traffic that it will not have enough pages
    /// while all of them have as many as any claim may take.
    fn is_too_small(&self, segment: usize) -> bool {
        let since = self.winner.map_or(0, |(_, at)| self.comparisons - at) as f64;
        let pages: f64 = self.wins_and_losses(segment).iter().sum();
        // an upper limit of the expected number of pages: two standard deviations more
        let most = pages + NONE_SEEN + 2.0 * pages.sqrt();
        since >= MOST_COMPARISONS || most * MOST_COMPARISONS < self.least_pages as f64 * since
    }

    /// Whether more pages of the winner and its rivals decide nothing about a segment.
    fn is_settled_in(&self, segment: usize) -> bool {
        let is_decided = || {
            let hurt = self.contests.view(segment, RIVAL).stage(self.contests.rungs().better());
            hurt != Stage::Open || self.unhurt_in(segment).is_some()
        };
        self.winner.is_some() && is_decided() || self.is_too_small(segment)
    }

    /// Whether each segment is settled for this winner: that it is hurt there is proven, disproven
    /// or out of reach.
    pub fn is_settled(&self, winner: usize) -> bool {
        self.winner() == Some(winner) && (0..self.segments()).all(|it| self.is_settled_in(it))
    }

    /// The segments in which the winner is proven to be hurt.
    pub fn hurt_segments(&self) -> impl Iterator<Item = usize> + '_ {
        let better = self.contests.rungs().better();
        let is_hurt =
            move |place: &usize| self.contests.view(*place, RIVAL).reached_at(better).is_some();
        (0..self.rivals.len()).filter(is_hurt)
    }

    /// The rivals of this winner in the segments that are not settled, ascending.
    fn open_rivals(&self, winner: usize) -> Vec<usize> {
        let is_it = self.winner() == Some(winner);
        let open = (0..self.segments()).filter(|&it| is_it && !self.is_settled_in(it));
        let mut rivals: Vec<usize> = open.filter_map(|segment| self.rival(segment)).collect();
        rivals.sort_unstable();
        rivals.dedup();
        rivals
    }

    /// The duel that the claims about this winner need: with a rival of a segment that is not
    /// settled, whatever the segment of the page, so that the pages of a pair are a fair sample.
    pub fn select(&self, winner: usize, rng: &mut PolicyRng) -> Option<Selection> {
        let rivals = self.open_rivals(winner);
        let rival = match rivals[..] {
            [] => return None,
            [rival] => rival,
            _ => rivals[rng.random_range(0..rivals.len())],
        };
        Some(Selection::of(winner, rival))
    }
}
