//! Figures of winners under each notion of a winner, over random subsets of the rankers of a
//! matrix.

use super::subsets;
use crate::simulate::progress::Progress;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::preference::winners::Unsolved;

/// The notions of a winner, in the order of the table in the paper.
///
/// The paper does not say which walk it means. The first moves to a random other ranker if that one
/// wins; the second has rows divided by their sums, including the diagonal.
pub const NOTIONS: [&str; 5] =
    ["Copeland", "von Neumann", "Borda", "random walk", "normalised walk"];

/// A ranker with a weight above this is in the support of a von Neumann winner. Lower weights are
/// rounding.
const SUPPORT: f64 = 1e-9;

/// Counts over the subsets of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of rankers in each subset.
    pub size: usize,
    /// Number of subsets.
    pub subsets: u64,
    /// Number of subsets with a Condorcet winner.
    pub with_condorcet: u64,
    /// Number of subsets whose Copeland winners are all in the support of the von Neumann winner; 0
    /// without overlaps.
    pub copeland_within_von_neumann: u64,
    /// `overlaps[a][b]`: number of subsets in which a ranker wins under both notions; 0 without
    /// overlaps.
    pub overlaps: [[u64; NOTIONS.len()]; NOTIONS.len()],
}

impl Counts {
    fn plus(mut self, other: &Self) -> Self {
        self.subsets += other.subsets;
        self.with_condorcet += other.with_condorcet;
        self.copeland_within_von_neumann += other.copeland_within_von_neumann;
        for (row, more) in self.overlaps.iter_mut().zip(&other.overlaps) {
            for (cell, more) in row.iter_mut().zip(more) {
                *cell += more;
            }
        }
        self
    }
}

/// Counts over `subsets` random subsets of each of `sizes`, in the current rayon pool. With
/// `overlaps`, it also computes the winners under every notion, which takes O(size³) for a subset.
/// The result omits sizes that were not finished when `progress` was stopped.
pub fn count(
    matrix: &PreferenceMatrix,
    sizes: &[usize],
    subsets: u64,
    overlaps: bool,
    seed: u64,
    progress: &Progress,
) -> Result<Vec<Counts>, Unsolved> {
    let of = |chosen: &[usize]| of_subset(matrix, chosen, overlaps);
    let found = subsets::of_each(matrix.rankers(), sizes, subsets, seed, progress, of);
    let of_size = |(size, counts): (usize, Vec<Result<Counts, Unsolved>>)| {
        let start = Counts { size, ..Counts::default() };
        counts.into_iter().try_fold(start, |sum, counts| Ok(sum.plus(&counts?)))
    };
    found.into_iter().map(of_size).collect()
}

fn of_subset(
    matrix: &PreferenceMatrix,
    chosen: &[usize],
    overlaps: bool,
) -> Result<Counts, Unsolved> {
    let mut counts = Counts { subsets: 1, ..Counts::default() };
    let Ok(among) = matrix.restricted_to(chosen) else {
        // A single ranker wins under every notion.
        let one = u64::from(overlaps);
        return Ok(Counts {
            with_condorcet: 1,
            copeland_within_von_neumann: one,
            overlaps: [[one; NOTIONS.len()]; NOTIONS.len()],
            ..counts
        });
    };
    counts.with_condorcet = u64::from(among.condorcet_winner().is_some());
    if overlaps {
        let copeland = among.copeland_winners();
        let strategy = among.von_neumann_strategy()?;
        let support: Vec<usize> = (0..chosen.len()).filter(|&i| strategy[i] > SUPPORT).collect();
        counts.copeland_within_von_neumann =
            u64::from(copeland.iter().all(|i| support.contains(i)));
        let (walk, normalised) = (among.random_walk_winners(), among.normalised_walk_winners());
        let winners = [copeland, support, among.borda_winners(), walk, normalised];
        for (row, a) in counts.overlaps.iter_mut().zip(&winners) {
            for (cell, b) in row.iter_mut().zip(&winners) {
                *cell = u64::from(a.iter().any(|ranker| b.contains(ranker)));
            }
        }
    }
    Ok(counts)
}

/// The table of overlaps over all subsets, as CSV, in percent. Its last line is the share of
/// subsets whose Copeland winners are all in the support of the von Neumann winner.
pub fn overlap_csv(counts: &[Counts]) -> String {
    let total = counts.iter().fold(Counts::default(), Counts::plus);
    let percent = |count: u64| format!("{:.2}", 100.0 * count as f64 / total.subsets.max(1) as f64);
    let mut text =
        format!("overlap in percent of {} subsets,{}\n", total.subsets, NOTIONS.join(","));
    for (notion, row) in NOTIONS.iter().zip(&total.overlaps) {
        let cells: Vec<String> = row.iter().map(|&count| percent(count)).collect();
        text.push_str(&format!("{notion},{}\n", cells.join(",")));
    }
    let within = percent(total.copeland_within_von_neumann);
    text.push_str(&format!("all Copeland winners within the von Neumann support,{within},,,,\n"));
    text
}

/// The counts of Condorcet winners as CSV.
pub fn subsets_csv(counts: &[Counts]) -> String {
    let mut text = String::from("rankers,subsets,with_condorcet_winner\n");
    for counts in counts {
        text.push_str(&format!("{},{},{}\n", counts.size, counts.subsets, counts.with_condorcet));
    }
    text
}
