//! Unordered pairs of rankers, numbered.

use crate::Duel;

/// Index of the unordered pair in the upper triangle, column by column. An added ranker only
/// appends indices.
pub fn pair_index(i: usize, j: usize) -> usize {
    let (low, high) = if i < j { (i, j) } else { (j, i) };
    high * (high - 1) / 2 + low
}

/// The pair with this index, with its lower ranker first.
pub fn pair_at(index: usize) -> Duel {
    let high = (8 * index + 1).isqrt().div_ceil(2);
    Duel::new(index - pair_count(high), high)
}

/// Number of pairs of `rankers` rankers.
pub fn pair_count(rankers: usize) -> usize {
    rankers * rankers.saturating_sub(1) / 2
}

/// All pairs `(low, high)` with `low < high`, in an order in which both cells of a pair in a
/// row-major matrix are near those of the pair before: a column of a large matrix is slow to read.
pub fn pairs_by_strips(rankers: usize) -> impl Iterator<Item = (usize, usize)> {
    let strips = (0..rankers).step_by(STRIP).map(move |begin| begin..(begin + STRIP).min(rankers));
    strips.flat_map(|highs| {
        (0..highs.end)
            .flat_map(move |low| (highs.start.max(low + 1)..highs.end).map(move |high| (low, high)))
    })
}

/// Number of columns of a strip: with four bytes each, those of a row are read at once.
pub(crate) const STRIP: usize = 16;
