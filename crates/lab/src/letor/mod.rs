//! Learning-to-rank data sets: queries with documents, which have feature values and a human grade.
//! Each feature is a ranker of the documents of each query.

mod parse;

use std::collections::BTreeSet;

use rand::seq::SliceRandom;

use dueling_bandits::PolicyRng;
use parse::Query;

/// Queries whose documents are ranked by features, highest value first.
#[derive(Debug, Clone)]
pub struct DataSet {
    /// The queries, in the order of the file.
    pub queries: Vec<RankedQuery>,
    /// Numbers of the features that distinguish documents, in ascending order. A ranker is an index
    /// into this list.
    pub features: Vec<u32>,
    /// Numbers of the features with the same value for all documents of every query. They do not
    /// rank anything.
    pub constant: Vec<u32>,
    /// Highest grade of a document.
    pub highest_grade: u8,
    /// Number of documents of all queries.
    pub documents: usize,
}

/// Why a data set cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DataSetError {
    /// A line is invalid. Lines are counted from 1.
    #[error("line {line}: {detail}")]
    Line { line: usize, detail: String },
    #[error("it has no documents")]
    Empty,
    /// It has fewer than two rankers.
    #[error("{0} of its features distinguish documents of a query; a comparison needs two")]
    Features(usize),
}

#[derive(Debug, Clone)]
pub struct RankedQuery {
    pub grades: Vec<u8>,
    rankings: Vec<Ranking>,
}

/// The documents of a query in the order of one feature.
#[derive(Debug, Clone)]
pub struct Ranking {
    /// Highest value first; equal values in the order of the file.
    order: Vec<u32>,
    /// Begin and end (exclusive) of each run of equal values, in ascending order, without runs of
    /// one document.
    ties: Vec<(u32, u32)>,
}

impl DataSet {
    /// The data set of a file with lines `grade qid:ID 1:value 2:value … # comment`, the LETOR
    /// variant of SVMlight.
    pub fn parse(text: &str) -> Result<Self, DataSetError> {
        let queries = parse::queries(text)?;
        let documents = queries.iter().map(|query| query.documents.len()).sum();
        if documents == 0 {
            return Err(DataSetError::Empty);
        }
        let all = || queries.iter().flat_map(|query| &query.documents);
        let numbers: BTreeSet<u32> = all()
            .flat_map(|document| document.features.iter().map(|&(number, _)| number))
            .collect();
        let highest_grade = all().map(|document| document.grade).max().unwrap_or(0);
        let distinguishes = |&number: &u32| {
            queries.iter().any(|query| {
                let first = query.documents[0].feature(number);
                query.documents.iter().any(|document| document.feature(number) != first)
            })
        };
        let (features, constant): (Vec<u32>, Vec<u32>) =
            numbers.into_iter().partition(distinguishes);
        if features.len() < 2 {
            return Err(DataSetError::Features(features.len()));
        }
        let queries = queries.iter().map(|query| RankedQuery::of(query, &features)).collect();
        Ok(Self { queries, features, constant, highest_grade, documents })
    }

    /// Mean NDCG of a ranker over all queries, with equal values in random order. A query without a
    /// relevant document counts as 0, as in the evaluation scripts of LETOR.
    pub fn mean_ndcg(&self, ranker: usize, depth: usize) -> f64 {
        let total: f64 = self.queries.iter().filter_map(|query| query.ndcg(ranker, depth)).sum();
        total / self.queries.len() as f64
    }
}

impl RankedQuery {
    fn of(query: &Query, features: &[u32]) -> Self {
        let grades = query.documents.iter().map(|document| document.grade).collect();
        let rankings = features
            .iter()
            .map(|&number| {
                let values: Vec<f64> =
                    query.documents.iter().map(|document| document.feature(number)).collect();
                Ranking::by(&values)
            })
            .collect();
        Self { grades, rankings }
    }

    pub fn ranking(&self, ranker: usize) -> &Ranking {
        &self.rankings[ranker]
    }

    /// Expected NDCG of a ranker with equal values in random order; `None` if no document is
    /// relevant.
    pub fn ndcg(&self, ranker: usize, depth: usize) -> Option<f64> {
        let ranking = &self.rankings[ranker];
        let mut gains: Vec<f64> =
            ranking.order.iter().map(|&document| gain(self.grades[document as usize])).collect();
        for &(begin, end) in &ranking.ties {
            let run = &mut gains[begin as usize..end as usize];
            let mean = run.iter().sum::<f64>() / run.len() as f64;
            run.fill(mean);
        }
        let mut ideal: Vec<f64> = self.grades.iter().map(|&grade| gain(grade)).collect();
        ideal.sort_unstable_by(|a, b| b.total_cmp(a));
        let best = discounted(&ideal, depth);
        (best > 0.0).then(|| discounted(&gains, depth) / best)
    }
}

impl Ranking {
    /// The documents `0..values.len()` by their finite values, highest first.
    pub fn by(values: &[f64]) -> Self {
        let mut order: Vec<u32> = (0..values.len() as u32).collect();
        let value = |document: u32| values[document as usize];
        // The sort is stable, and 0.0 equals -0.0.
        order
            .sort_by(|&a, &b| value(b).partial_cmp(&value(a)).unwrap_or(std::cmp::Ordering::Equal));
        let mut ties = Vec::new();
        let mut begin = 0;
        for end in 1..=order.len() {
            if end == order.len() || value(order[end]) != value(order[begin]) {
                if end - begin > 1 {
                    ties.push((begin as u32, end as u32));
                }
                begin = end;
            }
        }
        Self { order, ties }
    }

    /// Puts the best `depth` documents into `ranked`, with equal values in random order.
    pub fn draw(&self, depth: usize, rng: &mut PolicyRng, ranked: &mut Vec<u32>) {
        ranked.clear();
        ranked.extend_from_slice(&self.order);
        for &(begin, end) in self.ties.iter().take_while(|&&(begin, _)| (begin as usize) < depth) {
            ranked[begin as usize..end as usize].shuffle(rng);
        }
        ranked.truncate(depth);
    }
}

/// The gain of a document with this grade (Burges et al., 2005).
fn gain(grade: u8) -> f64 {
    libm::exp2(f64::from(grade)) - 1.0
}

/// The sum of the gains of the first `depth` documents of a ranking, discounted by rank (Järvelin
/// and Kekäläinen, 2002).
fn discounted(gains: &[f64], depth: usize) -> f64 {
    (1..).zip(gains).take(depth).map(|(rank, gain)| gain / libm::log2(f64::from(rank + 1))).sum()
}
