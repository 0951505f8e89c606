//! Who takes part: rankers come and go while an experiment runs, their indices stay.

use crate::{MAX_RANKERS, Unsupported};

/// The rankers of an experiment, and which of them have been retired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    retired: Vec<bool>,
    /// Those not retired, ascending.
    active: Vec<usize>,
}

impl Roster {
    /// All of `0..rankers` take part.
    pub fn new(rankers: usize) -> Self {
        Self { retired: vec![false; rankers], active: (0..rankers).collect() }
    }

    /// All of `0..rankers` but `retired`; `None` when those are not distinct ascending rankers, or
    /// all of them.
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

    /// `K`, the retired included.
    pub fn rankers(&self) -> usize {
        self.retired.len()
    }

    /// Those that take part, ascending; never empty.
    pub fn active(&self) -> &[usize] {
        &self.active
    }

    /// Whether `ranker` takes part.
    pub fn is_active(&self, ranker: usize) -> bool {
        !self.retired[ranker]
    }

    /// The retired, ascending, as they are saved.
    pub fn retired(&self) -> Vec<u16> {
        (0..self.rankers()).filter(|&i| self.retired[i]).map(|i| i as u16).collect()
    }

    /// One more ranker, with the next index.
    pub fn enlist(&mut self) -> Result<(), Unsupported> {
        if self.rankers() == MAX_RANKERS {
            return Err(Unsupported(format!(
                "there are {MAX_RANKERS} rankers already, the retired included; start another experiment"
            )));
        }
        self.active.push(self.rankers());
        self.retired.push(false);
        Ok(())
    }

    /// Take `ranker` out. Says whether it took part until now.
    pub fn retire(&mut self, ranker: usize) -> Result<bool, Unsupported> {
        if ranker >= self.rankers() {
            return Err(Unsupported(format!(
                "there is no ranker {ranker}; the rankers are 0 to {}",
                self.rankers() - 1
            )));
        }
        if self.retired[ranker] {
            return Ok(false);
        }
        if self.active.len() == 1 {
            return Err(Unsupported(format!(
                "ranker {ranker} is the only one left; enlist another before it is retired"
            )));
        }
        self.retired[ranker] = true;
        self.active.retain(|&i| i != ranker);
        Ok(true)
    }
}
