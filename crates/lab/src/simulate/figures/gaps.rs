//! Figures of what decides the regret of CCB and SCB, over random subsets of the rankers of a
//! matrix: the number of Copeland winners `C`, the losses of a winner `L_C`, and `Δ²/Δ_min²`.

use std::collections::BTreeMap;

use super::subsets;
use crate::simulate::progress::Progress;
use crate::simulate::report::Point;
use dueling_bandits::preference::PreferenceMatrix;

/// The quantities of a matrix that decide the regret (Zoghi, Karnin, Whiteson and de Rijke,
/// "Copeland Dueling Bandits", NIPS 2015, Definition 3). The paper assumes that no pair is even;
/// here an even pair has no gap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hardness {
    /// `C`: number of Copeland winners.
    pub winners: usize,
    /// `L_C`: the largest number of rankers that beat a Copeland winner.
    pub most_losses: usize,
    /// `Δ`; `None` if every ranker is a Copeland winner.
    pub gap: Option<f64>,
    /// `Δ_min`; `None` if all pairs are even.
    pub smallest_gap: Option<f64>,
}

impl Hardness {
    pub fn of(matrix: &PreferenceMatrix) -> Self {
        let all = || 0..matrix.rankers();
        let best = matrix.copeland_winners();
        let losses = |i: usize| -> Vec<f64> {
            all().filter(|&j| matrix.beats(j, i)).map(|j| matrix.margin(j, i)).collect()
        };
        let most_losses = best.iter().map(|&i| losses(i).len()).max().unwrap_or(0);
        // item 4: the (L_C + 1)th largest loss. With even pairs there may be fewer: the least loss.
        let own = |i: usize| {
            let mut losses = losses(i);
            losses.sort_by(|a, b| b.total_cmp(a));
            losses.get(most_losses).or(losses.last()).copied().unwrap_or(0.0)
        };
        let gap = |i: usize, j: usize| matrix.margin(i, j).abs();
        let others = || all().filter(|i| best.binary_search(i).is_err());
        let between = best.iter().flat_map(|&i| others().map(move |j| gap(i, j)));
        Self {
            winners: best.len(),
            most_losses,
            gap: least(between.chain(others().map(own))),
            smallest_gap: least(all().flat_map(|i| all().map(move |j| gap(i, j)))),
        }
    }

    /// `Δ²/Δ_min²`: how much larger the bound on CCB's regret would be with `Δ_min`.
    pub fn advantage(&self) -> Option<f64> {
        Some((self.gap? / self.smallest_gap?).powi(2))
    }
}

/// The least value above 0.
fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.filter(|&value| value > 0.0).reduce(f64::min)
}

/// The subsets of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Gaps {
    /// Number of rankers in each subset.
    pub size: usize,
    /// How many subsets have each `C`.
    pub winners: BTreeMap<usize, u64>,
    /// How many subsets have each `L_C`.
    pub losses: BTreeMap<usize, u64>,
    /// Mean of `Δ²/Δ_min²` over the subsets that have it: in which some ranker is no Copeland
    /// winner.
    pub advantage: Option<Point>,
    /// The number of these subsets.
    pub with_advantage: u64,
}

/// The quantities of `subsets` random subsets of each of `sizes`, in the current rayon pool. Sizes
/// below 2 have none. Omits sizes that were not finished when `progress` was stopped.
pub fn measure(
    matrix: &PreferenceMatrix,
    sizes: &[usize],
    subsets: u64,
    seed: u64,
    progress: &Progress,
) -> Vec<Gaps> {
    let sizes: Vec<usize> = sizes.iter().copied().filter(|&size| size >= 2).collect();
    let of = |chosen: &[usize]| {
        let among = matrix.restricted_to(chosen).expect("at least two of its rankers");
        let found = Hardness::of(&among);
        (found.winners, found.most_losses, found.advantage())
    };
    let found = subsets::of_each(matrix.rankers(), &sizes, subsets, seed, progress, of);
    found.into_iter().map(|(size, found)| Gaps::of(size, &found)).collect()
}

impl Gaps {
    fn of(size: usize, found: &[(usize, usize, Option<f64>)]) -> Self {
        let (mut winners, mut losses) = (BTreeMap::new(), BTreeMap::new());
        for (c, l, _) in found {
            *winners.entry(*c).or_insert(0) += 1;
            *losses.entry(*l).or_insert(0) += 1;
        }
        let advantages: Vec<f64> = found.iter().filter_map(|of| of.2).collect();
        let with_advantage = advantages.len() as u64;
        let advantage =
            (with_advantage > 0).then(|| Point::of(size as u64, advantages.into_iter()));
        Self { size, winners, losses, advantage, with_advantage }
    }
}

/// The counts as CSV: one line for each size, quantity and value, with the number of subsets; and
/// for each size the mean of the ratio with its standard error.
pub fn csv(gaps: &[Gaps]) -> String {
    let mut text = String::from("rankers,quantity,value,subsets,standard_error\n");
    for of_size in gaps {
        let size = of_size.size;
        for (quantity, counts) in [("C", &of_size.winners), ("L_C", &of_size.losses)] {
            for (value, subsets) in counts {
                text.push_str(&format!("{size},{quantity},{value},{subsets},\n"));
            }
        }
        if let Some(point) = &of_size.advantage {
            let error = point.standard_error.map(|error| error.to_string()).unwrap_or_default();
            let (mean, subsets) = (point.mean, of_size.with_advantage);
            text.push_str(&format!("{size},mean of D^2/D_min^2,{mean},{subsets},{error}\n"));
        }
    }
    text
}
