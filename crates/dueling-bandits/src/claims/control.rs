//! Claims against a control: the ranker that people see today.
//!
//! For each other ranker x there are three claims on `P(x≻c)`: *better* by at least the margin,
//! *not worse* by more than it, and *worse* by at least the margin; and by how much at least. The
//! first two and the bound are rungs of one [ladder](super::ladder), the third is a rung of the
//! ladder of `P(c≻x)`. The ladders of all rankers share one [reserve](super::capital) in each
//! direction. "Better", "not worse" and the lower bounds have four fifths of the error, "worse" and
//! the upper bounds one fifth: the first decide what a team ships.
//!
//! With a probability of at least one minus the error, no claim is ever wrong: for all rankers, all
//! controls that are ever named, all rungs and all times together. For each pair (x, c) let `b` be
//! the lowest rung that is at least `P(x≻c)`. An answer of this pair multiplies the capital of `b`
//! by a factor with a mean of at most 1, and changes no other capital against this control; a stake
//! moves capital at the factor 1. So the reserve and these capitals together are a nonnegative
//! supermartingale that starts at 1. A wrong claim needs one of them to reach the inverse error.
//!
//! # Changes
//!
//! Evidence counts from the moment at which a control is named. Naming another one drops the
//! capital against the earlier one, and takes effect once all cohorts that were issued before have
//! been counted. New rankers and new controls get their stakes from what the reserve keeps for
//! changes. A retired ranker keeps its claims; a retired control ends all claims.

use rand::RngExt;

use crate::beta_sampling::theta_of;
use crate::claims::capital::Reserve;
use crate::claims::ladder::{Answers, Ladder, Rungs};
use crate::evidence::Target;
use crate::evidence::scores::{Score, ScoreCounts};
use crate::{Duel, Outcome, PolicyRng, Selection, Tally};

pub use crate::claims::ladder::{Progress, REACH};

/// Comparisons for each ranker before the first stake that follows the evidence.
const FIRST_DOUBLING: u64 = 5;
/// Share of the error of "better", "not worse" and the lower bounds. In equal parts, "better" takes
/// some 8 % more pages on six rankers.
const AHEAD: f64 = 0.8;
/// Share of pages on which a candidate meets the control, if that is the goal.
const IMPROVING: f64 = 0.8;

/// The claim that an experiment proves first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Which ranker is best. Afterwards the winner meets the control.
    #[default]
    Best,
    /// That a ranker is better than the control.
    Improve,
}

/// A claim on a ranker and the control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The ranker is better by at least the margin.
    Better,
    /// The ranker is not worse by more than the margin.
    NotWorse,
    /// The ranker is worse by at least the margin.
    Worse,
}

impl Claim {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Better, Self::NotWorse, Self::Worse];

    /// Its name in logs, metrics and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::NotWorse => "not_worse",
            Self::Worse => "worse",
        }
    }

    fn direction(self) -> Direction {
        match self {
            Self::Better | Self::NotWorse => Direction::Ahead,
            Self::Worse => Direction::Behind,
        }
    }

    fn rung(self, rungs: &Rungs) -> usize {
        match self {
            Self::Better | Self::Worse => rungs.better(),
            Self::NotWorse => rungs.not_worse(),
        }
    }
}

/// The choice of the claims for the next page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPage {
    /// They leave it to the policy.
    Leave,
    /// They show this duel.
    Show(Duel),
    /// They draw: a candidate and the control, or leave it.
    Draw,
}

/// Which of a ranker and the control is claimed to win.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Ahead,
    Behind,
}

/// The claims of one direction.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Side {
    reserve: Reserve,
    /// By ranker.
    ladders: Vec<Ladder>,
    /// `ln E` of "better by the margin" by ranker. Follows from the answers.
    #[serde(skip)]
    evidence: Vec<f64>,
}

/// The state to save.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct State {
    goal: Goal,
    /// `None` before the first one takes effect, and after it was retired.
    control: Option<u16>,
    /// The next control, and the time of issue from which on it is the control.
    next: Option<(u16, i64)>,
    /// Comparisons that count since a control was first named.
    comparisons: u64,
    next_doubling: u64,
    /// Half wins and half losses of each ranker against the control, of answers that count by their
    /// outcome.
    half_wins: Vec<[u32; 2]>,
    /// Answers that count by their score.
    scores: ScoreCounts,
    ahead: Side,
    behind: Side,
}

impl State {
    fn side(&self, direction: Direction) -> &Side {
        match direction {
            Direction::Ahead => &self.ahead,
            Direction::Behind => &self.behind,
        }
    }

    fn side_mut(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::Ahead => &mut self.ahead,
            Direction::Behind => &mut self.behind,
        }
    }
}

