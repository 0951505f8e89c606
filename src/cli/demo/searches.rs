//! Simulated searchers. They answer a duel by the preference matrix, or by clicks on an interleaved
//! page of documents with relevance grades.

use anyhow::Context as _;
use rand::RngExt;
use serde::Deserialize;
use serde_json::{Value, json};

use dueling_bandits::PolicyRng;
use dueling_bandits::preference::PreferenceMatrix;
use interleaving::PlanCache;
use lab::estimate::report::Entry;
use lab::estimate::{Comparing, compare_all};
use lab::letor::DataSet;
use lab::simulate::Progress;

/// Number of comparisons of each pair for the true preferences on documents.
pub const COMPARISONS: u64 = 2000;

/// One experiment on one server, with the true preferences of its searchers.
#[derive(Debug)]
pub struct World {
    /// `http://ADDRESS/v1/experiments/NAME`.
    pub experiment_url: String,
    /// The ids of the rankers, in the order of the matrix.
    pub rankers: Vec<String>,
    /// The true preferences.
    pub matrix: PreferenceMatrix,
    /// The documents to search. If `None`, outcomes are drawn from the matrix.
    pub documents: Option<Documents>,
}

/// Documents with relevance grades, and the click model of the searchers.
#[derive(Debug)]
pub struct Documents {
    /// The queries, and the ranking of each feature.
    pub data: DataSet,
    /// The rankers: indices into the features of `data`.
    pub rankers: Vec<usize>,
    /// The interleaving method and the click model.
    pub comparing: Comparing,
}

/// A page of the server.
#[derive(Debug, Deserialize)]
pub struct Page {
    duel_id: String,
    slots: Vec<Slot>,
}

#[derive(Debug, Deserialize)]
struct Slot {
    document: String,
    token: String,
}

impl Documents {
    /// Estimates the true preferences of these searchers from [`COMPARISONS`] pages of each pair.
    pub fn estimate(&self) -> anyhow::Result<PreferenceMatrix> {
        let plans = PlanCache::new(100_000);
        let comparing = Comparing { comparisons: COMPARISONS, ..self.comparing };
        let counts = compare_all(&self.data, &self.rankers, &comparing, &plans, &Progress::new())
            .context("the estimate was stopped")?;
        let k = self.rankers.len();
        let mut rows = vec![vec![0.5; k]; k];
        let pairs = (0..k).flat_map(|i| (i + 1..k).map(move |j| (i, j)));
        for ((i, j), count) in pairs.zip(&counts) {
            let (wins, _) = Entry::Half.of(count);
            rows[i][j] = wins;
            rows[j][i] = 1.0 - wins;
        }
        PreferenceMatrix::from_rows(&rows).context("the comparisons do not give a valid matrix")
    }

    /// A search: a query, and the body of `interleave` with the rankings of two rankers.
    pub fn search(
        &self,
        duel_id: &str,
        left: usize,
        right: usize,
        rng: &mut PolicyRng,
    ) -> (usize, Value) {
        let query = rng.random_range(0..self.data.queries.len());
        let mut ranking = |ranker: usize| {
            let mut ranked = Vec::new();
            self.data.queries[query].ranking(self.rankers[ranker]).draw(
                usize::MAX,
                rng,
                &mut ranked,
            );
            ranked.iter().map(u32::to_string).collect::<Vec<_>>()
        };
        let (left, right) = (ranking(left), ranking(right));
        let length = self.comparing.length;
        (query, json!({"duel_id": duel_id, "left": left, "right": right, "length": length}))
    }

    /// Simulates the clicks on a page. Returns the bodies of the feedback requests; the last one is
    /// final. Some searchers send all clicks in one request, others send each click in its own.
    pub fn read(
        &self,
        query: usize,
        page: &Page,
        rng: &mut PolicyRng,
    ) -> anyhow::Result<Vec<Value>> {
        let grades = &self.data.queries[query].grades;
        let shown = page
            .slots
            .iter()
            .map(|slot| {
                slot.document.parse().ok().and_then(|document: usize| grades.get(document).copied())
            })
            .collect::<Option<Vec<u8>>>()
            .context("the server shows an unknown document")?;
        let mut positions = Vec::new();
        self.comparing.click_model.click(shown, rng, &mut positions);
        let at_once = rng.random::<bool>();
        let mut clicks: Vec<Value> = positions
            .iter()
            .map(|&position| match rng.random_range(0..3) {
                0 => json!(position),
                1 => json!(page.slots[position].document),
                _ => json!({"slot": page.slots[position].token}),
            })
            .collect();
        let mut bodies = Vec::new();
        if at_once && clicks.len() > 1 {
            let last = clicks.split_off(clicks.len() - 1);
            bodies = clicks
                .into_iter()
                .map(|click| json!({"duel_id": page.duel_id, "clicks": [click], "final": false}))
                .collect();
            clicks = last;
        }
        bodies.push(json!({"duel_id": page.duel_id, "clicks": clicks}));
        Ok(bodies)
    }
}

impl World {
    /// The NDCG of a ranker over all queries, cut at the length of a page; `None` without
    /// documents.
    pub fn ndcg(&self, ranker: usize) -> Option<f64> {
        let documents = self.documents.as_ref()?;
        Some(documents.data.mean_ndcg(documents.rankers[ranker], documents.comparing.length))
    }
}
