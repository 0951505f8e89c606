//! Choice of one item among several, with uniform random ties (`lab/notes/comparators.md` §1.5).

use rand::RngExt;

use crate::PolicyRng;

/// The item with the largest value, chosen uniformly among exact maximisers; `None` if there are no
/// items. Uses `rng` only for ties.
pub fn argmax<T, V: PartialOrd>(
    items: impl IntoIterator<Item = (T, V)>,
    rng: &mut PolicyRng,
) -> Option<T> {
    let mut best: Option<(T, V)> = None;
    let mut tied = 1;
    for (item, value) in items {
        match &best {
            Some((_, top)) if value < *top => {}
            Some((_, top)) if value == *top => {
                tied += 1;
                if rng.random_range(0..tied) == 0 {
                    best = Some((item, value));
                }
            }
            _ => {
                tied = 1;
                best = Some((item, value));
            }
        }
    }
    best.map(|(item, _)| item)
}

/// One of the items, uniformly; `None` if there are no items.
pub fn uniform<T>(items: impl IntoIterator<Item = T>, rng: &mut PolicyRng) -> Option<T> {
    argmax(items.into_iter().map(|item| (item, ())), rng)
}
