//! The roster: the active and retired rankers. Rankers can be added and retired while a policy
//! runs; their indices never change.

use crate::MAX_RANKERS;

/// A change of the rankers that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RosterError {
    /// The rankers of the policy cannot change.
    #[error("this policy fixes its rankers at the start")]
    FixedRankers,
    /// [`MAX_RANKERS`] is reached.
    #[error("there are {MAX_RANKERS} rankers already, the retired included")]
    TooManyRankers,
    /// No ranker has this index.
    #[error("there is no ranker {ranker}; the rankers are 0 to {last}")]
    UnknownRanker {
        /// The index.
        ranker: usize,
        /// The largest index of a ranker.
        last: usize,
    },
    /// No ranker would be left.
    #[error("ranker {0} is the only one left; enlist another before retiring it")]
    LastRanker(usize),
}

/// All rankers, with a flag for the retired ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    retired: Vec<bool>,
    /// The rankers that are not retired, ascending.
    active: Vec<usize>,
}

impl Roster {
    /// The rankers `0..rankers`, all active.
    pub fn new(rankers: usize) -> Self {
        Self { retired: vec![false; rankers], active: (0..rankers).collect() }
    }

    /// The rankers `0..rankers`, of which `retired` are retired; `None` unless `retired` is
    /// ascending without repeats, within range, and leaves a ranker.
    pub fn with_retired(rankers: usize, retired: &[u16]) -> Option<Self> {
        let ascending = retired.windows(2).all(|pair| pair[0] < pair[1]);
        let known = retired.last().is_none_or(|&last| usize::from(last) < rankers);
        (ascending && known && retired.len() < rankers).then_some(())?;
        let mut flags = vec![false; rankers];
        for &ranker in retired {
            flags[usize::from(ranker)] = true;
        }
        let active = (0..rankers).filter(|&i| !flags[i]).collect();
        Some(Self { retired: flags, active })
    }

    /// `K`, including the retired.
    pub fn rankers(&self) -> usize {
        self.retired.len()
    }

    /// The active rankers, ascending; never empty.
    pub fn active(&self) -> &[usize] {
        &self.active
    }

    /// Whether `ranker` is active.
    pub fn is_active(&self, ranker: usize) -> bool {
        !self.retired[ranker]
    }

    /// The retired rankers, ascending, as they are saved.
    pub fn retired(&self) -> Vec<u16> {
        (0..self.rankers()).filter(|&i| self.retired[i]).map(|i| i as u16).collect()
    }

    /// Add one ranker, with the next index.
    pub fn enlist(&mut self) -> Result<(), RosterError> {
        if self.rankers() == MAX_RANKERS {
            return Err(RosterError::TooManyRankers);
        }
        self.active.push(self.rankers());
        self.retired.push(false);
        Ok(())
    }

    /// Retire `ranker`. Returns whether it was active until now.
    pub fn retire(&mut self, ranker: usize) -> Result<bool, RosterError> {
        if ranker >= self.rankers() {
            return Err(RosterError::UnknownRanker { ranker, last: self.rankers() - 1 });
        }
        if self.retired[ranker] {
            return Ok(false);
        }
        if self.active.len() == 1 {
            return Err(RosterError::LastRanker(ranker));
        }
        self.retired[ranker] = true;
        self.active.retain(|&i| i != ranker);
        Ok(true)
    }
}
