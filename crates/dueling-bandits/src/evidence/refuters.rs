//! The capital that follows the leader (`docs/verdict-rule.md`).
//!
//! With a margin, the capital of a truth must be shared among all rankers, since any of them can be
//! the one that is certified by mistake. The counts soon say which ranker leads, so most of these
//! shares are wasted. Here one ranker after the other is the *refuter* of a rival `j`. While `x` is
//! the refuter, the capital `X(j)` grows by the factor by which `E(x≻j)` grows. Each choice rests
//! on earlier answers alone, and affects no guarantee.

use crate::evidence::certificate::PairEvidence;

/// Comparisons for each ranker before the first choice: a refuter that is chosen too soon often
/// turns out to lose. With 4, verdicts on 16 rankers come 4 % sooner than with 1.
const FIRST_CHOICE_AT: u64 = 4;
/// A choice is due again when the comparisons have grown by this fraction.
const CHOICES_EACH: u64 = 20;
/// `ln X` is cut off here.
const MOST_LN: f64 = 40.0;

/// The refuter of every rival. Rankers are places in the list of active ones.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Refuters {
    /// The ranker that was ahead of most others at the newest choice.
    leader: Option<u16>,
    rivals: Vec<Rival>,
    /// Comparisons at which the next choice is due.
    next_at: u64,
}

#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
struct Rival {
    refuter: Option<u16>,
    /// `ln X` without what the present refuter adds: the gains of earlier refuters, less `ln E` of
    /// the present one when it was chosen.
    base: f64,
}

impl Refuters {
    /// No choice yet among `rankers` rankers.
    pub fn new(rankers: usize) -> Self {
        let next_at = FIRST_CHOICE_AT * rankers as u64;
        Self { leader: None, rivals: vec![Rival::default(); rankers], next_at }
    }

    /// Whether a choice is due after this many comparisons.
    pub fn is_due(&self, comparisons: u64) -> bool {
        comparisons >= self.next_at
    }

    /// Choose the refuter of each rival anew. `X` of the rivals does not change. O(K²).
    pub fn choose(&mut self, evidence: &PairEvidence, comparisons: u64) {
        let rankers = self.rivals.len();
        self.next_at = comparisons + (comparisons / CHOICES_EACH).max(rankers as u64 / 2).max(1);
        let leader = self.leading(evidence);
        self.leader = Some(leader as u16);
        for j in 0..rankers {
            let refuter = self.refuter(evidence, leader, j).map(|x| x as u16);
            if refuter != self.rivals[j].refuter {
                let new = refuter.map_or(0.0, |x| evidence.ln(x.into(), j));
                self.rivals[j] = Rival { refuter, base: self.ln(evidence, j) - new };
            }
        }
    }

    /// `X(j)`: what the capital against the rival `j` has become.
    pub fn capital(&self, evidence: &PairEvidence, j: usize) -> f64 {
        libm::exp(self.ln(evidence, j).min(MOST_LN))
    }

    /// The factor of `E(x≻j)` in `X(j)` while `x` is the refuter: the present one, or as if
    /// `x` was chosen now.
    pub fn stake(&self, evidence: &PairEvidence, x: usize, j: usize) -> f64 {
        let ln = match self.rivals[j].refuter {
            Some(refuter) if usize::from(refuter) == x => self.rivals[j].base,
            _ => self.ln(evidence, j) - evidence.ln(x, j),
        };
        libm::exp(ln.clamp(-MOST_LN, MOST_LN))
    }

    /// Whether a decoded state fits this many rankers.
    pub fn is_sound(&self, rankers: usize) -> bool {
        let known = |ranker: Option<u16>| ranker.is_none_or(|ranker| usize::from(ranker) < rankers);
        self.rivals.len() == rankers
            && known(self.leader)
            && self.rivals.iter().enumerate().all(|(j, rival)| {
                known(rival.refuter)
                    && rival.refuter.is_none_or(|refuter| usize::from(refuter) != j)
                    && rival.base.is_finite()
            })
    }

    /// Estimated bytes in memory that grow with the number of rankers.
    pub fn bytes(&self) -> usize {
        size_of_val(self.rivals.as_slice())
    }

    fn ln(&self, evidence: &PairEvidence, j: usize) -> f64 {
        let rival = &self.rivals[j];
        rival.base + rival.refuter.map_or(0.0, |x| evidence.ln(x.into(), j))
    }

    /// The ranker that won more than half against most others, where an even pair counts half: the
    /// leader so far, if it is one.
    fn leading(&self, evidence: &PairEvidence) -> usize {
        let rankers = self.rivals.len();
        let mut halves = vec![0; rankers];
        for x in 1..rankers {
            for y in 0..x {
                match evidence.wins(x, y).total_cmp(&evidence.wins(y, x)) {
                    std::cmp::Ordering::Greater => halves[x] += 2,
                    std::cmp::Ordering::Less => halves[y] += 2,
                    std::cmp::Ordering::Equal => {
                        halves[x] += 1;
                        halves[y] += 1;
                    }
                }
            }
        }
        let most = halves.iter().copied().max().unwrap_or(0);
        let before = self.leader.map(usize::from).filter(|&leader| halves[leader] == most);
        before.or_else(|| halves.iter().position(|&of| of == most)).unwrap_or(0)
    }

    /// The leader unless it is behind `j`, and else a ranker that is ahead of `j`.
    fn refuter(&self, evidence: &PairEvidence, leader: usize, j: usize) -> Option<usize> {
        let holds = |x: usize| evidence.wins(x, j) >= evidence.wins(j, x);
        if leader != j && holds(leader) {
            return Some(leader);
        }
        let before = self.rivals[j].refuter.map(usize::from).filter(|&x| holds(x));
        let ahead = |&x: &usize| x != j && evidence.wins(x, j) > evidence.wins(j, x);
        let most = |best: Option<usize>, x: usize| match best {
            Some(best) if evidence.ln(best, j) >= evidence.ln(x, j) => Some(best),
            _ => Some(x),
        };
        before.or_else(|| (0..self.rivals.len()).filter(ahead).fold(None, most))
    }
}
