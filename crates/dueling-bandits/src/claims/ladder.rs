//! By how much a ranker wins at least: a ladder of claims.
//!
//! Each *rung* is a probability `b`, and its claim is `P(x≻c) > b`. The bound of x is the highest
//! rung such that it and all lower ones have reached `1/δ`, each at whatever time. It only rises.
//! "Better by m" is the rung `1/2 + m`, "not worse by more than m" the rung `1/2 - m`, and "by how
//! much" is the bound: one object, which cannot contradict itself.
//!
//! All rungs together have the error of one. Let `b` be the lowest rung that is at least `P(x≻c)`.
//! Its claim is false, and a bound that is too high needs this rung to have reached `1/δ`. So for
//! each ranker one capital decides, whichever it is, and the stakes are the same at every rung.

use std::sync::{Arc, LazyLock};

use crate::claims::capital::Staked;
use crate::evidence::lead::LeadEvidence;
use crate::evidence::scores::{Levels, WEIGHTS};
use crate::evidence::{EqualAnswers, Target};

/// The rungs of every ladder, in hundredths: the first and the last one.
const FIRST: usize = 30;
const LAST: usize = 80;

/// Smallest distance between a preference and a rung that is in reach: it takes some 30,000
/// comparisons of the pair.
pub const REACH: f64 = 0.01;
/// Most comparisons of a pair after which a claim is still in reach.
pub(super) const MOST_COMPARISONS: f64 = 30_000.0;
/// The evidence of the mixture is less than that of its best alternative by about this many nats.
const LAG: f64 = 0.5;

/// Whether further answers can decide a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is proven.
    Decided,
    /// It may be proven.
    Open,
    /// The preference is too near to the rung, or on its other side.
    OutOfReach,
}

/// A [`Stage`] with a forecast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// It is proven.
    Decided {
        /// Comparisons that had counted by then, of all pairs, since the claims were first made.
        after: u64,
    },
    /// It may be proven.
    Open {
        /// Estimated number of further comparisons of the pair; `None` while the ranker is on the
        /// wrong side of the rung, and before the first comparison.
        comparisons: Option<f64>,
    },
    /// The preference is too near to the rung, or on its other side.
    OutOfReach,
}

static EVIDENCE: LazyLock<Vec<Arc<LeadEvidence>>> = LazyLock::new(|| {
    (FIRST..=LAST).map(|hundredth| evidence_over(hundredth as f64 / 100.0)).collect()
});

fn evidence_over(probability: f64) -> Arc<LeadEvidence> {
    Arc::new(LeadEvidence::over(0.5 - probability))
}

/// The rungs of an experiment, ascending: 0.30 to 0.80 in steps of 0.01, and `1/2 ± margin`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rungs {
    rungs: Vec<(f64, Arc<LeadEvidence>)>,
    not_worse: usize,
    better: usize,
}

impl Rungs {
    /// With this margin, in [0, 0.2].
    pub fn new(margin: f64) -> Self {
        let grid = (FIRST..=LAST).map(|hundredth| hundredth as f64 / 100.0);
        let mut rungs: Vec<_> = grid.zip(EVIDENCE.iter().cloned()).collect();
        let mut place = |probability: f64| {
            let near = |rung: &(f64, _)| (rung.0 - probability).abs() < 1e-9;
            rungs.iter().position(near).unwrap_or_else(|| {
                let place = rungs.partition_point(|&(rung, _)| rung < probability);
                rungs.insert(place, (probability, evidence_over(probability)));
                place
            })
        };
        // the lower one first, so that its place stays
        let (not_worse, better) = (place(0.5 - margin), place(0.5 + margin));
        Self { rungs, not_worse, better }
    }

    /// Number of rungs.
    pub fn count(&self) -> usize {
        self.rungs.len()
    }

    /// The rung of "not worse by more than the margin".
    pub fn not_worse(&self) -> usize {
        self.not_worse
    }

    /// The rung of "better by the margin".
    pub fn better(&self) -> usize {
        self.better
    }

    /// The probability of a rung.
    pub fn probability(&self, rung: usize) -> f64 {
        self.rungs[rung].0
    }

