//! Who is certainly, and who can still be, a Copeland winner, given the intervals of all pairs.
//!
//! A pair is *settled* when its interval excludes 1/2. The settled pairs bound every ranker's
//! Copeland score: at least the settled wins, at most all but the settled losses. While all
//! intervals hold:
//!
//! - a Copeland winner is among the *possible* ones, whose largest score is not below anybody's
//!   smallest;
//! - a ranker whose smallest score is not below any other's largest is *certain* to be one.
//!
//! All of that is of the rankers that take part: scores count their pairs, and nobody else can win.

use super::{Sequence, Sequences};
use crate::pairs::pair_index;
use crate::{Roster, Tally};

/// Which of a pair is certainly better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Open,
    /// The one with the lower index.
    Low,
    /// The one with the higher index.
    High,
}

/// The settled pairs of a tally at one confidence. Follows from the tally alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Certainty {
    roster: Roster,
    sequences: Sequences,
    /// Triangular.
    sides: Vec<Side>,
    wins: Vec<usize>,
    losses: Vec<usize>,
}

impl Certainty {
    /// The settled pairs of `tally`, all of them right at all times with probability `confidence`,
    /// in (0, 1).
    pub fn of(tally: &Tally, confidence: f64) -> Self {
        Self::among(tally, &Roster::new(tally.rankers()), tally.rankers(), confidence)
    }

    /// The same where only those of `roster` take part, and all but the first `initial_rankers`
    /// came later.
    pub fn among(tally: &Tally, roster: &Roster, initial_rankers: usize, confidence: f64) -> Self {
        let rankers = tally.rankers();
        let mut certainty = Self {
            roster: roster.clone(),
            sequences: Sequences::new(initial_rankers, rankers, confidence),
            sides: vec![Side::Open; rankers * (rankers - 1) / 2],
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

    /// The counts of `{i, j}` have changed.
    pub fn update(&mut self, tally: &Tally, i: usize, j: usize) {
        if i == j || !self.roster.is_active(i) || !self.roster.is_active(j) {
            return;
        }
        let (low, high) = (i.min(j), i.max(j));
        let (wins, losses) = (tally.wins(low, high), tally.wins(high, low));
        let side = match self.sequences.of(low, high).excludes_half(wins, losses) {
            false => Side::Open,
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
            Side::Open => return,
            Side::Low => (low, high),
            Side::High => (high, low),
        };
        change(&mut self.wins[better]);
        change(&mut self.losses[worse]);
    }

    /// Who takes part.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The interval of a pair that it rests on.
    pub fn sequence(&self, i: usize, j: usize) -> Sequence {
        self.sequences.of(i, j)
    }

    /// Whether it is certain which of the two is better.
    pub fn is_settled(&self, i: usize, j: usize) -> bool {
        i != j && self.sides[pair_index(i, j)] != Side::Open
    }

    /// The least Copeland score that `i` can have, unnormalised.
    pub fn certain_wins(&self, i: usize) -> usize {
        self.wins[i]
    }

    /// The largest Copeland score that `i` can have, unnormalised; 0 of one that takes part no
    /// more.
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

    /// The rankers that are certainly a Copeland winner, ascending; several when they are certainly
    /// level.
    pub fn certain(&self) -> Vec<usize> {
        let most = (0..self.wins.len()).map(|i| self.possible_wins(i));
        // of two rankers or more that take part one can still win against the other, so that who
        // has gone is below it
        certain_winners(&self.wins, most)
    }

    /// The open pairs `(i, j)`, `i < j`, of which at least one can still win: no other can change
    /// who wins.
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
            .filter(|&(low, high)| (possible[low] || possible[high]) && !self.is_settled(low, high))
            .collect()
    }
}

/// Those whose `least` score is not below anybody else's `most`.
pub(super) fn certain_winners(least: &[usize], most: impl Iterator<Item = usize>) -> Vec<usize> {
    // the two largest are enough to know the largest among the others
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
