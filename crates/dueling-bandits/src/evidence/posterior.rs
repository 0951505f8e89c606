//! Draws from the posterior of all pairs: `P[i][j] ~ Beta(1 + W, 1 + L)`, where `W` and `L` are the
//! wins and losses, and some pseudo-duels that the other pairs predict (`pooling`).
//!
//! Copeland scores depend only on the side of 1/2 of each `P[i][j]`. A draw is therefore one coin a
//! pair with the probability `Pr(P[i][j] > 1/2)`. The preferences themselves are drawn only for
//! Condorcet regret. The range of Copeland regret also holds the draws in which pairs that may be
//! exactly even count for neither ranker (`even_pairs`).

use std::sync::Arc;

use rand::RngExt;

use crate::beta_sampling::{theta_above_half, theta_of};
use crate::evidence::even_pairs::EvenPairs;
use crate::evidence::history::Checkpoint;
use crate::evidence::pooling::{Pooled, Pooling};
use crate::evidence::win_curves::WinCurves;
use crate::pairwise_sampling::{PairwiseSample, WinProbabilities};
use crate::preference::regret::Regret;
use crate::win_probability::{WinProbabilitySource, beta_nearly_above_half};
use crate::{PolicyRng, Roster, Tally};

/// Approximate number of pairs drawn over all draws.
const PAIRS: usize = 10_000_000;
/// Fewest and most draws. The fewest leave one outside a credible interval on either side.
const DRAWS: std::ops::RangeInclusive<usize> = 80..=4000;
/// Approximate number of win probabilities computed for one posterior, and the most sets of them.
/// Each set belongs to one draw of the predictions from the other pairs.
const WIN_PROBABILITIES: usize = 20_000;
const SETS_MAX: usize = 64;
/// Share of the draws outside a credible interval, on both sides together.
const OUTSIDE: f64 = 0.05;
/// Fewest draws with a Condorcet winner for an estimate of Condorcet regret.
const CONDORCET_DRAWS_MIN: usize = 80;

/// Mean and credible interval of a quantity over the draws.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// At most 2.5 % of the draws are below; never above the mean.
    pub low: f64,
    /// At most 2.5 % of the draws are above; never below the mean.
    pub high: f64,
}

impl Estimate {
    /// The estimate from draws in any order; zeros without draws.
    pub fn of(mut draws: Vec<f64>) -> Self {
        if draws.is_empty() {
            return Self::default();
        }
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        draws.sort_unstable_by(f64::total_cmp);
        let last = draws.len() - 1;
        let outside = (OUTSIDE / 2.0 * last as f64).floor() as usize;
        // a few extreme draws can move the mean of nearly equal ones beyond all others
        Self { mean, low: draws[outside].min(mean), high: draws[last - outside].max(mean) }
    }

    /// The same mean, with a range that also holds that of `other`.
    fn widened_by(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high), ..self }
    }
}

/// Each ranker's probability to be a winner.
#[derive(Debug, Clone, PartialEq)]
pub struct WinnerProbabilities {
    /// A Copeland winner, alone or with others.
    pub copeland: Vec<f64>,
    /// The same where several winners of a draw share it. The sum is 1.
    pub shared: Vec<f64>,
    /// The Condorcet winner. The sum is the probability that one exists.
    pub condorcet: Vec<f64>,
}

/// Cumulative regret over the draws. Ranges of Copeland regret hold both readings of a pair that
/// may be exactly even: that one of the two is better, and that none is.
#[derive(Debug, Clone, PartialEq)]
pub struct RegretDraws {
    /// Copeland regret of each series of appearances, in the order given.
    pub copeland: Vec<Estimate>,
    /// Copeland regret of one step with a uniformly random pair.
    pub uniform_step: Estimate,
    /// Share of the regret of uniform pairs that the last series did not have, over the draws in
    /// which uniform pairs have regret; `None` where there is no such draw.
    pub saved: Option<Estimate>,
    /// Share of the draws with a Condorcet winner.
    pub condorcet_probability: f64,
    /// Condorcet regret of the last series, and of one step with a uniformly random pair, over the
    /// draws with a Condorcet winner; `None` where these draws are too few.
    pub condorcet: Option<(Estimate, Estimate)>,
}