    /// `ln E` of a rung after these answers.
    pub fn ln_evidence(&self, rung: usize, answers: &Answers) -> f64 {
        let evidence = &self.rungs[rung].1;
        let Answers { half_wins, scores } = answers;
        let [wins, losses] = half_wins.map(|half_wins| f64::from(half_wins) / 2.0);
        match scores {
            Some([won, lost]) => evidence.ln_with_scores(wins, losses, won, lost),
            None if half_wins == &[0, 0] => 0.0,
            None => evidence.ln(wins, losses),
        }
    }
}

/// The answers of an ordered pair that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Answers {
    /// Half wins and half losses, of answers that count by their outcome.
    pub half_wins: [u32; 2],
    /// Wins and losses that count by their score; `None` before the first.
    pub scores: Option<[Levels; 2]>,
}

impl Answers {
    /// Those of the other ranker.
    fn reversed(mut self) -> Self {
        self.half_wins.reverse();
        self.scores.iter_mut().for_each(|both| both.reverse());
        self
    }

    /// Wins and losses; one that counts by its score counts its weight.
    fn wins_and_losses(&self) -> [f64; 2] {
        let weight = |levels: &Levels| {
            levels.iter().zip(WEIGHTS).map(|(&count, weight)| f64::from(count) * weight).sum()
        };
        let scored: [f64; 2] =
            self.scores.as_ref().map_or([0.0; 2], |both| both.each_ref().map(weight));
        [0, 1].map(|side| f64::from(self.half_wins[side]) / 2.0 + scored[side])
    }
}

/// The stakes on each rung, and when rungs were reached.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Ladder {
    staked: Vec<Staked>,
    /// The position at which each rung was reached, from the lowest one on.
    reached: Vec<u64>,
}

/// Which of the two rankers of a contest is claimed to win.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The first one.
    Ahead,
    /// The second one.
    Behind,
}

impl Direction {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Ahead, Self::Behind];
}

/// A pair of rankers, x and y, with a ladder in each direction.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Contest {
    /// From the view of x.
    answers: Answers,
    /// By direction: of `P(x≻y)` and of `P(y≻x)`.
    ladders: [Ladder; 2],
    /// `ln E` of "better by the margin" by direction. Follows from the answers.
    #[serde(skip)]
    evidence: [f64; 2],
}

impl Contest {
    fn answers(&self, direction: Direction) -> Answers {
        match direction {
            Direction::Ahead => self.answers,
            Direction::Behind => self.answers.reversed(),
        }
    }
}

/// Contests that share an error in each direction, such as those of all rankers and the control.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Contests {
    all: Vec<Contest>,
    #[serde(skip)]
    rungs: Rungs,
    /// By direction.
    #[serde(skip)]
    errors: [f64; 2],
    /// Those with new answers since the last check.
    #[serde(skip)]
    touched: Vec<usize>,
}

impl Contests {
    /// `count` contests in which nothing is staked. `ahead` is the share of the target's error for
    /// [`Direction::Ahead`]; [`Direction::Behind`] has the rest.
    pub fn new(target: Target, ahead: f64, count: usize) -> Self {
        let mut contests = Self::default();
        contests.set_target(target, ahead);
        contests.extend(count);
        contests
    }

    fn set_target(&mut self, target: Target, ahead: f64) {
        let error = 1.0 - target.confidence;
        self.errors = [ahead * error, (1.0 - ahead) * error];
        self.rungs = Rungs::new(target.margin);
    }

    /// Adds to decoded contests the fields that are not saved; `None` if the contests are not
    /// `count` or are not possible.
    pub fn restored(mut self, target: Target, ahead: f64, count: usize) -> Option<Self> {
        self.set_target(target, ahead);
        let is_sound = |ladder: &Ladder| ladder.is_sound(&self.rungs);
        let are_sound = self.all.iter().flat_map(|contest| &contest.ladders).all(is_sound);
        (self.all.len() == count && are_sound).then_some(())?;
        for place in 0..count {
            self.update_evidence(place);
        }
        Some(self)
    }