/// The claims against a control.
#[derive(Debug, Clone)]
pub struct ControlClaims {
    rungs: Rungs,
    /// Of both directions.
    error: f64,
    state: State,
    /// Rankers with new answers since the last check.
    touched: Vec<usize>,
}

impl ControlClaims {
    /// No control yet among `rankers` rankers.
    pub fn new(target: Target, goal: Goal, rankers: usize) -> Self {
        let rungs = Rungs::new(target.margin);
        let side = Side {
            reserve: Reserve::default(),
            ladders: vec![Ladder::new(&rungs); rankers],
            evidence: vec![0.0; rankers],
        };
        let state = State {
            goal,
            control: None,
            next: None,
            comparisons: 0,
            next_doubling: FIRST_DOUBLING * rankers as u64,
            half_wins: vec![[0; 2]; rankers],
            scores: ScoreCounts::default(),
            ahead: side.clone(),
            behind: side,
        };
        Self { rungs, error: 1.0 - target.confidence, state, touched: Vec::new() }
    }

    /// The claims that [`ControlClaims::state`] was taken from; `None` if it does not fit so many
    /// rankers.
    pub fn restore(target: Target, rankers: usize, state: State) -> Option<Self> {
        let mut claims = Self { state, ..Self::new(target, Goal::Best, 0) };
        let State { control, next, half_wins, scores, ahead, behind, .. } = &claims.state;
        let known = |ranker: u16| usize::from(ranker) < rankers;
        let is_sound = control.is_none_or(known)
            && next.is_none_or(|(ranker, _)| known(ranker))
            && half_wins.len() == rankers
            && scores.is_sound_among(rankers)
            && [ahead, behind].into_iter().all(|side| side.is_sound(&claims.rungs, rankers));
        is_sound.then_some(())?;
        for side in [Direction::Ahead, Direction::Behind] {
            claims.state.side_mut(side).evidence = vec![0.0; rankers];
        }
        claims.touched = (0..rankers).collect();
        claims.see();
        Some(claims)
    }

    /// The state to save.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The control.
    pub fn control(&self) -> Option<usize> {
        self.state.control.map(usize::from)
    }

    /// The next control, once all answers of duels that were issued before this time have been
    /// counted.
    pub fn next_control(&self) -> Option<(usize, i64)> {
        self.state.next.map(|(ranker, from)| (ranker.into(), from))
    }

    /// Number of rankers, the retired included.
    pub fn rankers(&self) -> usize {
        self.state.half_wins.len()
    }

    /// The claim that the experiment proves first.
    pub fn goal(&self) -> Goal {
        self.state.goal
    }

    /// The error of a claim, shared with all claims of its direction.
    pub fn error(&self, claim: Claim) -> f64 {
        self.error_of(claim.direction())
    }

    fn error_of(&self, direction: Direction) -> f64 {
        match direction {
            Direction::Ahead => AHEAD * self.error,
            Direction::Behind => (1.0 - AHEAD) * self.error,
        }
    }

    /// Comparisons that count since a control was first named.
    pub fn comparisons(&self) -> u64 {
        self.state.comparisons
    }

    /// Estimated bytes in memory.
    pub fn bytes(&self) -> usize {
        let of = |side: &Side| side.ladders.iter().map(Ladder::bytes).sum::<usize>();
        let rungs = size_of::<(f64, usize)>() * self.rungs.count();
        rungs + of(&self.state.ahead) + of(&self.state.behind)
    }

    /// `ranker` becomes the control with the answers to duels issued from this time on: once
    /// [`ControlClaims::advance`] says so.
    pub fn name(&mut self, ranker: usize, from: i64) {
        self.state.next = Some((ranker as u16, from));
    }

    /// All answers that were issued before `time` have been counted.
    pub fn advance(&mut self, time: i64, active: &[usize]) {
        let Some((control, _)) = self.state.next.take_if(|next| next.1 <= time) else { return };
        let rankers = self.state.half_wins.len();
        self.state.control = Some(control);
        self.state.half_wins = vec![[0; 2]; rankers];
        self.state.scores = ScoreCounts::default();
        self.touched.clear();
        let rivals: Vec<usize> =
            active.iter().copied().filter(|&x| x != usize::from(control)).collect();
        let rungs = &self.rungs;
        for side in [&mut self.state.ahead, &mut self.state.behind] {
            side.ladders = vec![Ladder::new(rungs); rankers];
            side.evidence = vec![0.0; rankers];
            let part = side.reserve.first_or_change() / rivals.len().max(1) as f64;
            for &x in &rivals {
                side.ladders[x].stake(part, rungs, &Answers::default());
            }
        }
    }

