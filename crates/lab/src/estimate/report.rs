//! The result of the comparisons: the preference matrix, the standard error of each entry, and the
//! significant winner.

use std::fmt::Write as _;

use serde::Serialize;

use super::compare::PairCount;
use dueling_bandits::preference::{InvalidMatrix, PreferenceMatrix};

/// A gap of fewer standard errors than this is within noise.
pub const NOISE: f64 = 3.0;

/// How a matrix entry is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// (wins + undecided/2)/N: an undecided page is half a win for both
    Half,
    /// wins/(wins + losses), or 1/2: an undecided page does not count
    Skip,
    /// (1 + mean score)/2: only for --method probabilistic, whose scores are from -1 to 1
    Score,
}

/// The settings, which are sufficient to reproduce the numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// The file, as the user named it.
    pub file: String,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// The interleaving method with its parameters.
    pub method: String,
    /// The click model with its parameters.
    #[serde(rename = "users")]
    pub click_model: String,
    /// Number of slots of a page.
    pub length: usize,
    /// Number of comparisons of each pair.
    pub comparisons: u64,
    pub seed: u64,
    /// How an entry is computed.
    pub entry: Entry,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DataSummary {
    pub queries: usize,
    pub documents: usize,
    /// Number of grades: documents are judged `0..grades`.
    pub grades: usize,
    /// Features that do not rank anything, and are omitted.
    pub constant_features: Vec<u32>,
}

/// One ranker: the documents of a query in descending order of one feature.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankerSummary {
    pub feature: u32,
    /// Mean NDCG, cut at the length of a page. A query without a relevant document counts as 0.
    pub ndcg: f64,
    /// Number of rankers that it beats beyond noise.
    pub beats: usize,
    /// Number of rankers that beat it beyond noise.
    pub loses: usize,
    /// Number of rankers whose gap is within noise.
    pub within_noise: usize,
    /// Mean of its row, without its own entry.
    pub mean: f64,
    /// Smallest entry of its row.
    pub least: f64,
}

/// One pair, from the side of its first ranker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairSummary {
    pub features: [u32; 2],
    /// The matrix entry: the probability that the first ranker beats the second.
    pub preference: f64,
    /// The standard error of the entry.
    pub standard_error: f64,
    /// Whether it is within [`NOISE`] standard errors of 1/2.
    pub within_noise: bool,
    /// Its pages.
    #[serde(flatten)]
    pub count: PairCount,
}

/// Shares of all pages of all pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rates {
    /// Undecided pages: the sum of the following shares.
    pub undecided: f64,
    /// Pages with equal credit.
    pub ties: f64,
    /// Pages without clicks.
    pub no_click: f64,
    /// Pages with clicks but without a signal.
    pub no_signal: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub settings: Settings,
    pub data: DataSummary,
    pub rates: Rates,
    /// The feature that beats all others by the entries alone.
    pub condorcet_winner: Option<u32>,
    /// The feature that beats all others beyond noise.
    pub certain_condorcet_winner: Option<u32>,
    /// Number of pairs whose gap is within noise.
    pub pairs_within_noise: usize,
    /// The rankers, in the order of the matrix.
    pub rankers: Vec<RankerSummary>,
    /// The pairs `i < j`, row by row.
    pub pairs: Vec<PairSummary>,
    #[serde(skip)]
    matrix: PreferenceMatrix,
}

impl Entry {
    /// The entry of a pair and its standard error.
    pub fn of(self, count: &PairCount) -> (f64, f64) {
        let pages = count.comparisons() as f64;
        let (wins, losses) = (count.wins as f64, count.losses as f64);
        match self {
            Entry::Half => {
                let undecided = pages - wins - losses;
                let mean = (wins + undecided / 2.0) / pages;
                let square = (wins + undecided / 4.0) / pages;
                (mean, ((square - mean * mean).max(0.0) / pages).sqrt())
            }
            Entry::Skip if wins + losses == 0.0 => (0.5, 0.5),
            Entry::Skip => {
                let mean = wins / (wins + losses);
                (mean, (mean * (1.0 - mean) / (wins + losses)).sqrt())
            }
            Entry::Score => {
                let mean = count.score / pages;
                let variance = (count.score_squares / pages - mean * mean).max(0.0);
                ((1.0 + mean) / 2.0, (variance / pages).sqrt() / 2.0)
            }
        }
    }
}

impl PairSummary {
    fn of(features: [u32; 2], entry: Entry, count: &PairCount) -> Self {
        let (preference, standard_error) = entry.of(count);
        let within_noise = (preference - 0.5).abs() < NOISE * standard_error || preference == 0.5;
        Self { features, preference, standard_error, within_noise, count: *count }
    }
}

impl Rates {
    fn of(counts: &[PairCount]) -> Self {
        let pages: u64 = counts.iter().map(PairCount::comparisons).sum();
        let share = |part: fn(&PairCount) -> u64| {
            counts.iter().map(part).sum::<u64>() as f64 / pages as f64
        };
        Self {
            undecided: share(|c| c.ties + c.no_click + c.no_signal),
            ties: share(|c| c.ties),
            no_click: share(|c| c.no_click),
            no_signal: share(|c| c.no_signal),
        }
    }
}

