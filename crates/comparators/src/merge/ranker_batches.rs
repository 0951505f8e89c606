//! The batches of rankers of MergeRUCB and MergeDTS: draw, prune and merge them.

use rand::seq::SliceRandom;

use dueling_bandits::policies::choose;
use dueling_bandits::{Duel, PolicyRng};

/// The remaining rankers, in batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankerBatches {
    batches: Vec<Vec<u16>>,
    /// `S`, from 1.
    stage: u32,
    /// For each ranker, whether its batch was checked in full. Only the two rankers of the newest
    /// duel can then be losers. Not saved: an absent entry means a full check.
    pruned: Vec<bool>,
}

impl RankerBatches {
    /// `rankers` in random order, cut into batches of `size`; the last may be shorter.
    pub fn new(rankers: usize, size: usize, rng: &mut PolicyRng) -> Self {
        let mut order: Vec<u16> = (0..rankers as u16).collect();
        order.shuffle(rng);
        Self {
            batches: order.chunks(size).map(<[u16]>::to_vec).collect(),
            stage: 1,
            pruned: Vec::new(),
        }
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

    /// Step 4, after an outcome of `duel` in batch `at`: while the batch has two or more rankers
    /// and some are `beaten(i, by)` by another, remove one of these at random. Removing one at a
    /// time keeps a cycle from emptying the batch.
    ///
    /// Without an outcome of its pair, a bound only rises. So once a batch was checked in full,
    /// only the two rankers of the newest duel can have become losers.
    pub fn prune(
        &mut self,
        at: usize,
        Duel { first, second }: Duel,
        beaten: impl Fn(usize, usize) -> bool,
        rng: &mut PolicyRng,
    ) {
        let batch = &mut self.batches[at];
        if self.pruned.get(first).is_some_and(|&pruned| pruned) {
            let lost =
                [(first, second), (second, first)].into_iter().find(|&(i, by)| beaten(i, by));
            if let Some((loser, _)) = lost {
                batch.retain(|&i| usize::from(i) != loser);
            }
            return;
        }
        while batch.len() > 1 {
            let loses =
                |i: u16| batch.iter().any(|&j| i != j && beaten(usize::from(i), usize::from(j)));
            let losers = (0..batch.len()).filter(|&place| loses(batch[place]));
            match choose::uniform(losers, rng) {
                Some(place) => batch.remove(place),
                None => break,
            };
        }
        for ranker in batch.iter().map(|&i| usize::from(i)) {
            if self.pruned.len() <= ranker {
                self.pruned.resize(ranker + 1, false);
            }
            self.pruned[ranker] = true;
        }
    }

    /// MergeDTS, point 1: a ranker that is alone joins the next batch.
    pub fn join_singletons(&mut self) {
        while self.batches.len() > 1
            && let Some(at) = self.batches.iter().position(|batch| batch.len() == 1)
        {
            let alone = self.batches.remove(at);
            let next = at % self.batches.len();
            self.batches[next].extend(alone);
            self.pruned.clear();
        }
    }

    /// Step 6: if few enough of `rankers` remain, merge once, and a second time if a batch is still
    /// small.
    pub fn merge(&mut self, rankers: usize, size: usize, rng: &mut PolicyRng) {
        let left: usize = self.batches.iter().map(Vec::len).sum();
        if self.batches.len() < 2 || left > rankers >> self.stage {
            return;
        }
        self.pruned.clear();
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

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn batches(batches: &[&[u16]]) -> RankerBatches {
        RankerBatches {
            batches: batches.iter().map(|batch| batch.to_vec()).collect(),
            stage: 1,
            pruned: Vec::new(),
        }
    }

    /// The sets of rankers that are together.
    fn sets(batches: &RankerBatches) -> Vec<Vec<u16>> {
        let sorted = |batch: &Vec<u16>| {
            let mut batch = batch.clone();
            batch.sort_unstable();
            batch
        };
        let mut sets: Vec<_> = batches.batches.iter().map(sorted).collect();
        sets.sort();
        sets
    }

    #[test]
    fn worked_merges() {
        for seed in 0..20 {
            let mut rng = PolicyRng::seed_from_u64(seed);
            // K = 12, p = 4: the second pass merges the result of the first
            let mut merged = batches(&[&[0], &[1, 2], &[3, 4, 5]]);
            merged.merge(12, 4, &mut rng);
            assert_eq!(sets(&merged), [[0, 1, 2, 3, 4, 5]]);
            assert_eq!(merged.stage, 2);
            // seven of twelve rankers are too many to merge
            let mut unmerged = batches(&[&[0, 6], &[1, 2], &[3, 4, 5]]);
            unmerged.merge(12, 4, &mut rng);
            assert_eq!(unmerged, batches(&[&[0, 6], &[1, 2], &[3, 4, 5]]));
            // sizes 1, 1, 2, 4: the shuffle decides where each single ranker goes
            let mut once = batches(&[&[0], &[1], &[2, 3], &[4, 5, 6, 7]]);
            once.merge_once(4, &mut rng);
            let sets = sets(&once);
            assert!(
                sets == [vec![0, 4, 5, 6, 7], vec![1, 2, 3]]
                    || sets == [vec![0, 2, 3], vec![1, 4, 5, 6, 7]]
            );
        }
    }

    #[test]
    fn a_large_batch_stays_alone() {
        let mut once = batches(&[&[0, 1, 2], &[3, 4, 5, 6]]);
        once.merge_once(4, &mut PolicyRng::seed_from_u64(1));
        assert_eq!(sets(&once), [vec![0, 1, 2], vec![3, 4, 5, 6]]);
    }

    #[test]
    fn a_cycle_does_not_empty_a_batch() {
        for seed in 0..20 {
            let mut cycle = batches(&[&[0, 1, 2], &[3]]);
            // each ranker is beaten by the next; once one is removed, one of the others is unbeaten
            let duel = Duel::new(0, 1);
            cycle.prune(0, duel, |i, j| (i + 1) % 3 == j, &mut PolicyRng::seed_from_u64(seed));
            assert_eq!(cycle.batches[0].len(), 1);
        }
    }

    #[test]
    fn a_ranker_alone_joins_the_next_batch() {
        let mut joined = batches(&[&[0, 1], &[2], &[3, 4], &[5]]);
        joined.join_singletons();
        assert_eq!(sets(&joined), [vec![0, 1, 5], vec![2, 3, 4]]);
        let mut last = batches(&[&[7]]);
        last.join_singletons();
        assert_eq!(sets(&last), [[7]]);
    }
}
