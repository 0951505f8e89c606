//! Which rankers are to beat each rival, chosen by the counts so far, and what they have gained.
//!
//! The capital of a truth must be shared among all rankers, since any of them can be the one that
//! is certified by mistake; a margin makes that most expensive. The counts soon say which ranker
//! leads, so most of these shares are wasted. Here the capital follows the leader instead.
//!
//! Take a truth of type I: the rival `j` beats all others, with a margin by more than the margin.
//! Then "x beats `j`" is wrong for *every* ranker `x`, and each `E(x≻j)` is a supermartingale. So
//! the capital may be staked on one `x` after the other, the *refuter* of `j`, if each choice rests
//! on earlier answers alone: while `x` is the refuter, the capital grows by the factor by which
//! `E(x≻j)` grows. Given all earlier answers the mean of that factor is at most 1, so the result,
//! `X(j)`, is a supermartingale too.
//!
//! A refuter that turns out to lose takes a part of the capital with it. So the capital is not
//! staked all at once: [`FIRST_STAKE`] of it at first, and half of the rest each time the number of
//! comparisons has doubled. The last stakes have not lost with the first refuters.
//!
//! Other rankers that beat `j` speak against the truth as well: they are *witnesses*. The capital
//! also grows by the factor by which `1 - w + w E(x≻j)` of each witness `x` grows, from the moment
//! at which it becomes one. That is a supermartingale as well, each answer is about one pair, and a
//! pair is that of the refuter or of a witness, not of both. The factor of a witness that turns out
//! to lose does not fall below `1 - w`.
//!
//! The choice affects no guarantee. It is made now and then, as the comparisons grow by a 20th.

use smallvec::SmallVec;

use crate::evidence::stake::Stake;

/// Share of the capital that is staked from the first comparison.
const FIRST_STAKE: f64 = 0.3;
/// Comparisons for each ranker at the second stake; the next ones are at twice the number each.
const SECOND_STAKE_AT: u64 = 5;
/// Number of stakes in all. What is left by then does not matter.
const STAKES: u32 = 24;
/// A refuter stays, although the leader is ahead of the rival too, if it has so much more evidence.
const MUCH_MORE: f64 = 0.5;
/// A ranker that is ahead of the rival with so much evidence, in nats, becomes a witness.
const WITNESS_FROM: f64 = 0.5;
/// `ln` of the growth of a stake is cut off here, always so that the capital is not larger.
const MOST_LN: f64 = 40.0;

/// What the refuters are chosen by, and what they gain: the pairs among the active rankers.
pub trait Evidence {
    /// Wins of `x` over `y`.
    fn wins(&self, x: usize, y: usize) -> f64;
    /// `ln E(x≻y)`.
    fn ln(&self, x: usize, y: usize) -> f64;
}

/// Refuter and witnesses against every rival. Rankers are places in the list of active ones.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Refuters {
    /// The ranker that was ahead of most others at the newest choice.
    leader: Option<u16>,
    rivals: Vec<Rival>,
    /// Share of the capital that is not staked yet, and the number of stakes so far.
    waiting: f64,
    stakes: u32,
    /// Comparisons at which the next choice is due.
    next_at: u64,
}

/// Twice the Copeland score of each ranker in the counts, without an allocation for a few.
type Halves = SmallVec<[usize; 16]>;
/// Pairs, the first one ahead of the second, likewise.
type Pairs = SmallVec<[(usize, usize); 32]>;

/// What is staked against one rival.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Rival {
    refuter: Option<u16>,
    /// `ln E` of the refuter against the rival when it was chosen.
    since: f64,
    /// `ln` of the factor by which the evidence of earlier refuters and witnesses grew.
    gained: f64,
    /// The stakes, each divided by the growth before it.
    staked: f64,
    /// Ascending.
    witnesses: Vec<Witness>,
}

/// A ranker whose evidence against a rival counts besides that of the refuter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Witness {
    ranker: u16,
    /// `1 - w + w E` when it became one.
    since: f64,
}

impl Refuters {
    /// No choice yet among `rankers` rankers.
    pub fn new(rankers: usize) -> Self {
        let witnesses = Vec::new();
        let rival =
            Rival { refuter: None, since: 0.0, gained: 0.0, staked: FIRST_STAKE, witnesses };
        Self {
            leader: None,
            rivals: vec![rival; rankers],
            waiting: 1.0 - FIRST_STAKE,
            stakes: 1,
            next_at: rankers as u64,
        }
    }

