//! Phase 1: the first candidate. D-TS and D-TS+ differ here alone.

use smallvec::SmallVec;

use crate::beta_sampling::theta_given_side;
use crate::math::divergence;
use crate::pairwise_sampling::PairwiseSample;
use crate::policies::choose;
use crate::policies::double_thompson::sampler::{Sampler, Ties};
use crate::{Bandit as _, MAX_RANKERS, PolicyRng};

/// From this many candidates on, their pairs with other rankers are drawn in SIMD batches: as many
/// pairs at once as a register holds.
const MANY_CANDIDATES: usize = 16;

impl Sampler {
    /// Steps 1-3 of the papers, with score arrays of length `N`.
    pub(super) fn first_candidate<const N: usize>(&self, rng: &mut PolicyRng) -> usize {
        let active = self.bounds.active();
        // step 1: the largest optimistic Copeland score belongs to the fewest certain losses
        let least = self.bounds.least_losses();
        let is_candidate = |i: usize| self.bounds.certain_losses(i) == least;
        let candidates = || active.iter().copied().filter(|&i| is_candidate(i));
        // counting ends at `MANY_CANDIDATES`
        let number = candidates().take(MANY_CANDIDATES).count();
        if number <= 1 {
            return candidates().next().unwrap_or(active[0]);
        }
        let draw = PairwiseSample::new(&self.win_probabilities, self.tally(), rng);
        let (mut score, mut counted) = ([0; N], [0; N]);
        active.iter().for_each(|&i| counted[i] = 1);

        // step 2, for the pairs with at least one candidate. The owner of a pair draws its winner.
        // Of two candidates, the later one owns the pair. If candidates are few, a candidate owns
        // its pairs with other rankers. If they are many, SIMD batches are faster: then the later
        // ranker owns every pair.
        let outsiders: SmallVec<[u16; MAX_RANKERS]> =
            active.iter().filter(|&&i| !is_candidate(i)).map(|&i| i as u16).collect();
        let all_outsiders = || outsiders.iter().map(|&i| usize::from(i));
        let many = number == MANY_CANDIDATES;
        draw.score_against_earlier(candidates(), &counted, &mut score);
        if many {
            all_outsiders().for_each(|i| counted[i] = 0);
            draw.score_against_earlier(all_outsiders(), &counted, &mut score);
            all_outsiders().for_each(|i| counted[i] = 1);
        } else {
            for i in candidates() {
                let row = draw.row(i);
                for j in all_outsiders().rev().take_while(|&j| j > i) {
                    score[if row.wins(j) { i } else { j }] += 1;
                }
            }
        }

        // step 3
        let most = candidates().map(|i| score[i]).max().unwrap_or(0);
        let tied = || candidates().filter(|&i| score[i] == most);
        if self.ties == Ties::AtRandom || tied().nth(1).is_none() {
            return choose::uniform(tied(), rng).unwrap_or(active[0]);
        }

        // D-TS+ prices the ties with the sampled scores of all rankers: step 2 for the other pairs
        let mut score_of_all = score;
        candidates().for_each(|i| counted[i] = 0);
        draw.score_against_earlier(all_outsiders(), &counted, &mut score_of_all);
        let i_owns = |i: usize, j: usize| i > j || !(many || is_candidate(j));
        let prices = tied().map(|i| (i, -self.sampled_price(i, &score_of_all, draw, i_owns)));
        choose::argmax(prices, rng).unwrap_or(active[0])
    }

    /// The cost of settling all pairs of `i`: `Σ_j r̃[i][j] / d(θ[i][j], 1/2)` over the sampled
    /// preferences, in units of `1 / (2 (K-1))`. The unit does not change the order.
    fn sampled_price(
        &self,
        i: usize,
        scores: &[u16],
        draw: PairwiseSample,
        i_owns: impl Fn(usize, usize) -> bool,
    ) -> f64 {
        let active = self.bounds.active();
        let highest = active.iter().map(|&i| scores[i]).max().unwrap_or(0);
        let own = draw.row(i);
        let terms = active.iter().filter(|&&j| j != i).map(|&j| {
            let above = if i_owns(i, j) { own.wins(j) } else { !draw.row(j).wins(i) };
            // use the generator of the pair, so that θ[i][j] = 1 - θ[j][i] when both are tied
            let theta = if i < j {
                theta_given_side(self.tally(), i, j, above, &mut draw.pair_rng(i, j))
            } else {
                theta_given_side(self.tally(), j, i, !above, &mut draw.pair_rng(i, j))
            };
            let regret = f64::from(2 * highest - scores[i] - scores[j]);
            let divergence = divergence::from_half(theta);
            if divergence > 0.0 { regret / divergence } else { 0.0 }
        });
        terms.sum()
    }
}