impl RegretDraws {
    /// The ranges of Copeland regret also hold those of `other`.
    fn widened_by(self, other: &Self) -> Self {
        let both = |(own, other): (Estimate, &Estimate)| own.widened_by(*other);
        Self {
            copeland: self.copeland.into_iter().zip(&other.copeland).map(both).collect(),
            uniform_step: both((self.uniform_step, &other.uniform_step)),
            saved: self.saved.map(|saved| both((saved, other.saved.as_ref().unwrap_or(&saved)))),
            ..self
        }
    }
}

/// Draws of Copeland regret.
struct CopelandDraws<'a> {
    /// The series of appearances.
    shown: &'a [&'a [u64]],
    /// Of each series.
    regret: Vec<Vec<f64>>,
    /// Of one step with a uniformly random pair.
    uniform: Vec<f64>,
    saved: Vec<f64>,
}

impl<'a> CopelandDraws<'a> {
    fn new(shown: &'a [&'a [u64]], draws: usize) -> Self {
        let regret = vec![Vec::with_capacity(draws); shown.len()];
        let [uniform, saved] = [(); 2].map(|()| Vec::with_capacity(draws));
        Self { shown, regret, uniform, saved }
    }

    fn add(&mut self, regret: &Regret) {
        for (sums, shown) in self.regret.iter_mut().zip(self.shown) {
            sums.push(regret.of_appearances(shown));
        }
        let uniform_step = regret.of_uniform_pairs(1);
        self.uniform.push(uniform_step);
        let Some(last) = self.shown.last() else { return };
        let steps = last.iter().sum::<u64>() as f64 / 2.0;
        if uniform_step * steps > 0.0 {
            self.saved.push(1.0 - regret.of_appearances(last) / (uniform_step * steps));
        }
    }

    fn estimates(self) -> RegretDraws {
        RegretDraws {
            copeland: self.regret.into_iter().map(Estimate::of).collect(),
            uniform_step: Estimate::of(self.uniform),
            saved: (!self.saved.is_empty()).then(|| Estimate::of(self.saved)),
            condorcet_probability: 0.0,
            condorcet: None,
        }
    }
}

/// The win probabilities under one draw of the predictions from the other pairs.
struct Predicted<'a> {
    pooled: &'a Pooled<'a>,
    tally: &'a Tally,
    curves: WinCurves,
}

impl WinProbabilitySource for Predicted<'_> {
    fn above_half(&self, i: usize, j: usize) -> f64 {
        let (wins, losses) = self.pooled.wins(self.tally, i, j);
        self.curves.exact(wins, losses)
    }

    fn nearly_above_half(&self, i: usize, j: usize) -> Option<f64> {
        let (wins, losses) = self.pooled.wins(self.tally, i, j);
        let on_a_curve = self.curves.nearly(self.tally.half_plays(i, j), wins);
        on_a_curve.or_else(|| beta_nearly_above_half(wins, losses))
    }
}

/// The posterior of the preference matrix after a tally.
///
/// ```
/// use dueling_bandits::evidence::Posterior;
/// use dueling_bandits::{Duel, Outcome, Tally, step_rng};
///
/// let mut tally = Tally::new(2);
/// tally.record_run(Duel::new(0, 1), Outcome::First, 30);
/// tally.record_run(Duel::new(0, 1), Outcome::Second, 12);
/// let posterior = Posterior::new(&tally);
/// let winners = posterior.winner_probabilities(Posterior::draws(2), &mut step_rng(1, 0));
/// assert!(winners.condorcet[0] > 0.98);
/// ```
#[derive(Debug)]
pub struct Posterior<'a> {
    tally: &'a Tally,
    roster: Roster,
    fit: Fit,
}

/// The prediction of the pairs of a tally from each other: the part of a [`Posterior`] without random
/// draws, which takes long to compute. Several posteriors of the same tally share it.
#[derive(Debug, Clone)]
pub struct Fit(Arc<Pooling>);

