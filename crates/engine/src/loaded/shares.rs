//! Duels within the bounds of the shares of rankers.

use rand::RngExt as _;
use rand::seq::IndexedRandom as _;

use crate::experiment_spec::ShareBounds;
use dueling_bandits::{PolicyRng, Selection};

/// The selection, or another one that keeps the bounds of these active rankers.
///
/// Coins are tossed before the selection is looked at. They say which rankers a page must show,
/// each with the probability of its floor and never more than two, and which it must not show, so
/// that each is allowed with the probability of its cap. So the bounds hold for every page,
/// whatever the policy selects.
pub(super) fn within_bounds(
    selection: Selection,
    bounds: &[(usize, ShareBounds)],
    active: &[usize],
    rng: &mut PolicyRng,
) -> Selection {
    let coin: f64 = rng.random();
    let (mut end, mut shown, mut barred) = (0.0, Vec::new(), Vec::new());
    for &(ranker, ShareBounds { floor, cap }) in bounds {
        // the floors lie side by side on a line of two pages
        let start = end;
        end += floor;
        if [coin, coin + 1.0].iter().any(|point| (start..end).contains(point)) {
            shown.push(ranker);
        } else if rng.random::<f64>() >= (cap - floor) / (1.0 - floor) {
            barred.push(ranker);
        }
    }
    let [first, second] = [selection.duel.first, selection.duel.second];
    let has = |ranker: &usize| *ranker == first || *ranker == second;
    if shown.iter().all(has) && !barred.iter().any(has) {
        return selection;
    }
    for ranker in [first, second] {
        if shown.len() < 2 && !shown.contains(&ranker) && !barred.contains(&ranker) {
            shown.push(ranker);
        }
    }
    while shown.len() < 2 {
        let is_free = |ranker: &&usize| !shown.contains(*ranker) && !barred.contains(*ranker);
        let free: Vec<_> = active.iter().filter(is_free).collect();
        let Some(&&ranker) = free.choose(rng) else { break };
        shown.push(ranker);
    }
    match shown[..] {
        [first, second, ..] => Selection::of(first, second),
        [ranker] => Selection::of(ranker, ranker),
        [] => selection,
    }
}

#[cfg(test)]
mod tests {
    use dueling_bandits::step_rng;

    use super::*;

    #[test]
    fn each_ranker_is_shown_within_its_bounds_whatever_is_selected() {
        let bounds = |floor, cap| ShareBounds { floor, cap };
        let bounds = [(0, bounds(0.7, 1.0)), (1, bounds(0.0, 0.2)), (3, bounds(0.9, 0.95))];
        let pages = 40_000;
        for (first, second) in [(1, 2), (0, 1), (3, 1), (4, 4), (2, 4)] {
            let mut shown = [0_u32; 5];
            for page in 0..pages {
                let selected = Selection::of(first, second);
                let duel =
                    within_bounds(selected, &bounds, &[0, 1, 2, 3, 4], &mut step_rng(3, page)).duel;
                shown[duel.first] += 1;
                shown[duel.second] += u32::from(!duel.is_self());
            }
            let share = |ranker: usize| f64::from(shown[ranker]) / pages as f64;
            // four standard deviations
            for (ranker, bounds) in bounds {
                let found = share(ranker);
                assert!(found >= bounds.floor - 0.01, "{ranker}: {found}");
                assert!(found <= bounds.cap + 0.01, "{ranker}: {found}");
            }
            if (first, second) == (2, 4) {
                assert!((share(0) - 0.7).abs() < 0.01 && (share(3) - 0.9).abs() < 0.01);
            }
        }
    }
}
