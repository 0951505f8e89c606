//! Preference matrices by name: small published ones, and generators with a size and a seed.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::preference::matrix::PreferenceMatrix;
use crate::{MAX_RANKERS, MIN_RANKERS, PolicyRng};

/// Every name, for messages and help.
pub const NAMES: &str =
    "arxiv-6, cyclic-4, arithmetic-8, btl:K:SEED, hard:K:SEED[:GAP], cycle:K:SEED, sst:K:SEED";

/// Default margin by which the Condorcet winner of `hard:K:SEED` beats all others.
const HARD_GAP: f64 = 0.2;

/// A generator's name with an invalid part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("preference matrix `{name}`: {detail}")]
pub struct InvalidName {
    /// The name as given.
    pub name: String,
    /// The problem, and the allowed values.
    pub detail: String,
}

/// In percent. Six retrieval functions of the arXiv full-text search engine: Yue and Joachims,
/// "Beat the Mean Bandit", ICML 2011, to the two decimals published (which make one pair exactly
/// 1/2).
const ARXIV_6: [[u8; 6]; 6] = [
    [50, 55, 55, 54, 61, 61],
    [45, 50, 55, 55, 58, 60],
    [45, 45, 50, 54, 51, 56],
    [46, 45, 46, 50, 54, 50],
    [39, 42, 49, 46, 50, 51],
    [39, 40, 44, 50, 49, 50],
];

/// In percent. "Cyclic" of Komiyama, Honda, Kashima and Nakagawa, "Regret Lower Bound and Optimal
/// Algorithm in Dueling Bandit Problem", COLT 2015: a Condorcet winner by 0.6 above a cycle of 0.9.
const CYCLIC_4: [[u8; 4]; 4] =
    [[50, 60, 60, 60], [40, 50, 90, 10], [40, 10, 50, 90], [40, 90, 10, 50]];

/// In percent. "Arithmetic" of the same paper: `P[i][j] = 1/2 + 0.05 (j - i)`.
const ARITHMETIC_8: [[u8; 8]; 8] = [
    [50, 55, 60, 65, 70, 75, 80, 85],
    [45, 50, 55, 60, 65, 70, 75, 80],
    [40, 45, 50, 55, 60, 65, 70, 75],
    [35, 40, 45, 50, 55, 60, 65, 70],
    [30, 35, 40, 45, 50, 55, 60, 65],
    [25, 30, 35, 40, 45, 50, 55, 60],
    [20, 25, 30, 35, 40, 45, 50, 55],
    [15, 20, 25, 30, 35, 40, 45, 50],
];

