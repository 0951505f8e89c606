//! The evidence that one ranker of a pair beats the other by more than a margin: a one-sided
//! e-process per ordered pair. `docs/verdict-rule.md` has the proof.
//!
//! For the ordered pair (x, y) with `W` wins of `x` and `L` wins of `y`, the null hypothesis is
//! `P(x beats y) ≤ b` with `b = 1/2 - margin`. The e-process is a mixture of likelihood ratios
//! against `b`,
//!
//! `E(x≻y) = Σ_g w_g (p_g / b)^W ((1 - p_g) / (1 - b))^L`, with `p_g > b` and `Σ w_g = 1`.
//!
//! Half wins (ties under the rule `half`) are covered. The leads `p_g - b` lie on a geometric grid,
//! and one more is for rankers that lose nearly always. The weights are a log-normal density.

use crate::evidence::scores::{LEVELS, Levels, WEIGHTS};

/// Smallest lead of the grid.
const FIRST_LEAD: f64 = 0.004;
/// Ratio of two neighbouring leads.
const LEAD_RATIO: f64 = 1.45;
/// The grid ends below this lead.
const LEADS_BELOW: f64 = 0.49;
/// The lead beyond the grid, and its weight before normalising.
const LARGEST_LEAD: (f64, f64) = (0.485, 0.1);
/// Centre of the weights, as a lead over 1/2.
const CENTRE: f64 = 0.045;
/// Least centre of the weights: for null hypotheses above 1/2 it would be at 0 or below.
const LEAST_CENTRE: f64 = 0.02;
/// Standard deviation of the weights, of the logarithm of the lead.
const SPREAD: f64 = 1.1;
/// No alternative of the mixture is above this probability.
const HIGHEST: f64 = 0.995;
/// Terms whose logarithm lies further below the largest one do not change the sum.
const NEGLIGIBLE: f64 = -40.0;

/// One term of the mixture, in logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Term {
    weight: f64,
    win: f64,
    loss: f64,
}

/// The logarithms of a term's factors for a win and for a loss with each of the [`WEIGHTS`]. Apart
/// from [`Term`], because few experiments have scores.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ScoredTerm {
    win: [f64; LEVELS],
    loss: [f64; LEVELS],
}

impl From<&Term> for ScoredTerm {
    fn from(term: &Term) -> Self {
        let of = |ln: f64| WEIGHTS.map(|weight| libm::log1p(weight * libm::expm1(ln)));
        Self { win: of(term.win), loss: of(term.loss) }
    }
}

/// The mixture for one margin. Two of the same margin are equal.
#[derive(Debug, Clone, PartialEq)]
pub struct LeadEvidence {
    terms: Vec<Term>,
    scored: Vec<ScoredTerm>,
}

impl LeadEvidence {
    /// Evidence that the probability to win is above `1/2 - margin`; `margin` is in [-0.48, 0.49].
    pub fn over(margin: f64) -> Self {
        let null = 0.5 - margin;
        Self::of(null, (CENTRE + margin).max(LEAST_CENTRE), |lead| (null + lead).min(HIGHEST))
    }

    /// Evidence that the probability to win is above `null`, in (0, 1), where small leads matter and
    /// whose factors all fall in `null`. A lead is the share of half of what is left above it: each
    /// win has the factor `1 + 2 l (1 - null) / null`, and each loss `1 - 2 l`.
    pub fn in_room_above(null: f64) -> Self {
        Self::of(null, LEAST_CENTRE, |lead| null + 2.0 * lead * (1.0 - null))
    }

    /// With weights around `centre`, and the `alternative` of a lead.
    fn of(null: f64, centre: f64, alternative: impl Fn(f64) -> f64) -> Self {
        let grid = std::iter::successors(Some(FIRST_LEAD), |lead| Some(lead * LEAD_RATIO));
        let mut leads: Vec<(f64, f64)> = grid
            .take_while(|&lead| lead < LEADS_BELOW)
            .map(|lead| {
                let distance = libm::log(lead / centre) / SPREAD;
                (lead, libm::exp(-0.5 * distance * distance))
            })
            .collect();
        leads.push(LARGEST_LEAD);
        let total: f64 = leads.iter().map(|(_, weight)| weight).sum();
        let term = |(lead, weight): (f64, f64)| {
            let alternative = alternative(lead);
            Term {
                weight: libm::log(weight / total),
                win: libm::log(alternative / null),
                loss: libm::log((1.0 - alternative) / (1.0 - null)),
            }
        };
        let terms: Vec<Term> = leads.into_iter().map(term).collect();
        let scored = terms.iter().map(ScoredTerm::from).collect();
        Self { terms, scored }
    }

    /// `ln E` after this many wins and losses, which may be halves. The same on every machine.
    pub fn ln(&self, wins: f64, losses: f64) -> f64 {
        let exponent = |term: &Term| term.weight + wins * term.win + losses * term.loss;
        ln_sum(self.terms.iter().map(exponent))
    }

    /// The same with answers that count by their score, by weight.
    pub fn ln_with_scores(&self, wins: f64, losses: f64, won: &Levels, lost: &Levels) -> f64 {
        let sum = |counts: &Levels, of: &[f64; LEVELS]| {
            counts.iter().zip(of).map(|(&count, ln)| f64::from(count) * ln).sum::<f64>()
        };
        let exponent = |(term, scored): (&Term, &ScoredTerm)| {
            term.weight
                + wins * term.win
                + losses * term.loss
                + sum(won, &scored.win)
                + sum(lost, &scored.loss)
        };
        ln_sum(self.terms.iter().zip(&self.scored).map(exponent))
    }
}

/// The logarithm of a sum, from the logarithms of its terms.
fn ln_sum(exponents: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = exponents.clone().fold(f64::NEG_INFINITY, f64::max);
    let relative = exponents.map(|exponent| exponent - largest);
    let sum: f64 = relative.filter(|&rest| rest > NEGLIGIBLE).map(libm::exp).sum();
    largest + libm::log(sum)
}
