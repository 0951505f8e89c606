//! The batches of rankers of MergeRUCB: draw, prune and merge them.

use rand::seq::SliceRandom;

use dueling_bandits::PolicyRng;
use dueling_bandits::policies::choose;

/// The remaining rankers, in batches.
#[derive(Debug)]
pub struct RankerBatches {
    batches: Vec<Vec<u16>>,
    /// `S`, from 1.
    stage: u32,
}

impl RankerBatches {
    /// `rankers` in random order, cut into batches of `size`; the last may be shorter.
    pub fn new(rankers: usize, size: usize, rng: &mut PolicyRng) -> Self {
        let mut order: Vec<u16> = (0..rankers as u16).collect();
        order.shuffle(rng);
        Self { batches: order.chunks(size).map(<[u16]>::to_vec).collect(), stage: 1 }
    }

    /// All remaining rankers, ascending.
    pub fn survivors(&self) -> Vec<usize> {
        let mut survivors: Vec<_> =
            self.batches.iter().flatten().map(|&i| usize::from(i)).collect();
        survivors.sort_unstable();
        survivors
    }

    /// Step 1: a random batch among those with two or more rankers; if there is none, the last
    /// remaining batch.
    pub fn current(&self, rng: &mut PolicyRng) -> &[u16] {
        let several = |batch: &&Vec<u16>| batch.len() > 1;
        choose::uniform(self.batches.iter().filter(several), rng).unwrap_or(&self.batches[0])
    }

    /// The index of the batch that contains both rankers.
    pub fn common(&self, i: usize, j: usize) -> Option<usize> {
        let (i, j) = (i as u16, j as u16);
        self.batches.iter().position(|batch| batch.contains(&i) && batch.contains(&j))
    }

    /// Step 4, in batch `at`: while the batch has two or more rankers and some are `beaten(i, by)`
    /// by another, remove one of these at random. Removing one at a time keeps a cycle from
    /// emptying the batch.
    pub fn prune(&mut self, at: usize, beaten: impl Fn(usize, usize) -> bool, rng: &mut PolicyRng) {
        let batch = &mut self.batches[at];
        while batch.len() > 1 {
            let loses =
                |i: u16| batch.iter().any(|&j| i != j && beaten(usize::from(i), usize::from(j)));
            let losers = (0..batch.len()).filter(|&place| loses(batch[place]));
            match choose::uniform(losers, rng) {
                Some(place) => batch.remove(place),
                None => break,
            };
        }
    }

    /// Step 6: if few enough of `rankers` remain, merge once, and a second time if a batch is still
    /// small.
    pub fn merge(&mut self, rankers: usize, size: usize, rng: &mut PolicyRng) {
        let left: usize = self.batches.iter().map(Vec::len).sum();
        if self.batches.len() < 2 || left > rankers >> self.stage {
            return;
        }
        self.merge_once(size, rng);
        let smallest = self.batches.iter().map(Vec::len).min().unwrap_or(0);
        if 2 * smallest <= size && self.batches.len() > 1 {
            self.merge_once(size, rng);
        }
        self.stage += 1;
    }

    /// Merge the largest batches with the smallest, unless the result exceeds `1.5 size`.
    fn merge_once(&mut self, size: usize, rng: &mut PolicyRng) {
        self.batches.shuffle(rng);
        self.batches.sort_by_key(Vec::len);
        let mut waiting: std::collections::VecDeque<_> = std::mem::take(&mut self.batches).into();
        while let Some(mut large) = waiting.pop_back() {
            if waiting.front().is_some_and(|small| 2 * (small.len() + large.len()) <= 3 * size) {
                let mut joined = waiting.pop_front().unwrap_or_default();
                joined.append(&mut large);
                large = joined;
            }
            self.batches.push(large);
        }
    }
}