impl PreferenceMatrix {
    /// The matrix of a built-in name or generator ([`NAMES`]); `None` if `name` is neither.
    ///
    /// - `arxiv-6` (Yue and Joachims, 2011), `cyclic-4`, `arithmetic-8` (Komiyama et al., 2015):
    ///   published matrices.
    /// - `btl:K:SEED`: Bradley-Terry-Luce, `P[i][j] = w_i / (w_i + w_j)` with weights uniform in
    ///   (0, 1] (SYN-BTL of Agarwal, Ghuge and Nagarajan, ICML 2022).
    /// - `hard:K:SEED[:GAP]`: one ranker beats all others with 1/2 + GAP (0.2 unless given), all
    ///   other pairs are tied (SYN-CD of the same paper, which draws the gap from (0, 1/2)).
    /// - `cycle:K:SEED`: a total order with gaps uniform in (0.1, 0.4), except that the third beats
    ///   the first: three Copeland winners, no Condorcet winner (after the 500-ranker example of
    ///   Zoghi et al., NIPS 2015). K ≥ 3.
    /// - `sst:K:SEED`: random gaps under strong stochastic transitivity and the stochastic triangle
    ///   inequality.
    ///
    /// Generators put the rankers in random order. A name gives the same matrix on every machine.
    ///
    /// ```
    /// use dueling_bandits::preference::PreferenceMatrix;
    ///
    /// let matrix = PreferenceMatrix::named("hard:10:1:0.1").expect("a known name")?;
    /// assert!(matrix.condorcet_winner().is_some());
    /// # Ok::<(), dueling_bandits::preference::InvalidName>(())
    /// ```
    pub fn named(name: &str) -> Option<Result<Self, InvalidName>> {
        let mut parts = name.split(':');
        let generator = match parts.next()? {
            "arxiv-6" if name == "arxiv-6" => return Some(Ok(published(&ARXIV_6))),
            "cyclic-4" if name == "cyclic-4" => return Some(Ok(published(&CYCLIC_4))),
            "arithmetic-8" if name == "arithmetic-8" => return Some(Ok(published(&ARITHMETIC_8))),
            "btl" => Generator::Btl,
            "hard" => Generator::Hard,
            "cycle" => Generator::Cycle,
            "sst" => Generator::Sst,
            _ => return None,
        };
        let parts: Vec<&str> = parts.collect();
        if parts.is_empty() {
            // a bare word is more likely a file name than a generator without numbers
            return None;
        }
        Some(
            generate(generator, &parts).map_err(|detail| InvalidName { name: name.into(), detail }),
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generator {
    Btl,
    Hard,
    Cycle,
    Sst,
}

fn generate(generator: Generator, parts: &[&str]) -> Result<PreferenceMatrix, String> {
    let (size, seed, gap) = match parts {
        [size, seed] => (*size, *seed, None),
        [size, seed, gap] if generator == Generator::Hard => (*size, *seed, Some(*gap)),
        _ => return Err(format!("it must have one of the forms {NAMES}")),
    };
    let least = if generator == Generator::Cycle { 3 } else { MIN_RANKERS };
    let rankers =
        size.parse().ok().filter(|rankers| (least..=MAX_RANKERS).contains(rankers)).ok_or_else(
            || format!("`{size}` is not a number of rankers from {least} to {MAX_RANKERS}"),
        )?;
    let seed =
        seed.parse().map_err(|_| format!("the seed `{seed}` is not a whole number below 2^64"))?;
    let gap = match gap {
        None => HARD_GAP,
        Some(text) => text
            .parse()
            .ok()
            .filter(|gap| *gap > 0.0 && *gap <= 0.5)
            .ok_or_else(|| format!("the gap `{text}` is not a number above 0 and up to 0.5"))?,
    };
    let rng = &mut PolicyRng::seed_from_u64(seed);
    Ok(match generator {
        Generator::Btl => btl(rankers, rng),
        Generator::Hard => hard(rankers, gap, rng),
        Generator::Cycle => cycle(rankers, rng),
        Generator::Sst => sst(rankers, rng),
    })
}

fn published<const K: usize>(percent: &[[u8; K]; K]) -> PreferenceMatrix {
    let rows: Vec<Vec<f64>> =
        percent.iter().map(|row| row.iter().map(|&p| f64::from(p) / 100.0).collect()).collect();
    PreferenceMatrix::from_rows(&rows).expect("published matrices are valid")
}

fn btl(rankers: usize, rng: &mut PolicyRng) -> PreferenceMatrix {
    let weights: Vec<f64> = (0..rankers).map(|_| 1.0 - rng.random::<f64>()).collect();
    pairs(rankers, |i, j| weights[i] / (weights[i] + weights[j]))
}

fn hard(rankers: usize, gap: f64, rng: &mut PolicyRng) -> PreferenceMatrix {
    let winner = rng.random_range(0..rankers);
    pairs(rankers, |i, j| {
        if i == winner {
            0.5 + gap
        } else if j == winner {
            0.5 - gap
        } else {
            0.5
        }
    })
}

fn cycle(rankers: usize, rng: &mut PolicyRng) -> PreferenceMatrix {
    let ordered = pairs(rankers, |i, j| {
        let gap = rng.random_range(0.1..0.4);
        if (i, j) == (0, 2) { 0.5 - gap } else { 0.5 + gap }
    });
    shuffled(&ordered, rng)
}

/// Draws the gaps of neighbours first, then those of rankers further apart. The gap of `i` and `k`
/// lies between the largest gap inside (strong transitivity) and the smallest sum of two gaps that
/// join them (triangle inequality). The second is never below the first: `g[i][k-1] ≤ g[i][j] +
/// g[j][k-1] ≤ g[i][j] + g[j][k]`.
fn sst(rankers: usize, rng: &mut PolicyRng) -> PreferenceMatrix {
    let mut gap = vec![0.0_f64; rankers * rankers];
    for distance in 1..rankers {
        for i in 0..rankers - distance {
            let k = i + distance;
            let at = |a: usize, b: usize| gap[a * rankers + b];
            let drawn = if distance == 1 {
                rng.random_range(0.01..0.1)
            } else {
                let low = at(i, k - 1).max(at(i + 1, k));
                let high = (i + 1..k).map(|j| at(i, j) + at(j, k)).fold(0.45, f64::min);
                low + (high - low).max(0.0) * rng.random::<f64>()
            };
            gap[i * rankers + k] = drawn;
        }
    }
    shuffled(&pairs(rankers, |i, j| 0.5 + gap[i * rankers + j]), rng)
}

fn shuffled(matrix: &PreferenceMatrix, rng: &mut PolicyRng) -> PreferenceMatrix {
    let mut order: Vec<usize> = (0..matrix.rankers()).collect();
    order.shuffle(rng);
    matrix.restricted_to(&order).expect("a permutation of a valid matrix is valid")
}

fn pairs(rankers: usize, win: impl FnMut(usize, usize) -> f64) -> PreferenceMatrix {
    PreferenceMatrix::from_pairs(rankers, win).expect("built-in probabilities are valid")
}
