//! The rankers that certainly are, and those that can still be, a Copeland winner, given the
//! intervals of all pairs.
//!
//! A pair is *decided* when its interval excludes 1/2. The decided pairs bound every ranker's
//! Copeland score: from its decided wins to the number of opponents minus its decided losses. While
//! all intervals hold:
//!
//! - A Copeland winner is among the *possible* winners: the rankers whose upper bound reaches the
//!   largest lower bound.
//! - A ranker whose lower bound reaches the upper bounds of all others is *certain* to be a winner.
//!
//! Scores count only pairs of active rankers, and only active rankers can win.

use crate::evidence::sequence::{Sequence, Sequences};
use crate::pairs::pair_index;
use crate::{Roster, Tally};

/// The certainly better ranker of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Undecided,
    /// The one with the lower index.
    Low,
    /// The one with the higher index.
    High,
}

/// The decided pairs of a tally at one confidence. A function of the tally.
///
/// ```
/// use dueling_bandits::evidence::Certainty;
/// use dueling_bandits::{Duel, Outcome, Tally};
///
/// let mut tally = Tally::new(3);
/// tally.record_run(Duel::new(0, 1), Outcome::First, 40);
/// tally.record_run(Duel::new(0, 2), Outcome::First, 40);
/// let certainty = Certainty::of(&tally, 0.95);
/// assert_eq!(certainty.certain(), [0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Certainty {
    roster: Roster,
    sequences: Sequences,
    /// In the order of [`pair_index`].
    sides: Vec<Side>,
    wins: Vec<usize>,
    losses: Vec<usize>,
}

impl Certainty {
    /// The decided pairs of `tally`. With probability `confidence`, in (0, 1), all of them are
    /// right at all times.
    pub fn of(tally: &Tally, confidence: f64) -> Self {
        Self::among(tally, &Roster::new(tally.rankers()), tally.rankers(), confidence)
    }

    /// The same for the active rankers of `roster`, where all but the first `initial_rankers` were
    /// added later.
    pub fn among(tally: &Tally, roster: &Roster, initial_rankers: usize, confidence: f64) -> Self {
        let rankers = tally.rankers();
        let mut certainty = Self {
            roster: roster.clone(),
            sequences: Sequences::new(initial_rankers, rankers, confidence),
            sides: vec![Side::Undecided; rankers * (rankers - 1) / 2],
            wins: vec![0; rankers],
            losses: vec![0; rankers],
        };
        for high in 1..rankers {
            for low in 0..high {
                certainty.update(tally, low, high);
            }
        }
        certainty
    }

    /// Read the counts of `{i, j}` again.
    pub fn update(&mut self, tally: &Tally, i: usize, j: usize) {
        if i == j || !self.roster.is_active(i) || !self.roster.is_active(j) {
            return;
        }
        let (low, high) = (i.min(j), i.max(j));
        let (wins, losses) = (tally.wins(low, high), tally.wins(high, low));
        let side = match self.sequences.of(low, high).excludes_half(wins, losses) {
            false => Side::Undecided,
            true if wins > losses => Side::Low,
            true => Side::High,
        };
        let at = pair_index(low, high);
        if self.sides[at] == side {
            return;
        }
        self.count(low, high, self.sides[at], |count| *count -= 1);
        self.count(low, high, side, |count| *count += 1);
        self.sides[at] = side;
    }

    fn count(&mut self, low: usize, high: usize, side: Side, change: impl Fn(&mut usize)) {
        let (better, worse) = match side {
            Side::Undecided => return,
            Side::Low => (low, high),
            Side::High => (high, low),
        };
        change(&mut self.wins[better]);
        change(&mut self.losses[worse]);
    }

    /// The active rankers.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The intervals of a pair.
    pub fn sequence(&self, i: usize, j: usize) -> Sequence {
        self.sequences.of(i, j)
    }

    /// Whether the better ranker of a pair is certain.
    pub fn is_decided(&self, i: usize, j: usize) -> bool {
        i != j && self.sides[pair_index(i, j)] != Side::Undecided
    }

    /// The lower bound of the Copeland score of `i`, unnormalised.
    pub fn certain_wins(&self, i: usize) -> usize {
        self.wins[i]
    }

    /// The upper bound of the Copeland score of `i`, unnormalised; 0 for a retired ranker.
    pub fn possible_wins(&self, i: usize) -> usize {
        match self.roster.is_active(i) {
            true => self.roster.active().len() - 1 - self.losses[i],
            false => 0,
        }
    }

    /// The rankers that can still be a Copeland winner, ascending; never empty.
    pub fn possible(&self) -> Vec<usize> {
        let least = self.wins.iter().copied().max().unwrap_or(0);
        self.roster.active().iter().copied().filter(|&i| self.possible_wins(i) >= least).collect()
    }

    /// The rankers that certainly are a Copeland winner, ascending; several if their scores are
    /// certainly equal.
    pub fn certain(&self) -> Vec<usize> {
        let most = (0..self.wins.len()).map(|i| self.possible_wins(i));
        // with two or more active rankers some upper bound is above 0: no retired ranker is certain
        certain_winners(&self.wins, most)
    }

    /// The undecided pairs `(i, j)`, `i < j`, with at least one possible winner. Only these pairs
    /// can change the winners.
    pub fn deciding_pairs(&self) -> Vec<(usize, usize)> {
        if !self.certain().is_empty() {
            return Vec::new();
        }
        let mut possible = vec![false; self.wins.len()];
        self.possible().into_iter().for_each(|i| possible[i] = true);
        let active = self.roster.active();
        let pairs = active
            .iter()
            .enumerate()
            .flat_map(|(before, &high)| active[..before].iter().map(move |&low| (low, high)));
        pairs
            .filter(|&(low, high)| (possible[low] || possible[high]) && !self.is_decided(low, high))
            .collect()
    }
}

/// The rankers whose `least` score reaches the `most` of every other ranker.
pub(super) fn certain_winners(least: &[usize], most: impl Iterator<Item = usize>) -> Vec<usize> {
    // the two largest give the largest among the others of any ranker
    let (mut first, mut second, mut holder) = (0, 0, usize::MAX);
    for (i, score) in most.enumerate() {
        if holder == usize::MAX || score > first {
            (second, first, holder) = (first, score, i);
        } else if score > second {
            second = score;
        }
    }
    let of_others = |i: usize| if i == holder { second } else { first };
    (0..least.len()).filter(|&i| least[i] >= of_others(i)).collect()
}
