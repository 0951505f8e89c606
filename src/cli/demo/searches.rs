//! What users do with a duel: nothing but decide, or read an interleaved page of judged documents
//! and click.

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
use lab::simulate::Watch;

/// Comparisons of each pair that make the truth which pages of documents are priced with.
pub const COMPARISONS: u64 = 2000;

/// One experiment on one server, and the truth about its rankers.
#[derive(Debug)]
pub struct Field {
    /// `http://ADDRESS/v1/experiments/NAME`.
    pub experiment_url: String,
    /// Ids of the rankers, in the order of the matrix.
    pub rankers: Vec<String>,
    /// The truth that pages are priced with.
    pub matrix: PreferenceMatrix,
    /// The documents that are searched; `None`: outcomes are drawn from the matrix.
    pub documents: Option<Documents>,
}

/// Judged documents, and users who click on them.
#[derive(Debug)]
pub struct Documents {
    /// Queries and what each feature makes of them.
    pub data: DataSet,
    /// The rankers: indices into the features of `data`.
    pub rankers: Vec<usize>,
    /// How pages are made and who clicks on them.
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
    /// Who beats whom for these users, by [`COMPARISONS`] pages of each pair.
    pub fn estimate(&self) -> anyhow::Result<PreferenceMatrix> {
        let plans = PlanCache::new(100_000);
        let comparing = Comparing { comparisons: COMPARISONS, ..self.comparing };
        let counts = compare_all(&self.data, &self.rankers, &comparing, &plans, &Watch::new())
            .context("the estimate was stopped")?;
        let k = self.rankers.len();
        let mut rows = vec![vec![0.5; k]; k];
        let pairs = (0..k).flat_map(|i| (i + 1..k).map(move |j| (i, j)));
        for ((i, j), count) in pairs.zip(&counts) {
            let (wins, _) = Entry::Half.of(count);
            rows[i][j] = wins;
            rows[j][i] = 1.0 - wins;
        }
        PreferenceMatrix::from_rows(&rows).context("the comparisons make no matrix")
    }

    /// What a user asks for: a query, and what two rankers find. The body of `interleave`.
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

    /// Read a page for a query and click: what is posted for it, one body or more, the last of
    /// which is final. Some users report all clicks at the end, others each at once.
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
            .context("the server shows a document that nobody has ranked")?;
        let mut positions = Vec::new();
        self.comparing.users.click(shown, rng, &mut positions);
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

impl Field {
    /// The NDCG of a ranker over all queries at the length of a page; `None` without documents.
    pub fn ndcg(&self, ranker: usize) -> Option<f64> {
        let documents = self.documents.as_ref()?;
        Some(documents.data.mean_ndcg(documents.rankers[ranker], documents.comparing.length))
    }
}
