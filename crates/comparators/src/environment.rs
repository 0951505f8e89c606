//! The searchers of a simulation: they answer duels with the probabilities of a preference matrix.

use std::borrow::Cow;

use rand::RngExt;
use rand::SeedableRng;
use rand::seq::SliceRandom;

use crate::RunSeeds;
use crate::feedback::Feedback;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Answer, Duel, PolicyRng};

/// The searchers of one run.
#[derive(Debug)]
pub struct Environment<'a> {
    matrix: Cow<'a, PreferenceMatrix>,
    feedback: &'a Feedback,
    /// `names[i]` is the index in the matrix of the policy's ranker `i`.
    names: Vec<usize>,
    /// The random numbers of the searchers.
    pub rng: PolicyRng,
}

impl<'a> Environment<'a> {
    /// The searchers of a run. The policy sees the rankers in the order of the matrix.
    pub fn new(matrix: &'a PreferenceMatrix, feedback: &'a Feedback, seeds: RunSeeds) -> Self {
        let names = (0..matrix.rankers()).collect();
        let matrix = Cow::Borrowed(matrix);
        Self { matrix, feedback, names, rng: PolicyRng::seed_from_u64(seeds.answering) }
    }

    /// The same with the rankers in random order, so that no policy benefits from the order of a
    /// matrix.
    pub fn shuffled(matrix: &'a PreferenceMatrix, feedback: &'a Feedback, seeds: RunSeeds) -> Self {
        let mut environment = Self::new(matrix, feedback, seeds);
        environment.names.shuffle(&mut PolicyRng::seed_from_u64(seeds.shuffling));
        environment
    }

    /// The index in the matrix of the policy's ranker `ranker`.
    pub fn name(&self, ranker: usize) -> usize {
        self.names[ranker]
    }

    /// From now on the searchers have these preferences.
    pub fn change(&mut self, matrix: PreferenceMatrix) {
        self.matrix = Cow::Owned(matrix);
    }

    /// The answer of a searcher to `duel`; `None` if it is lost.
    pub fn answer(&mut self, duel: Duel) -> Option<Answer> {
        self.answer_with(duel, None)
    }

    /// The same where the first ranker wins with this probability; `None` for that of the matrix.
    pub fn answer_with(&mut self, duel: Duel, first_wins: Option<f64>) -> Option<Answer> {
        // A probability of 0 draws no random number, which keeps the setting of the papers fast.
        if self.feedback.loss > 0.0 && self.happens(self.feedback.loss) {
            return None;
        }
        if self.feedback.no_click > 0.0 && self.happens(self.feedback.no_click) {
            return Some(Answer::None);
        }
        if self.feedback.ties > 0.0 && self.happens(self.feedback.ties) {
            return Some(Answer::Tie);
        }
        let [first, second] = [duel.first, duel.second].map(|ranker| self.names[ranker]);
        let win = first_wins.unwrap_or_else(|| self.matrix.win_probability(first, second));
        Some(if self.happens(win) { Answer::First } else { Answer::Second })
    }

    fn happens(&mut self, probability: f64) -> bool {
        self.rng.random::<f64>() < probability
    }
}