    /// Further contests, in which nothing is staked.
    pub fn extend(&mut self, count: usize) {
        let (staked, reached) = (vec![Staked::default(); self.rungs.count()], Vec::new());
        let ladder = Ladder { staked, reached };
        let ladders = [ladder.clone(), ladder];
        let new = Contest { answers: Answers::default(), ladders, evidence: [0.0; 2] };
        self.all.resize(self.all.len() + count, new);
    }

    /// Begin a contest again: with no answers, and nothing staked.
    pub fn reset(&mut self, place: usize) {
        let contest = &mut self.all[place];
        (contest.answers, contest.evidence) = (Answers::default(), [0.0; 2]);
        for ladder in &mut contest.ladders {
            ladder.staked.fill(Staked::default());
            ladder.reached.clear();
        }
        self.touched.retain(|&touched| touched != place);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The rungs of each ladder.
    pub fn rungs(&self) -> &Rungs {
        &self.rungs
    }

    /// The error of a direction.
    pub fn error(&self, direction: Direction) -> f64 {
        self.errors[direction as usize]
    }

    /// Stake this amount on every rung of one direction, after the answers so far.
    pub fn stake(&mut self, place: usize, direction: Direction, amount: f64) {
        let (rungs, contest) = (&self.rungs, &mut self.all[place]);
        let answers = contest.answers(direction);
        let ladder = &mut contest.ladders[direction as usize];
        for (rung, staked) in ladder.staked.iter_mut().enumerate() {
            staked.add(amount, rungs.ln_evidence(rung, &answers));
        }
    }

    /// Count answers to duels of the two rankers of a contest, of which `x` is the first one. Call
    /// [`Contests::check`] afterwards, once for a whole cohort.
    pub fn add(&mut self, place: usize, x: usize, new: &EqualAnswers) {
        let answers = &mut self.all[place].answers;
        match new.score {
            Some(score) => {
                let x_is_first = x == new.duel.first;
                let side = usize::from(score.is_first() != x_is_first);
                let level = &mut answers.scores.get_or_insert_default()[side][score.level()];
                *level = level.saturating_add(new.count);
            }
            None => add_half_wins(&mut answers.half_wins, x, new),
        }
        if !self.touched.contains(&place) {
            self.touched.push(place);
        }
    }

    /// A cohort was counted as a whole: in each ladder, climb the next rungs as long as their
    /// capital has reached `1/δ`, and note this position for them.
    pub fn check(&mut self, position: u64) {
        for place in std::mem::take(&mut self.touched) {
            for direction in Direction::BOTH {
                let view = self.view(place, direction);
                let (reached, threshold) = (view.ladder.reached.len(), -libm::log(view.error));
                let rungs = reached..self.rungs.count();
                let climbed = rungs.take_while(|&rung| view.ln_capital(rung) >= threshold).count();
                let ladder = &mut self.all[place].ladders[direction as usize];
                ladder.reached.resize(reached + climbed, position);
            }
            self.update_evidence(place);
        }
    }

    fn update_evidence(&mut self, place: usize) {
        for direction in Direction::BOTH {
            let answers = self.all[place].answers(direction);
            let ln = self.rungs.ln_evidence(self.rungs.better(), &answers);
            self.all[place].evidence[direction as usize] = ln;
        }
    }

    /// `ln E` of "better by the margin", as of the last check.
    pub fn evidence(&self, place: usize, direction: Direction) -> f64 {
        self.all[place].evidence[direction as usize]
    }

    /// Wins and losses of x that count; one that counts by its score counts its weight.
    pub fn wins_and_losses(&self, place: usize) -> [f64; 2] {
        self.all[place].answers.wins_and_losses()
    }

    /// The ladder of one direction.
    pub fn view(&self, place: usize, direction: Direction) -> View<'_> {
        let contest = &self.all[place];
        View {
            rungs: &self.rungs,
            ladder: &contest.ladders[direction as usize],
            answers: contest.answers(direction),
            error: self.error(direction),
        }
    }

