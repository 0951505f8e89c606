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
//! capital against the earlier one. New rankers and new controls get their stakes from what the
//! reserve keeps for changes. A retired ranker keeps its claims; a retired control ends all claims.
//! A change of preferences that starts the verdict again starts these claims again too.
//! Each change takes effect once all cohorts that were issued before it have been counted
//! ([`Run`](crate::run::Run)), and every change does: one that is taken back has had its stakes.

use rand::RngExt;

use crate::beta_sampling::theta_of;
use crate::claims::capital::Reserve;
use crate::claims::ladder::{Contests, Direction, Stage, View};
use crate::evidence::{EqualAnswers, Target};
use crate::{Duel, PolicyRng, Selection, Tally};

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
#[cfg_attr(feature = "schemas", derive(utoipa::ToSchema))]
pub enum Goal {
    /// Which ranker is best. Afterwards the winner meets the control.
    #[default]
    Best,
    /// That a ranker is better than the control: most pages show a candidate and the control.
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

    fn rung(self, contests: &Contests) -> usize {
        match self {
            Self::Better | Self::Worse => contests.rungs().better(),
            Self::NotWorse => contests.rungs().not_worse(),
        }
    }
}

/// The claims against a control.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ControlClaims {
    goal: Goal,
    /// `None` before the first one takes effect, and after it was retired.
    control: Option<u16>,
    /// Comparisons that count since a control was first named.
    comparisons: u64,
    next_doubling: u64,
    /// By direction.
    reserves: [Reserve; 2],
    /// Of each ranker, by index, and the control.
    contests: Contests,
}

impl ControlClaims {
    /// No control yet among `rankers` rankers.
    pub fn new(target: Target, goal: Goal, rankers: usize) -> Self {
        Self {
            goal,
            control: None,
            comparisons: 0,
            next_doubling: FIRST_DOUBLING * rankers as u64,
            reserves: [Reserve::default(); 2],
            contests: Contests::new(target, AHEAD, rankers),
        }
    }

    /// Decoded claims with their target; `None` if they do not fit this many rankers.
    pub fn restored(self, target: Target, rankers: usize) -> Option<Self> {
        let known = |ranker: u16| usize::from(ranker) < rankers;
        let is_sound =
            self.control.is_none_or(known) && self.reserves.iter().all(Reserve::is_sound);
        is_sound.then_some(())?;
        let contests = self.contests.restored(target, AHEAD, rankers)?;
        Some(Self { contests, ..self })
    }

    /// The control.
    pub fn control(&self) -> Option<usize> {
        self.control.map(usize::from)
    }

    /// Number of rankers, the retired included.
    pub fn rankers(&self) -> usize {
        self.contests.count()
    }

    /// The claim that the experiment proves first.
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// The error of a claim, shared with all claims of its direction.
    pub fn error(&self, claim: Claim) -> f64 {
        self.contests.error(claim.direction())
    }

    /// Comparisons that count since a control was first named.
    pub fn comparisons(&self) -> u64 {
        self.comparisons
    }

    /// Estimated bytes in memory.
    pub fn bytes(&self) -> usize {
        self.contests.bytes()
    }

    /// `control` is the control from here on, among rankers that take part.
    pub fn name(&mut self, control: usize, active: &[usize]) {
        self.control = Some(control as u16);
        for x in 0..self.rankers() {
            self.contests.reset(x);
        }
        let rivals: Vec<usize> = active.iter().copied().filter(|&x| x != control).collect();
        for (reserve, direction) in self.reserves.iter_mut().zip(Direction::BOTH) {
            let part = reserve.first_or_change() / rivals.len().max(1) as f64;
            for &x in &rivals {
                self.contests.stake(x, direction, part);
            }
        }
    }

    /// Drop all capital, as if the control was named again: preferences have changed.
    pub fn start_again(&mut self, active: &[usize]) {
        if let Some(control) = self.control() {
            self.name(control, active);
        }
    }

    /// One more ranker, with the next index. Nothing is staked on it.
    pub fn enlist(&mut self) {
        self.contests.extend(1);
    }

    /// Stake on an enlisted ranker.
    pub fn stake_on(&mut self, ranker: usize) {
        for (reserve, direction) in self.reserves.iter_mut().zip(Direction::BOTH) {
            if self.control.is_some() {
                self.contests.stake(ranker, direction, reserve.change());
            }
        }
    }

    /// This ranker takes no part any more.
    pub fn retire(&mut self, ranker: usize) {
        let is_it = |control: u16| usize::from(control) == ranker;
        self.control = self.control.filter(|&control| !is_it(control));
    }

    /// Count answers. Call [`ControlClaims::counted`] afterwards, once for a whole cohort.
    pub fn count(&mut self, answers: &EqualAnswers) {
        let Some(control) = self.control() else { return };
        let Duel { first, second } = answers.duel;
        if control == second {
            self.contests.add(first, first, answers);
        } else if control == first {
            self.contests.add(second, second, answers);
        }
    }

