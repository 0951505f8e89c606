//! Random subsets of the rankers of a matrix.

use rand::SeedableRng;
use rand::seq::index::sample;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::simulate::progress::Progress;
use dueling_bandits::{PolicyRng, step_rng};

/// The sizes of the subsets: all sizes, or about a dozen.
pub fn sizes(rankers: usize, all: bool) -> Vec<usize> {
    let step = if all { 1 } else { rankers.div_ceil(12).max(1) };
    let mut sizes: Vec<usize> = (1..=rankers).step_by(step).collect();
    // the last but one is not so near to the last that their circles overlap
    sizes.retain(|size| 2 * (rankers - size) >= step);
    sizes.push(rankers);
    sizes
}

/// For each of `sizes`, what `of` finds in this many random subsets of the rankers, in the current
/// rayon pool. Omits sizes that were not finished when `progress` was stopped.
pub(super) fn of_each<T: Send>(
    rankers: usize,
    sizes: &[usize],
    subsets: u64,
    seed: u64,
    progress: &Progress,
    of: impl Fn(&[usize]) -> T + Sync,
) -> Vec<(usize, Vec<T>)> {
    let of_size = |&size: &usize| {
        let found: Vec<T> = (0..subsets)
            .into_par_iter()
            .filter(|_| !progress.is_stopped())
            .map(|number| {
                let stream = seed.wrapping_add((size as u64) << 40);
                let rng = &mut PolicyRng::from_rng(&mut step_rng(stream, number));
                let found = of(&sample(rng, rankers, size).into_vec());
                progress.advance(1);
                found
            })
            .collect();
        (found.len() as u64 == subsets).then_some((size, found))
    };
    sizes.iter().filter_map(of_size).collect()
}