impl Fit {
    /// The fit to `tally`.
    pub fn to(tally: &Tally) -> Self {
        Self(Arc::new(Pooling::new(tally)))
    }
}

impl<'a> Posterior<'a> {
    /// The posterior after `tally`.
    pub fn new(tally: &'a Tally) -> Self {
        Self::among(tally, &Roster::new(tally.rankers()))
    }

    /// The posterior where only the active rankers of `roster` can win, and scores count only wins
    /// against them. The duels of the retired rankers still inform the predictions.
    pub fn among(tally: &'a Tally, roster: &Roster) -> Self {
        Self::with_fit(tally, roster, Fit::to(tally))
    }

    /// [`Posterior::among`] where the fit to `tally` is known.
    pub fn with_fit(tally: &'a Tally, roster: &Roster, fit: Fit) -> Self {
        Self { tally, roster: roster.clone(), fit }
    }

    /// A suitable number of draws for `rankers` rankers: the more pairs, the fewer draws.
    pub fn draws(rankers: usize) -> usize {
        let pairs = (rankers * (rankers - 1) / 2).max(1);
        (PAIRS / pairs).clamp(*DRAWS.start(), *DRAWS.end())
    }

    /// Call `look` with the predictions, the winners and the Copeland scores of each of `draws`
    /// draws.
    fn each_draw(
        &self,
        draws: usize,
        rng: &mut PolicyRng,
        mut look: impl FnMut(&Pooled<'_>, &PairwiseSample<'_>, &[u16], &mut PolicyRng),
    ) {
        let rankers = self.tally.rankers();
        let active = self.roster.active();
        let mut included = vec![0; PairwiseSample::padded_len(rankers)];
        active.iter().for_each(|&i| included[i] = 1);
        let retired: Vec<usize> = (0..rankers).filter(|&i| !self.roster.is_active(i)).collect();
        let mut scores = vec![0; PairwiseSample::padded_len(rankers)];
        let pairs = (rankers * (rankers - 1) / 2).max(1);
        let sets = (WIN_PROBABILITIES / pairs).clamp(1, SETS_MAX);
        for set in 0..sets {
            // evenly spread quantiles: with few sets, random ones would decide the result
            let pooled = self.fit.0.draw((set as f64 + 0.5) / sets as f64, rng);
            let curves = WinCurves::new(self.tally, pooled.pseudo_duels());
            let predicted = Predicted { pooled: &pooled, tally: self.tally, curves };
            let win_probabilities = WinProbabilities::new(rankers, &predicted);
            for _ in draws * set / sets..draws * (set + 1) / sets {
                scores.fill(0);
                let draw = PairwiseSample::new(&win_probabilities, &predicted, rng);
                // each pair is owned by the later of the two
                draw.score_against_earlier(active.iter().copied(), &included, &mut scores);
                for &i in &retired {
                    let wins = |&&j: &&usize| {
                        if i > j { draw.row(i).wins(j) } else { !draw.row(j).wins(i) }
                    };
                    scores[i] = active.iter().filter(wins).count() as u16;
                }
                look(&pooled, &draw, &scores[..rankers], rng);
            }
        }
    }

    /// Each ranker's probability to be a winner, from `draws` draws.
    pub fn winner_probabilities(&self, draws: usize, rng: &mut PolicyRng) -> WinnerProbabilities {
        let rankers = self.tally.rankers();
        let (mut copeland, mut condorcet) = (vec![0_u32; rankers], vec![0_u32; rankers]);
        let mut shared = vec![0.0; rankers];
        self.each_draw(draws, rng, |_, _, scores, _| {
            let active = self.roster.active();
            let best = active.iter().map(|&i| scores[i]).max().unwrap_or(0);
            let winners = || active.iter().filter(|&&i| scores[i] == best);
            let part = 1.0 / (winners().count() * draws) as f64;
            winners().for_each(|&i| {
                copeland[i] += 1;
                shared[i] += part;
            });
            if let Some(winner) = self.condorcet_winner(scores) {
                condorcet[winner] += 1;
            }
        });
        let share = |counts: Vec<u32>| {
            counts.into_iter().map(|count| f64::from(count) / draws as f64).collect()
        };
        WinnerProbabilities { copeland: share(copeland), shared, condorcet: share(condorcet) }
    }