    /// One more ranker, with the next index.
    pub fn enlist(&mut self) {
        self.state.half_wins.push([0; 2]);
        for side in [&mut self.state.ahead, &mut self.state.behind] {
            let mut ladder = Ladder::new(&self.rungs);
            if self.state.control.is_some() {
                ladder.stake(side.reserve.change(), &self.rungs, &Answers::default());
            }
            side.ladders.push(ladder);
            side.evidence.push(0.0);
        }
    }

    /// This ranker takes no part any more.
    pub fn retire(&mut self, ranker: usize) {
        let is_it = |control: u16| usize::from(control) == ranker;
        self.state.control = self.state.control.filter(|&control| !is_it(control));
        self.state.next = self.state.next.filter(|&(control, _)| !is_it(control));
    }

    /// `count` answers count. [`ControlClaims::counted`] is to follow, once for a whole cohort.
    pub fn count(&mut self, duel: Duel, outcome: Outcome, score: Option<Score>, count: u32) {
        let (first, second) = outcome.half_wins();
        let (x, halves) = match self.control() {
            Some(control) if control == duel.second => (duel.first, [first, second]),
            Some(control) if control == duel.first => (duel.second, [second, first]),
            _ => return,
        };
        match score {
            Some(score) => self.state.scores.add(duel, score, count),
            None => {
                let counts = &mut self.state.half_wins[x];
                for (sum, half) in counts.iter_mut().zip(halves) {
                    *sum = sum.saturating_add(half.saturating_mul(count));
                }
            }
        }
        if !self.touched.contains(&x) {
            self.touched.push(x);
        }
    }

    /// A cohort was counted as a whole, with so many comparisons of any pairs: check the claims,
    /// then stake what is due.
    pub fn counted(&mut self, comparisons: u64, active: &[usize]) {
        self.state.comparisons += comparisons;
        let position = self.state.comparisons;
        for &x in &self.touched {
            for direction in [Direction::Ahead, Direction::Behind] {
                let (answers, error) = (self.answers(x, direction), self.error_of(direction));
                let ladder = &mut self.state.side_mut(direction).ladders[x];
                ladder.climb(&self.rungs, &answers, error, position);
            }
        }
        self.see();
        while position >= self.state.next_doubling {
            self.state.next_doubling *= 2;
            self.stake_on_front(active);
        }
    }

    fn stake_on_front(&mut self, active: &[usize]) {
        for direction in [Direction::Ahead, Direction::Behind] {
            let Some(x) = self.front(active, direction) else { continue };
            let answers = self.answers(x, direction);
            let side = self.state.side_mut(direction);
            let amount = side.reserve.doubling();
            side.ladders[x].stake(amount, &self.rungs, &answers);
        }
    }

    /// The ranker with the most evidence; the lowest index of several.
    fn front(&self, active: &[usize], direction: Direction) -> Option<usize> {
        let control = self.control()?;
        let evidence = &self.state.side(direction).evidence;
        let rivals = active.iter().copied().filter(|&x| x != control);
        rivals.reduce(|best, x| if evidence[x] > evidence[best] { x } else { best })
    }

    /// Compute the evidence of the rankers with new answers.
    fn see(&mut self) {
        for x in std::mem::take(&mut self.touched) {
            for direction in [Direction::Ahead, Direction::Behind] {
                let answers = self.answers(x, direction);
                let ln = self.rungs.ln_evidence(self.rungs.better(), &answers);
                self.state.side_mut(direction).evidence[x] = ln;
            }
        }
    }

    /// The answers of a ranker and the control, wins of the ranker first or of the control.
    fn answers(&self, x: usize, direction: Direction) -> Answers {
        let control = self.control().unwrap_or(x);
        let answers = Answers::of(self.state.half_wins[x], &self.state.scores, x, control);
        if direction == Direction::Behind { answers.reversed() } else { answers }
    }

    /// Wins and losses of a ranker against the control that count; one that counts by its score
    /// counts its weight.
    pub fn wins_and_losses(&self, ranker: usize) -> [f64; 2] {
        self.answers(ranker, Direction::Ahead).wins_and_losses()
    }

    /// The share of duels with the control that the ranker won; `None` before the first one.
    pub fn win_rate(&self, ranker: usize) -> Option<f64> {
        let [wins, losses] = self.wins_and_losses(ranker);
        (wins + losses > 0.0).then(|| wins / (wins + losses))
    }

    /// The proven lower bound and upper bound of `P(x≻c)`.
    pub fn bounds(&self, ranker: usize) -> (Option<f64>, Option<f64>) {
        let bound = |side: &Side| side.ladders[ranker].bound(&self.rungs);
        (bound(&self.state.ahead), bound(&self.state.behind).map(|bound| 1.0 - bound))
    }

