//! Claims about segments: for whom the winner is wrong.
//!
//! A *segment* is a declared part of the traffic, such as the users of a phone. For the winner w,
//! and in each segment s a *rival* that it may lose to there, there are two kinds of claims on the
//! preference `P_s` of the pages of s:
//!
//! - *Hurt*, for each segment: `P_s(rival≻w) > 1/2 + m`. Any of them is an alarm, so the segments
//!   share one error: each has an equal part of the capital.
//! - *Unhurt*, once for all: `P_s(w≻rival) > 1/2 - m` in every segment. It needs all of its parts,
//!   so each part has the whole capital: if the claim is wrong, one of its parts is false, and that
//!   one part has reached `1/δ`.
//!
//! "Hurt" has four fifths of the error and "unhurt" one fifth, which they need alike with four
//! segments. Each part is a rung of a [ladder](super::ladder), which also bounds by how much the
//! winner loses.
//!
//! The rival is the control; without one, and if the winner is the control, it is in each segment
//! the ranker that did best against the winner there. Evidence counts from the verdict on: before
//! it, nobody knows whom to protect, and a claim for each ranker would divide the error by their
//! number. Whatever the answers before it say can choose the rivals therefore.
//!
//! Another winner drops all capital, another rival that of its segments, and the new claims get
//! their stakes from what the [reserve](super::capital) keeps for changes. The reserve and the
//! capital of the false claims are together a nonnegative supermartingale that starts at 1, as for
//! a [control](super::control).
//!
//! A segment whose traffic becomes another experiment's leaves the claims. The others keep theirs,
//! which are about the same pages as before.
//!
//! Equal parts tell three bad segments of sixteen in half of the pages that stakes on the leading
//! claim need.

use std::collections::BTreeMap;

use rand::RngExt;

use crate::claims::capital::Reserve;
use crate::claims::ladder::{Answers, Ladder, MOST_COMPARISONS, Progress, Rungs};
use crate::evidence::Target;
use crate::evidence::scores::{Score, ScoreCounts};
use crate::{Duel, Outcome, PolicyRng, Selection, Tally};

/// Most segments of an experiment.
pub const SEGMENTS_MAX: usize = 16;
/// Share of the error of "hurt".
const HURT: f64 = 0.8;
/// Most pairs whose answers before the verdict are kept by segment: 100 KB.
const PAIRS_MAX: usize = 4096;
/// The rate of a rival in a segment starts with so many answers at its rate in all of them.
const SHRINK: f64 = 4.0;
/// Answers that a segment has had at most if none was seen, with an error of 5 %.
const NONE_SEEN: f64 = 3.0;

/// One segment, with the winner and its rival there.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Part {
    rival: u16,
    /// Half wins of the rival and of the winner, of answers that count by their outcome.
    half_wins: [u32; 2],
    /// Answers that count by their score.
    scores: ScoreCounts,
    /// Of the rival against the winner, and the other way round.
    hurt: Ladder,
    unhurt: Ladder,
}

/// The state to save.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct State {
    segments: u8,
    /// A bit for each segment whose traffic is another experiment's now.
    split: u16,
    reserve: Reserve,
    /// Comparisons that count.
    comparisons: u64,
    /// The winner, and how many comparisons had counted when it became known.
    winner: Option<(u16, u64)>,
    /// By segment; empty without a winner.
    parts: Vec<Part>,
    /// Half wins of each pair in each segment, of the lower ranker first, with or without a winner.
    met: BTreeMap<(u8, u16, u16), [u32; 2]>,
}

/// The claims about segments, which have the numbers 1, 2, …; 0 is the rest of the traffic.
#[derive(Debug, Clone)]
pub struct SegmentClaims {
    rungs: Rungs,
    /// Of both kinds.
    error: f64,
    state: State,
    /// Parts with new answers since the last check.
    touched: Vec<usize>,
    /// Of each part, whether it is decided or the preference is too near to its edge; and fewest
    /// pages that can decide it. Follow from the state.
    settled: Vec<bool>,
    least_pages: u64,
}

impl SegmentClaims {
    /// So many segments, and no winner yet.
    pub fn new(target: Target, segments: usize) -> Self {
        let state = State {
            segments: segments.min(SEGMENTS_MAX) as u8,
            split: 0,
            reserve: Reserve::without_doublings(),
            comparisons: 0,
            winner: None,
            parts: Vec::new(),
            met: BTreeMap::new(),
        };
        let (rungs, error) = (Rungs::new(target.margin), 1.0 - target.confidence);
        let (touched, settled, least_pages) = (Vec::new(), Vec::new(), 0);
        let mut claims = Self { rungs, error, state, touched, settled, least_pages };
        claims.count_anew();
        claims
    }

