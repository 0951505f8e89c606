//! Simulated pages: two rankings of a query, interleaved and clicked.

use rand::{RngExt, SeedableRng};
use sha2::{Digest, Sha256};

use crate::letor::DataSet;
use dueling_bandits::PolicyRng;
use interleaving::click_models::ClickModel;
use interleaving::{
    Click, Credit, CreditSheet, FastCoins, Lists, Method, Plans, Spec, credit, draft,
};

/// Where the pages of a simulation come from.
pub struct Pages<'a> {
    /// The queries and the rankers.
    pub data: &'a DataSet,
    pub method: Spec,
    pub click_model: ClickModel,
    /// Number of slots of a page.
    pub length: usize,
    /// The plans of optimized interleaving.
    pub plans: &'a dyn Plans,
    pub seed: u64,
}

/// A page that was shown. It is used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Page {
    left: Vec<u32>,
    right: Vec<u32>,
    /// The clicked positions, in the order of the clicks.
    clicked: Vec<usize>,
    sheet: Option<CreditSheet>,
}

impl Pages<'_> {
    /// Shows a random query to a user, with the rankings of both rankers (indices into the features
    /// of the data set).
    pub(super) fn show(
        &self,
        (first, second): (usize, usize),
        rng: &mut PolicyRng,
        page: &mut Page,
    ) {
        // Only probabilistic interleaving can show documents from below the end of the page.
        let depth = match self.method.method {
            Method::Probabilistic(_) => usize::MAX,
            _ => self.length,
        };
        let query = &self.data.queries[rng.random_range(0..self.data.queries.len())];
        query.ranking(first).draw(depth, rng, &mut page.left);
        query.ranking(second).draw(depth, rng, &mut page.right);
        let documents = query.grades.len();
        let lists = Lists::new(&page.left, &page.right, documents, self.method.depth_policy);
        let shown = draft(&self.method, &lists, self.length, &mut FastCoins(rng), self.plans);
        let grades = shown.slots.iter().map(|slot| query.grades[slot.document as usize]);
        self.click_model.click(grades, rng, &mut page.clicked);
        page.sheet = Some(CreditSheet::of(&self.method, &lists, &shown));
    }

    /// The credit of the clicks on a page that was shown. `None` never happens: a click model only
    /// clicks positions that are shown.
    pub(super) fn credit(&self, page: &Page, rng: &mut PolicyRng) -> Option<Credit> {
        let clicks: Vec<Click> = page.clicked.iter().copied().map(Click::at).collect();
        credit(&self.method, page.sheet.as_ref()?, &clicks, &mut FastCoins(rng)).ok()
    }

    /// The generator of a part of the work with two features.
    pub(super) fn generator(&self, features: [u32; 2], part: u64) -> PolicyRng {
        let mut hash = Sha256::new();
        hash.update(self.seed.to_le_bytes());
        features.iter().for_each(|feature| hash.update(feature.to_le_bytes()));
        hash.update(part.to_le_bytes());
        PolicyRng::from_seed(hash.finalize().into())
    }
}