    /// `ln C` of a claim on a ranker.
    pub fn ln_capital(&self, ranker: usize, claim: Claim) -> f64 {
        let answers = self.answers(ranker, claim.direction());
        let ladder = &self.state.side(claim.direction()).ladders[ranker];
        ladder.ln_capital(claim.rung(&self.rungs), &self.rungs, &answers)
    }

    /// Capital that was not staked on claims like this one.
    pub fn reserve(&self, claim: Claim) -> f64 {
        self.state.side(claim.direction()).reserve.left()
    }

    /// How far a claim on a ranker is.
    pub fn progress(&self, ranker: usize, claim: Claim) -> Progress {
        let answers = self.answers(ranker, claim.direction());
        let ladder = &self.state.side(claim.direction()).ladders[ranker];
        ladder.progress(claim.rung(&self.rungs), &self.rungs, &answers, self.error(claim))
    }

    /// Whether more duels of this ranker and the control decide nothing: it is the control, a claim
    /// is decided, or none is in reach.
    pub fn is_settled(&self, ranker: usize) -> bool {
        if self.control().is_none_or(|control| control == ranker) {
            return true;
        }
        let is_decided = |claim: Claim| {
            let answers = self.answers(ranker, claim.direction());
            let ladder = &self.state.side(claim.direction()).ladders[ranker];
            ladder.is_decided(claim.rung(&self.rungs), &self.rungs, &answers)
        };
        let [better, not_worse, worse] = Claim::ALL.map(is_decided);
        let is_out = |claim: Option<bool>| claim == Some(false);
        better == Some(true)
            || worse == Some(true)
            || is_out(better) && (not_worse == Some(true) || is_out(not_worse) && is_out(worse))
    }

    /// Whether a ranker is proven better than the control.
    pub fn is_improved(&self) -> bool {
        let better = self.rungs.better();
        self.control().is_some()
            && self.state.ahead.ladders.iter().any(|of| of.reached_at(better).is_some())
    }

    /// All decided claims, by ranker.
    pub fn decided(&self) -> impl Iterator<Item = (usize, Claim, u64)> + '_ {
        let control = self.control();
        let rankers = (0..self.state.half_wins.len()).filter(move |_| control.is_some());
        let all = rankers.flat_map(|ranker| Claim::ALL.map(|claim| (ranker, claim)));
        all.filter_map(|(ranker, claim)| {
            let ladder = &self.state.side(claim.direction()).ladders[ranker];
            Some((ranker, claim, ladder.reached_at(claim.rung(&self.rungs))?))
        })
    }

    /// The duel that the claims need, before the policy is asked: the winner meets the control
    /// until that is settled. Before there is a winner, with [`Goal::Improve`] and no better ranker
    /// yet, a candidate meets it on most pages. `tally` has the counts of all answers.
    pub fn select(
        &self,
        winner: Option<usize>,
        tally: &Tally,
        active: &[usize],
        rng: &mut PolicyRng,
    ) -> Option<Selection> {
        let control = self.control()?;
        match self.next_page(winner) {
            NextPage::Leave => return None,
            NextPage::Show(Duel { first, second }) => return Some(Selection::of(first, second)),
            NextPage::Draw if rng.random::<f64>() >= IMPROVING => return None,
            NextPage::Draw => {}
        }
        let front = self.front(active, Direction::Ahead).filter(|&x| {
            let [wins, losses] = self.wins_and_losses(x);
            wins > losses && rng.random::<bool>()
        });
        let candidate = front.or_else(|| {
            let rivals = active.iter().copied().filter(|&x| x != control);
            let drawn =
                rivals.map(|x| (theta_of(tally.wins(x, control), tally.wins(control, x), rng), x));
            let best = drawn.reduce(|best, next| if next.0 > best.0 { next } else { best });
            best.filter(|&(theta, _)| theta > 0.5).map(|(_, x)| x)
        })?;
        Some(Selection::of(candidate, control))
    }

    /// The choice that [`ControlClaims::select`] makes.
    pub fn next_page(&self, winner: Option<usize>) -> NextPage {
        match (self.control(), winner) {
            (Some(control), Some(winner)) if !self.is_settled(winner) => {
                NextPage::Show(Duel::new(winner, control))
            }
            (Some(_), None) if self.state.goal == Goal::Improve && !self.is_improved() => {
                NextPage::Draw
            }
            _ => NextPage::Leave,
        }
    }
}

impl Side {
    fn is_sound(&self, rungs: &Rungs, rankers: usize) -> bool {
        self.reserve.is_sound()
            && self.ladders.len() == rankers
            && self.ladders.iter().all(|ladder| ladder.is_sound(rungs))
    }
}