    /// Count what follows from the state.
    fn count_anew(&mut self) {
        self.settled = vec![false; self.state.parts.len()];
        self.least_pages = self.fewest_pages();
        self.touched = (0..self.state.parts.len()).collect();
        self.see();
    }

    /// The claims that [`SegmentClaims::state`] was taken from; `None` if it does not fit so many
    /// rankers.
    pub fn restore(target: Target, rankers: usize, state: State) -> Option<Self> {
        let mut claims = Self { state, ..Self::new(target, 0) };
        let State { segments, split, reserve, winner, parts, met, .. } = &claims.state;
        let known = |ranker: u16| usize::from(ranker) < rankers;
        let expected = if winner.is_some() { usize::from(*segments) } else { 0 };
        let is_part = |part: &Part| {
            known(part.rival)
                && part.scores.is_sound_among(rankers)
                && [&part.hurt, &part.unhurt].into_iter().all(|it| it.is_sound(&claims.rungs))
        };
        let is_sound = usize::from(*segments) <= SEGMENTS_MAX
            && u32::from(*split) >> segments == 0
            && reserve.is_sound()
            && winner.is_none_or(|(winner, _)| known(winner))
            && parts.len() == expected
            && parts.iter().all(is_part)
            && met.len() <= PAIRS_MAX
            && met.keys().all(|&(_, first, second)| first < second && known(second));
        is_sound.then_some(())?;
        claims.count_anew();
        Some(claims)
    }