    /// Whether a choice is due after so many comparisons.
    pub fn is_due(&self, comparisons: u64) -> bool {
        comparisons >= self.next_at
    }

    /// Choose anew. `X` is the same before and after. O(K²).
    pub fn choose(&mut self, evidence: &impl Evidence, comparisons: u64) {
        let rankers = self.rivals.len() as u64;
        self.next_at = comparisons + (comparisons / 20).max(rankers / 2).max(1);
        let (halves, ahead) = self.compared(evidence);
        let leader = self.leading(&halves);
        self.leader = Some(leader as u16);
        for j in 0..self.rivals.len() {
            let refuter = self.refuter(evidence, leader, j);
            let rival = &mut self.rivals[j];
            let before = rival.refuter.map(usize::from);
            if refuter != before {
                rival.gained += before.map_or(0.0, |x| evidence.ln(x, j) - rival.since);
                rival.since = refuter.map_or(0.0, |x| evidence.ln(x, j));
                rival.refuter = refuter.map(|x| x as u16);
                self.remove_refuter_from_witnesses(evidence, j);
            }
        }
        self.call_witnesses(evidence, &ahead);
        while self.stakes < STAKES
            && comparisons >= (SECOND_STAKE_AT * rankers) << (self.stakes - 1)
        {
            self.stakes += 1;
            let stake = self.waiting / 2.0;
            self.waiting -= stake;
            for j in 0..self.rivals.len() {
                let grown = self.ln_growth(evidence, j).max(-MOST_LN);
                self.rivals[j].staked += stake * libm::exp(-grown);
            }
        }
    }

    /// `X(j)`: what the capital against the rival `j` has become.
    pub fn capital(&self, evidence: &impl Evidence, j: usize) -> f64 {
        let grown = self.ln_growth(evidence, j).min(MOST_LN);
        self.waiting + self.rivals[j].staked * libm::exp(grown)
    }

    /// What `E(x≻j)` is multiplied by in `X(j)` while `x` is the refuter: the present one, or as if
    /// `x` was chosen now.
    pub fn stake(&self, evidence: &impl Evidence, x: usize, j: usize) -> f64 {
        let rival = &self.rivals[j];
        let ln = match rival.refuter {
            Some(refuter) if usize::from(refuter) == x => {
                rival.gained - rival.since + self.ln_of_witnesses(evidence, j)
            }
            _ => self.ln_growth(evidence, j) - evidence.ln(x, j),
        };
        rival.staked * libm::exp(ln.clamp(-MOST_LN, MOST_LN))
    }

    /// Whether a decoded state fits so many rankers.
    pub fn is_sound(&self, rankers: usize) -> bool {
        let known = |ranker: Option<u16>| ranker.is_none_or(|ranker| usize::from(ranker) < rankers);
        self.rivals.len() == rankers
            && known(self.leader)
            && (0.0..=1.0).contains(&self.waiting)
            && (1..=STAKES).contains(&self.stakes)
            && self.rivals.iter().enumerate().all(|(j, rival)| {
                known(rival.refuter)
                    && rival.refuter.is_none_or(|refuter| usize::from(refuter) != j)
                    && rival.since.is_finite()
                    && rival.gained.is_finite()
                    && rival.staked.is_finite()
                    && rival.staked >= 0.0
                    && rival.witnesses.is_sorted_by(|one, next| one.ranker < next.ranker)
                    && rival.witnesses.iter().all(|&Witness { ranker, since }| {
                        let other = |x: usize| usize::from(ranker) != x;
                        known(Some(ranker))
                            && other(j)
                            && rival.refuter.is_none_or(|refuter| other(refuter.into()))
                            && since.is_finite()
                            && since >= 1.0
                    })
            })
    }

    /// Estimated bytes in memory that grow with the number of rankers.
    pub fn bytes(&self) -> usize {
        let of = |rival: &Rival| size_of::<Rival>() + size_of_val(rival.witnesses.as_slice());
        self.rivals.iter().map(of).sum()
    }

    /// `ln` of the factor by which the first stake has grown.
    fn ln_growth(&self, evidence: &impl Evidence, j: usize) -> f64 {
        let rival = &self.rivals[j];
        let refuter = rival.refuter.map_or(0.0, |x| evidence.ln(x.into(), j) - rival.since);
        rival.gained + refuter + self.ln_of_witnesses(evidence, j)
    }