    /// Estimated bytes in memory.
    pub fn bytes(&self) -> usize {
        let ladder = |it: &Ladder| size_of_val(&it.staked[..]) + size_of_val(&it.reached[..]);
        let ladders = self.all.iter().flat_map(|contest| &contest.ladders).map(ladder);
        let rungs = size_of::<(f64, usize)>() * self.rungs.count();
        rungs + ladders.sum::<usize>() + size_of::<Contest>() * self.all.len()
    }
}

/// Adds the outcomes of answers to the half wins of `x`, one of their rankers, and of the other
/// one.
pub(super) fn add_half_wins(sums: &mut [u32; 2], x: usize, answers: &EqualAnswers) {
    let (first, second) = answers.outcome.half_wins();
    let halves = if x == answers.duel.first { [first, second] } else { [second, first] };
    for (sum, half) in sums.iter_mut().zip(halves) {
        *sum = sum.saturating_add(half.saturating_mul(answers.count));
    }
}

impl Ladder {
    fn is_sound(&self, rungs: &Rungs) -> bool {
        self.staked.len() == rungs.count()
            && self.staked.iter().all(|staked| staked.is_sound())
            && self.reached.len() <= rungs.count()
            && self.reached.is_sorted()
    }
}

/// The ladder of one direction of a contest, after the answers so far.
#[derive(Debug)]
pub(super) struct View<'a> {
    rungs: &'a Rungs,
    ladder: &'a Ladder,
    answers: Answers,
    error: f64,
}

impl View<'_> {
    /// `ln C` of a rung.
    pub fn ln_capital(&self, rung: usize) -> f64 {
        self.ladder.staked[rung].ln_capital(self.rungs.ln_evidence(rung, &self.answers))
    }

    /// `ln C` of a rung before the first answer.
    pub fn ln_stake(&self, rung: usize) -> f64 {
        self.ladder.staked[rung].ln_capital(0.0)
    }

    /// How far the claim of a rung is. The forecast takes ten times as long as [`View::stage`].
    pub fn progress(&self, rung: usize) -> Progress {
        if let Some(after) = self.reached_at(rung) {
            return Progress::Decided { after };
        }
        let Some(Share { lead, answers }) = self.share(rung) else {
            return Progress::Open { comparisons: None };
        };
        if is_beyond_reach(lead, answers) {
            return Progress::OutOfReach;
        }
        let missing = (-libm::log(self.error) - self.ln_capital(rung)).max(0.0) + LAG;
        // a comparison adds d(P, rung) nats on average, about 2 lead²
        let further = (missing / (2.0 * lead * lead)).max(1.0);
        Progress::Open { comparisons: (lead > 0.0 && further.is_finite()).then_some(further) }
    }

    /// [`View::progress`] without the forecast.
    pub fn stage(&self, rung: usize) -> Stage {
        if self.reached_at(rung).is_some() {
            return Stage::Decided;
        }
        match self.share(rung) {
            Some(Share { lead, answers }) if is_beyond_reach(lead, answers) => Stage::OutOfReach,
            _ => Stage::Open,
        }
    }

    /// The position at which the rung and all lower ones were reached.
    pub fn reached_at(&self, rung: usize) -> Option<u64> {
        self.ladder.reached.get(rung).copied()
    }

    /// The highest probability that was reached.
    pub fn bound(&self) -> Option<f64> {
        Some(self.rungs.probability(self.ladder.reached.len().checked_sub(1)?))
    }

    /// The share of wins compared with a rung; `None` before the first answer.
    fn share(&self, rung: usize) -> Option<Share> {
        let [wins, losses] = self.answers.wins_and_losses();
        let answers = wins + losses;
        (answers > 0.0)
            .then(|| Share { lead: wins / answers - self.rungs.probability(rung), answers })
    }
}

/// A share of wins.
struct Share {
    /// By how much it is above the rung.
    lead: f64,
    /// The number of answers that it comes from.
    answers: f64,
}

fn is_beyond_reach(lead: f64, answers: f64) -> bool {
    // two standard deviations of a share near 1/2
    lead + 1.0 / answers.sqrt() < REACH || answers >= MOST_COMPARISONS
}