    /// The state to save.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.state.segments.into()
    }

    /// The traffic of a segment, from 0, is another experiment's from here on: nothing is claimed
    /// about it. The other segments keep their pages and so their claims. Returns whether it was
    /// this one's.
    pub(crate) fn split(&mut self, segment: usize) -> bool {
        let is_own = segment < self.segments() && !self.is_split(segment);
        if is_own {
            self.state.split |= 1 << segment;
        }
        is_own
    }

    /// Whether the traffic of a segment, from 0, is another experiment's.
    pub fn is_split(&self, segment: usize) -> bool {
        segment < SEGMENTS_MAX && self.state.split >> segment & 1 == 1
    }

    /// How many segments are other experiments.
    pub fn splits(&self) -> usize {
        self.state.split.count_ones() as usize
    }

    /// The ranker that the claims are about: the newest winner.
    pub fn winner(&self) -> Option<usize> {
        self.state.winner.map(|(winner, _)| winner.into())
    }

    /// The rival of the winner in a segment, from 0; `None` without a winner.
    pub fn rival(&self, segment: usize) -> Option<usize> {
        self.state.parts.get(segment).map(|part| part.rival.into())
    }

    /// The error of "hurt", shared by all segments.
    pub fn hurt_error(&self) -> f64 {
        HURT * self.error
    }

    /// The error of "unhurt".
    pub fn unhurt_error(&self) -> f64 {
        (1.0 - HURT) * self.error
    }

    /// Estimated bytes in memory.
    pub fn bytes(&self) -> usize {
        let ladders = |part: &Part| part.hurt.bytes() + part.unhurt.bytes();
        32 * self.state.met.len() + self.state.parts.iter().map(ladders).sum::<usize>()
    }

    /// `count` answers of pages of a segment count. [`SegmentClaims::counted`] is to follow, once
    /// for a whole cohort.
    pub fn count(
        &mut self,
        segment: u8,
        duel: Duel,
        outcome: Outcome,
        score: Option<Score>,
        count: u32,
    ) {
        let (first, second) = outcome.half_wins();
        let Some(place) = usize::from(segment).checked_sub(1) else { return };
        if place >= self.segments() || first + second == 0 && score.is_none() {
            return;
        }
        let (low, high) = (duel.first.min(duel.second), duel.first.max(duel.second));
        let key = (segment, low as u16, high as u16);
        if self.state.met.len() < PAIRS_MAX || self.state.met.contains_key(&key) {
            let halves = if duel.first == low { [first, second] } else { [second, first] };
            add(self.state.met.entry(key).or_default(), halves, count);
        }
        let winner = self.winner();
        let Some(part) = self.state.parts.get_mut(place) else { return };
        let rival = usize::from(part.rival);
        let halves = match winner {
            Some(winner) if duel == Duel::new(rival, winner) => [first, second],
            Some(winner) if duel == Duel::new(winner, rival) => [second, first],
            _ => return,
        };
        match score {
            Some(score) => part.scores.add(duel, score, count),
            None => add(&mut part.half_wins, halves, count),
        }
        if !self.touched.contains(&place) {
            self.touched.push(place);
        }
    }

    /// A cohort was counted as a whole, with so many comparisons of any pairs: check the claims.
    pub fn counted(&mut self, comparisons: u64) {
        self.state.comparisons += comparisons;
        let position = self.state.comparisons;
        let (hurt, unhurt) = (self.hurt_error(), self.unhurt_error());
        for &place in &self.touched {
            let Some(answers) = self.answers(place) else { continue };
            let part = &mut self.state.parts[place];
            part.hurt.climb(&self.rungs, &answers, hurt, position);
            part.unhurt.climb(&self.rungs, &answers.reversed(), unhurt, position);
        }
        self.see();
    }

    fn see(&mut self) {
        for place in std::mem::take(&mut self.touched) {
            self.settled[place] =
                self.is_unhurt_in(place) || !matches!(self.progress(place), Progress::Open { .. });
        }
    }

    /// These are the winner and the control now, once whole cohorts were counted. A new one of
    /// either starts the claims again. `tally` has the counts of all answers.
    pub fn follow(
        &mut self,
        winner: Option<usize>,
        control: Option<usize>,
        tally: &Tally,
        active: &[usize],
    ) {
        let is_active = |ranker: usize| active.contains(&ranker);
        if self.winner().is_some_and(|winner| !is_active(winner)) {
            (self.state.winner, self.state.parts) = (None, Vec::new());
        }
        let Some(winner) = winner.filter(|&winner| is_active(winner)) else { return };
        let control = control.filter(|&control| control != winner && is_active(control));
        let fits = |part: &Part| {
            let rival = usize::from(part.rival);
            is_active(rival) && control.is_none_or(|control| control == rival)
        };
        let is_same = self.winner() == Some(winner);
        if is_same && self.state.parts.iter().all(fits) {
            return;
        }
        let mut kept: Vec<Option<Part>> = std::mem::take(&mut self.state.parts)
            .into_iter()
            .map(|part| Some(part).filter(|part| is_same && fits(part)))
            .collect();
        kept.resize(self.segments(), None);
        let amount = self.state.reserve.first_or_change();
        let each = amount / kept.iter().filter(|part| part.is_none()).count() as f64;
        let (numbers, nothing) = (1..=self.state.segments, Answers::default());
        let parts = numbers.zip(kept).map(|(segment, part)| {
            part.unwrap_or_else(|| {
                let rival = control.or_else(|| self.strongest(segment, winner, tally, active));
                let ladder = |amount| {
                    let mut ladder = Ladder::new(&self.rungs);
                    ladder.stake(amount, &self.rungs, &nothing);
                    ladder
                };
                Part {
                    rival: rival.unwrap_or(winner) as u16,
                    half_wins: [0; 2],
                    scores: ScoreCounts::default(),
                    hurt: ladder(each),
                    unhurt: ladder(amount),
                }
            })
        });
        self.state.parts = parts.collect();
        if !is_same {
            self.state.winner = Some((winner as u16, self.state.comparisons));
        }
        self.count_anew();
    }

    /// The ranker that did best against the winner in a segment.
    fn strongest(
        &self,
        segment: u8,
        winner: usize,
        tally: &Tally,
        active: &[usize],
    ) -> Option<usize> {
        let rate = |rival: usize| {
            let all = tally.half_plays(rival, winner) as f64;
            let of_all = (tally.half_wins(rival, winner) as f64 + 2.0) / (all + 4.0);
            let (low, high) = (rival.min(winner), rival.max(winner));
            let met = self.state.met.get(&(segment, low as u16, high as u16));
            let halves = met.copied().unwrap_or_default().map(f64::from);
            let wins = halves[usize::from(rival != low)] / 2.0;
            (wins + SHRINK * of_all) / ((halves[0] + halves[1]) / 2.0 + SHRINK)
        };
        let rivals = active.iter().copied().filter(|&rival| rival != winner);
        rivals.reduce(|best, rival| if rate(rival) > rate(best) { rival } else { best })
    }

    /// The answers of a segment, wins of the rival first.
    fn answers(&self, segment: usize) -> Option<Answers> {
        let (part, winner) = (self.state.parts.get(segment)?, self.winner()?);
        Some(Answers::of(part.half_wins, &part.scores, part.rival.into(), winner))
    }

    /// Wins and losses of the winner against its rival in a segment that count.
    pub fn wins_and_losses(&self, segment: usize) -> [f64; 2] {
        self.answers(segment).map_or([0.0; 2], |answers| answers.reversed().wins_and_losses())
    }

    /// The winner is proven to win less than this in a segment.
    pub fn at_most(&self, segment: usize) -> Option<f64> {
        Some(1.0 - self.state.parts.get(segment)?.hurt.bound(&self.rungs)?)
    }

    /// How far the claim is that the winner loses to its rival in a segment.
    pub fn hurt(&self, segment: usize) -> Progress {
        match self.progress(segment) {
            _ if self.is_split(segment) => Progress::OutOfReach,
            Progress::Open { .. } if self.is_too_small(segment) => Progress::OutOfReach,
            progress => progress,
        }
    }

    fn progress(&self, segment: usize) -> Progress {
        let (Some(part), Some(answers)) = (self.state.parts.get(segment), self.answers(segment))
        else {
            return Progress::Open { comparisons: None };
        };
        part.hurt.progress(self.rungs.better(), &self.rungs, &answers, self.hurt_error())
    }

    /// After how many comparisons it was proven that the winner is hurt in no segment; `None` if it
    /// is not.
    pub fn unhurt_after(&self) -> Option<u64> {
        let rung = self.rungs.not_worse();
        let own = self.state.parts.iter().enumerate().filter(|(place, _)| !self.is_split(*place));
        let reached = own.map(|(_, part)| part.unhurt.reached_at(rung));
        reached.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Whether it is proven that the winner is not hurt in a segment, as a part of that claim.
    fn is_unhurt_in(&self, segment: usize) -> bool {
        let rung = self.rungs.not_worse();
        self.state.parts.get(segment).is_some_and(|part| part.unhurt.reached_at(rung).is_some())
    }

    /// Fewest pages of a segment that can prove that the winner loses there: if it loses them all.
    pub fn least_pages(&self) -> u64 {
        self.least_pages
    }

    fn fewest_pages(&self) -> u64 {
        let (rung, nothing) = (self.rungs.better(), Answers::default());
        let first = self.state.reserve.left() / f64::from(self.state.segments.max(1));
        let stake = self
            .state
            .parts
            .first()
            .map_or(libm::log(first), |part| part.hurt.ln_capital(rung, &self.rungs, &nothing));
        let needed = -libm::log(self.hurt_error()) - stake;
        let reaches = |pages: u32| {
            let answers = Answers { half_wins: [2 * pages, 0], scores: None };
            self.rungs.ln_evidence(rung, &answers) >= needed
        };
        (1..1000).find(|&pages| reaches(pages)).unwrap_or(1000).into()
    }

    /// Whether a segment has so small a part of the traffic that it will not have enough pages
    /// while all of them have as many as any claim may take.
    fn is_too_small(&self, segment: usize) -> bool {
        let since = self.state.winner.map_or(0, |(_, at)| self.state.comparisons - at) as f64;
        let pages: f64 = self.wins_and_losses(segment).iter().sum();
        let most = pages + NONE_SEEN + 2.0 * pages.sqrt();
        since >= MOST_COMPARISONS || most * MOST_COMPARISONS < self.least_pages as f64 * since
    }

    /// Whether more pages of the winner and its rivals decide nothing about a segment.
    fn is_settled_in(&self, segment: usize) -> bool {
        self.is_split(segment)
            || self.settled.get(segment).is_some_and(|&it| it)
            || self.is_too_small(segment)
    }

    /// Whether each segment is settled: it is proven that this ranker is hurt there or not, or out
    /// of reach.
    pub fn is_settled(&self, winner: usize) -> bool {
        self.winner() == Some(winner) && (0..self.segments()).all(|it| self.is_settled_in(it))
    }

    /// The segments in which the winner is proven to be hurt.
    pub fn hurt_segments(&self) -> impl Iterator<Item = usize> + '_ {
        let rung = self.rungs.better();
        let parts = self.state.parts.iter().enumerate().filter(|(place, _)| !self.is_split(*place));
        parts.filter(move |(_, part)| part.hurt.reached_at(rung).is_some()).map(|(place, _)| place)
    }

    /// The rivals of this winner in the segments that are not settled, ascending.
    pub fn open_rivals(&self, winner: usize) -> Vec<usize> {
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

fn add(sums: &mut [u32; 2], halves: [u32; 2], count: u32) {
    for (sum, half) in sums.iter_mut().zip(halves) {
        *sum = sum.saturating_add(half.saturating_mul(count));
    }
}