    /// A cohort was counted as a whole, with this many comparisons of any pairs: check the claims,
    /// then make the stakes that are due.
    pub fn counted(&mut self, comparisons: u64, active: &[usize]) {
        self.comparisons += comparisons;
        self.contests.check(self.comparisons);
        while self.comparisons >= self.next_doubling {
            self.next_doubling *= 2;
            for direction in Direction::BOTH {
                let Some(x) = self.front(active, direction) else { continue };
                let amount = self.reserves[direction as usize].doubling();
                self.contests.stake(x, direction, amount);
            }
        }
    }

    /// The ranker with the most evidence; the lowest index of several.
    fn front(&self, active: &[usize], direction: Direction) -> Option<usize> {
        let control = self.control()?;
        let evidence = |x: usize| self.contests.evidence(x, direction);
        let rivals = active.iter().copied().filter(|&x| x != control);
        rivals.reduce(|best, x| if evidence(x) > evidence(best) { x } else { best })
    }

    /// The ladder of a claim on a ranker, and its rung.
    fn ladder_and_rung(&self, ranker: usize, claim: Claim) -> (View<'_>, usize) {
        (self.contests.view(ranker, claim.direction()), claim.rung(&self.contests))
    }

    /// Wins and losses of a ranker against the control that count; one that counts by its score
    /// counts its weight.
    pub fn wins_and_losses(&self, ranker: usize) -> [f64; 2] {
        self.contests.wins_and_losses(ranker)
    }

    /// The share of duels with the control that the ranker won; `None` before the first one.
    pub fn win_rate(&self, ranker: usize) -> Option<f64> {
        let [wins, losses] = self.wins_and_losses(ranker);
        (wins + losses > 0.0).then(|| wins / (wins + losses))
    }

    /// The proven lower bound and upper bound of `P(x≻c)`.
    pub fn bounds(&self, ranker: usize) -> (Option<f64>, Option<f64>) {
        let [ahead, behind] = Direction::BOTH.map(|it| self.contests.view(ranker, it).bound());
        (ahead, behind.map(|bound| 1.0 - bound))
    }

    /// `ln C` of a claim on a ranker.
    pub fn ln_capital(&self, ranker: usize, claim: Claim) -> f64 {
        let (ladder, rung) = self.ladder_and_rung(ranker, claim);
        ladder.ln_capital(rung)
    }

    /// Capital that was not staked on claims like this one.
    pub fn reserve(&self, claim: Claim) -> f64 {
        self.reserves[claim.direction() as usize].left()
    }

    /// How far a claim on a ranker is.
    pub fn progress(&self, ranker: usize, claim: Claim) -> Progress {
        let (ladder, rung) = self.ladder_and_rung(ranker, claim);
        ladder.progress(rung)
    }

    /// Whether more duels of this ranker and the control decide nothing: it is the control,
    /// "better" or "worse" is decided, or no claim is both open and of use. Where "better" is out
    /// of reach, "not worse" is enough.
    pub fn is_settled(&self, ranker: usize) -> bool {
        if self.control().is_none_or(|control| control == ranker) {
            return true;
        }
        let [better, not_worse, worse] = Claim::ALL.map(|claim| {
            let (ladder, rung) = self.ladder_and_rung(ranker, claim);
            ladder.stage(rung)
        });
        match (better, not_worse, worse) {
            (Stage::Decided, _, _) | (_, _, Stage::Decided) => true,
            (Stage::OutOfReach, Stage::Decided, _) => true,
            (better, not_worse, worse) => {
                [better, not_worse, worse].iter().all(|&stage| stage == Stage::OutOfReach)
            }
        }
    }

    /// Whether a ranker is proven better than the control.
    pub fn is_improved(&self) -> bool {
        let is_better = |x: usize| {
            let (ladder, rung) = self.ladder_and_rung(x, Claim::Better);
            ladder.reached_at(rung).is_some()
        };
        self.control.is_some() && (0..self.rankers()).any(is_better)
    }

    /// All decided claims, by ranker, and how many comparisons had counted by then.
    pub fn decided(&self) -> impl Iterator<Item = (usize, Claim, u64)> + '_ {
        let rankers = (0..self.rankers()).filter(|_| self.control.is_some());
        let all = rankers.flat_map(|ranker| Claim::ALL.map(|claim| (ranker, claim)));
        all.filter_map(|(ranker, claim)| {
            let (ladder, rung) = self.ladder_and_rung(ranker, claim);
            Some((ranker, claim, ladder.reached_at(rung)?))
        })
    }

    /// The duel that the claims need, before the policy is asked: the winner meets the control
    /// until that is settled. Before there is a winner, with [`Goal::Improve`] and no better ranker
    /// yet, a candidate meets it on most pages. On half of these it is the ranker with the most
    /// evidence, if it leads; on the others, the ranker whose draw from the posterior of its
    /// preference over the control is the largest, if that is above 1/2 (Thompson sampling).
    /// `tally` has the counts of all answers.
    pub fn select(
        &self,
        winner: Option<usize>,
        tally: &Tally,
        active: &[usize],
        rng: &mut PolicyRng,
    ) -> Option<Selection> {
        let control = self.control()?;
        if let Some(winner) = winner {
            return (!self.is_settled(winner)).then(|| Selection::of(winner, control));
        }
        let improves = self.goal == Goal::Improve && !self.is_improved();
        if !improves || rng.random::<f64>() >= IMPROVING {
            return None;
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
}