    /// `ln` of the factor by which the evidence of the witnesses has grown.
    fn ln_of_witnesses(&self, evidence: &impl Evidence, j: usize) -> f64 {
        let witnesses = &self.rivals[j].witnesses;
        if witnesses.is_empty() {
            return 0.0;
        }
        let stake = self.stake_of_witnesses();
        let grown = |witness: &Witness| factor(stake, evidence, witness.ranker, j) / witness.since;
        // cut off, so that it is finite beside a refuter that lost
        libm::log(witnesses.iter().map(grown).product::<f64>().min(f64::MAX))
    }

    /// `w`.
    fn stake_of_witnesses(&self) -> Stake {
        Stake::among(self.rivals.len() - 1)
    }

    /// The new refuter is no witness any more.
    fn remove_refuter_from_witnesses(&mut self, evidence: &impl Evidence, j: usize) {
        let stake = self.stake_of_witnesses();
        let rival = &mut self.rivals[j];
        let is_refuter = |witness: &Witness| rival.refuter == Some(witness.ranker);
        if let Some(at) = rival.witnesses.iter().position(is_refuter) {
            let Witness { ranker, since } = rival.witnesses.remove(at);
            rival.gained += libm::log(factor(stake, evidence, ranker, j) / since);
        }
    }

    /// The first of each of these pairs becomes a witness against the second if it has the evidence
    /// and is not the refuter.
    fn call_witnesses(&mut self, evidence: &impl Evidence, ahead: &[(usize, usize)]) {
        let stake = self.stake_of_witnesses();
        for &(x, j) in ahead {
            let (rival, ranker) = (&mut self.rivals[j], x as u16);
            let place = rival.witnesses.binary_search_by_key(&ranker, |witness| witness.ranker);
            if let Err(at) = place
                && rival.refuter != Some(ranker)
                && evidence.ln(x, j) >= WITNESS_FROM
            {
                let since = factor(stake, evidence, ranker, j);
                rival.witnesses.insert(at, Witness { ranker, since });
            }
        }
    }

    /// Of each ranker, the number of others against which it won more than half, twice, and once
    /// for an even pair; and the pairs in which the first is ahead of the second.
    fn compared(&self, evidence: &impl Evidence) -> (Halves, Pairs) {
        let rankers = self.rivals.len();
        let (mut halves, mut pairs) = (Halves::from_elem(0, rankers), Pairs::new());
        for x in 1..rankers {
            for y in 0..x {
                match evidence.wins(x, y).total_cmp(&evidence.wins(y, x)) {
                    std::cmp::Ordering::Greater => pairs.push((x, y)),
                    std::cmp::Ordering::Less => pairs.push((y, x)),
                    std::cmp::Ordering::Equal => {
                        halves[x] += 1;
                        halves[y] += 1;
                    }
                }
            }
        }
        pairs.iter().for_each(|&(x, _)| halves[x] += 2);
        (halves, pairs)
    }

    /// The ranker that won more than half against most others: the leader so far, if it is one.
    fn leading(&self, halves: &[usize]) -> usize {
        let most = halves.iter().copied().max().unwrap_or(0);
        let before = self.leader.map(usize::from).filter(|&leader| halves[leader] == most);
        before.or_else(|| halves.iter().position(|&of| of == most)).unwrap_or(0)
    }

    /// The leader if it is ahead of `j`, and else a ranker that is.
    fn refuter(&self, evidence: &impl Evidence, leader: usize, j: usize) -> Option<usize> {
        let holds = |x: usize| evidence.wins(x, j) >= evidence.wins(j, x);
        let before = self.rivals[j].refuter.map(usize::from).filter(|&x| holds(x));
        if leader != j && holds(leader) {
            let much_more = |&x: &usize| evidence.ln(x, j) > evidence.ln(leader, j) + MUCH_MORE;
            return before.filter(much_more).or(Some(leader));
        }
        let ahead = |&x: &usize| x != j && evidence.wins(x, j) > evidence.wins(j, x);
        let most = |best: Option<usize>, x: usize| match best {
            Some(best) if evidence.ln(best, j) >= evidence.ln(x, j) => Some(best),
            _ => Some(x),
        };
        before.or_else(|| (0..self.rivals.len()).filter(ahead).fold(None, most))
    }
}

/// `1 - w + w E(x≻j)`.
fn factor(stake: Stake, evidence: &impl Evidence, x: u16, j: usize) -> f64 {
    stake.factor(libm::exp(evidence.ln(x.into(), j).min(MOST_LN)))
}