    /// Copeland regret where the rankers have these scores.
    fn copeland_regret(&self, scores: &[u16]) -> Regret {
        let scores: Vec<usize> = scores.iter().map(|&score| score.into()).collect();
        Regret::from_copeland_scores_among(&scores, self.roster.active())
    }

    /// Condorcet regret with preferences of a draw in which `winner` beats every active ranker.
    fn condorcet_regret(&self, winner: usize, pooled: &Pooled<'_>, rng: &mut PolicyRng) -> Regret {
        let margin = |i: usize| {
            if i == winner {
                return 0.0;
            }
            let (wins, losses) = pooled.wins(self.tally, winner, i);
            match self.roster.is_active(i) {
                true => theta_above_half(wins, losses, rng) - 0.5,
                false => (theta_of(wins, losses, rng) - 0.5).max(0.0),
            }
        };
        let margins = (0..self.tally.rankers()).map(margin).collect();
        Regret::from_losses(margins).with_uniform_pairs_of(self.roster.active())
    }

    /// Estimated regret of each of `shown`, which are series of appearances: one count a ranker.
    pub fn regret(&self, shown: &[&[u64]], draws: usize, rng: &mut PolicyRng) -> RegretDraws {
        let mut even = EvenPairs::of(self.tally, &self.roster);
        let mut copeland = CopelandDraws::new(shown, draws);
        let mut with_even = (!even.is_empty()).then(|| CopelandDraws::new(shown, draws));
        let (mut condorcet, mut condorcet_uniform) = (Vec::new(), Vec::new());
        self.each_draw(draws, rng, |pooled, draw, scores, rng| {
            copeland.add(&self.copeland_regret(scores));
            if let Some(with_even) = &mut with_even {
                let fewer = even.fewer_scores(draw, &self.roster, scores);
                with_even.add(&self.copeland_regret(&fewer));
            }
            if let (Some(winner), Some(last)) = (self.condorcet_winner(scores), shown.last()) {
                let regret = self.condorcet_regret(winner, pooled, rng);
                condorcet.push(regret.of_appearances(last));
                condorcet_uniform.push(regret.of_uniform_pairs(1));
            }
        });
        let drawn = RegretDraws {
            condorcet_probability: condorcet.len() as f64 / draws as f64,
            condorcet: (condorcet.len() >= CONDORCET_DRAWS_MIN)
                .then(|| (Estimate::of(condorcet), Estimate::of(condorcet_uniform))),
            ..copeland.estimates()
        };
        match with_even {
            Some(with_even) => drawn.widened_by(&with_even.estimates()),
            None => drawn,
        }
    }

    /// One draw of the preferences: row-major, `P[i][j] = 1 - P[j][i]`, and 1/2 on the diagonal.
    pub fn preferences(&self, rng: &mut PolicyRng) -> Vec<f64> {
        let rankers = self.tally.rankers();
        let pooled = self.fit.0.draw(rng.random(), rng);
        let mut preferences = vec![0.5; rankers * rankers];
        for i in 1..rankers {
            for j in 0..i {
                let (wins, losses) = pooled.wins(self.tally, i, j);
                let theta = theta_of(wins, losses, rng);
                preferences[i * rankers + j] = theta;
                preferences[j * rankers + i] = 1.0 - theta;
            }
        }
        preferences
    }

    fn condorcet_winner(&self, scores: &[u16]) -> Option<usize> {
        let active = self.roster.active();
        active.iter().copied().find(|&i| usize::from(scores[i]) == active.len() - 1)
    }
}

/// The newest checkpoint with at least `least` steps, and a twentieth of all `steps`, after it;
/// `None` where there is no such checkpoint: the window then starts at the beginning.
pub fn window(checkpoints: &[Checkpoint], steps: u64, least: u64) -> Option<&Checkpoint> {
    let wanted = least.max(steps / 20);
    checkpoints.iter().rev().find(|checkpoint| steps - checkpoint.steps >= wanted)
}
