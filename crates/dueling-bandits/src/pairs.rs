//! Unordered pairs of rankers, numbered.

/// Index of the unordered pair in the upper triangle, column by column. An added ranker only
/// appends indices.
pub fn pair_index(i: usize, j: usize) -> usize {
    let (low, high) = if i < j { (i, j) } else { (j, i) };
    high * (high - 1) / 2 + low
}
