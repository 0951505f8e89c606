//! Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002; gain `2^grade - 1`,
//! discount `log2(rank + 1)` as in Burges et al., 2005).

/// The gain of a document with this grade.
pub fn gain(grade: u8) -> f64 {
    libm::exp2(f64::from(grade)) - 1.0
}

/// The discounted sum of the gains of the first `depth` documents, in the order of the ranking.
pub fn discounted(gains: &[f64], depth: usize) -> f64 {
    (1..).zip(gains).take(depth).map(|(rank, gain)| gain / libm::log2(f64::from(rank + 1))).sum()
}

/// NDCG of a ranking cut at `depth`. `ranked` has the grades of all documents of a query in the
/// order of the ranking. The result is `None` if no document is relevant, because all rankings are
/// equally good then.
pub fn ndcg(ranked: &[u8], depth: usize) -> Option<f64> {
    let gains: Vec<f64> = ranked.iter().map(|&grade| gain(grade)).collect();
    let mut ideal = gains.clone();
    ideal.sort_unstable_by(|a, b| b.total_cmp(a));
    let best = discounted(&ideal, depth);
    (best > 0.0).then(|| discounted(&gains, depth) / best)
}