impl Report {
    /// The report of `counts`, one for each pair of `features` as
    /// [`compare_all`](super::compare_all) returns them, and of the `ndcg` of each feature.
    pub fn new(
        settings: Settings,
        data: DataSummary,
        features: &[u32],
        ndcg: &[f64],
        counts: &[PairCount],
    ) -> Result<Self, InvalidMatrix> {
        let k = features.len();
        let named = (0..k).flat_map(|i| (i + 1..k).map(move |j| [features[i], features[j]]));
        let pairs: Vec<PairSummary> = named
            .zip(counts)
            .map(|(features, count)| PairSummary::of(features, settings.entry, count))
            .collect();
        // the pairs of all rows above row i come first
        let at = |i: usize, j: usize| &pairs[i * (2 * k - i - 1) / 2 + (j - i - 1)];
        let matrix = PreferenceMatrix::from_pairs(k, |i, j| at(i, j).preference)?;
        let within_noise = |i: usize, j: usize| at(i.min(j), i.max(j)).within_noise;
        let ranker = |i: usize| {
            let others = || (0..k).filter(move |&j| j != i);
            let clear = || others().filter(|&j| !within_noise(i, j));
            let row = || others().map(|j| matrix.win_probability(i, j));
            RankerSummary {
                feature: features[i],
                ndcg: ndcg[i],
                beats: clear().filter(|&j| matrix.beats(i, j)).count(),
                loses: clear().filter(|&j| matrix.beats(j, i)).count(),
                within_noise: others().filter(|&j| within_noise(i, j)).count(),
                mean: row().sum::<f64>() / (k - 1) as f64,
                least: row().fold(1.0, f64::min),
            }
        };
        let rankers: Vec<RankerSummary> = (0..k).map(ranker).collect();
        Ok(Self {
            rates: Rates::of(counts),
            condorcet_winner: matrix.condorcet_winner().map(|i| features[i]),
            certain_condorcet_winner: rankers.iter().find(|r| r.beats == k - 1).map(|r| r.feature),
            pairs_within_noise: pairs.iter().filter(|pair| pair.within_noise).count(),
            rankers,
            pairs,
            matrix,
            settings,
            data,
        })
    }

    /// The matrix in the format of [`PreferenceMatrix::load`], after comments with the settings.
    pub fn csv(&self) -> String {
        let settings = &self.settings;
        let features: Vec<String> =
            self.rankers.iter().map(|ranker| ranker.feature.to_string()).collect();
        let mut text = String::new();
        let entry = match settings.entry {
            Entry::Half => "(wins + undecided/2)/N",
            Entry::Skip => "wins/(wins + losses)",
            Entry::Score => "(1 + mean score)/2",
        };
        // A file name may contain line ends, which would end the comment.
        let file: String = settings.file.chars().filter(|c| !c.is_control()).collect();
        for (name, value) in [
            ("file", file),
            ("sha256", settings.sha256.clone()),
            ("method", settings.method.clone()),
            ("users", settings.click_model.clone()),
            ("length", settings.length.to_string()),
            ("comparisons", settings.comparisons.to_string()),
            ("seed", settings.seed.to_string()),
            ("entry", entry.to_string()),
            ("features", features.join(" ")),
        ] {
            let _ = writeln!(text, "# {name}: {value}");
        }
        for row in self.matrix.rows() {
            let row: Vec<String> = row.iter().map(f64::to_string).collect();
            let _ = writeln!(text, "{}", row.join(","));
        }
        text
    }

    pub fn table(&self) -> String {
        let Self { settings, data, rates, .. } = self;
        let mut text = format!(
            "{}: {} queries, {} documents, {} grades; SHA-256 {}\n",
            settings.file, data.queries, data.documents, data.grades, settings.sha256
        );
        let _ = writeln!(
            text,
            "{}, click model {}, pages of {}, {} comparisons of each of {} pairs, seed {}",
            settings.method,
            settings.click_model,
            settings.length,
            settings.comparisons,
            self.pairs.len(),
            settings.seed
        );
        if !data.constant_features.is_empty() {
            let list: Vec<String> = data.constant_features.iter().map(u32::to_string).collect();
            let _ = writeln!(
                text,
                "omitted, because they do not rank anything: features {}",
                list.join(", ")
            );
        }
        let _ = writeln!(
            text,
            "undecided {:.3} of all pages: ties {:.3}, no click {:.3}, clicks without signal {:.3}",
            rates.undecided, rates.ties, rates.no_click, rates.no_signal
        );
        let _ = writeln!(
            text,
            "\nfeature  ndcg@{:<3} beats  loses  within noise   mean  least",
            settings.length
        );
        let mut rankers: Vec<&RankerSummary> = self.rankers.iter().collect();
        rankers.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        for RankerSummary { feature, ndcg, beats, loses, within_noise, mean, least } in rankers {
            let _ = writeln!(
                text,
                "{feature:>7}  {ndcg:>8.3} {beats:>6} {loses:>6} {within_noise:>13}  {mean:.3}  {least:.3}"
            );
        }
        let _ = writeln!(
            text,
            "\n{} of {} gaps are within noise ({NOISE} standard errors)",
            self.pairs_within_noise,
            self.pairs.len()
        );
        let _ = match (self.certain_condorcet_winner, self.condorcet_winner) {
            (Some(winner), _) => writeln!(text, "Condorcet winner: feature {winner}"),
            (None, Some(winner)) => writeln!(
                text,
                "Condorcet winner: none beyond noise; by the entries alone, feature {winner}"
            ),
            (None, None) => writeln!(text, "Condorcet winner: none"),
        };
        text
    }
}
