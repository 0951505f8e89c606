//! How well priors predict the outcomes of many pairs.
//!
//! A prior of a pair is `Beta(1 + λ p, 1 + λ (1 - p))`: `λ` pseudo-duels with the prediction `p`.
//! It gives the outcomes of the pair, `W` wins and `L` losses in a certain order, the probability
//!
//! `B(1 + λ p + W, 1 + λ (1 - p) + L) / B(1 + λ p, 1 + λ (1 - p))`.
//!
//! For whole `W` and `L` this is a product of `2 (W + L)` factors. With few outcomes that is much
//! faster than six logarithms of the gamma function, and has no smaller precision.

use crate::math::mixture::ln_beta;

/// Most outcomes of a pair whose probability is computed as a product.
const FEW: usize = 64;
/// A product below this is added to the sum of the logarithms. The smallest further factor is far
/// above `1e-200`, so that no product becomes 0.
const SMALL: f64 = 1e-100;

/// The logarithm of the probability of all outcomes so far, for each of `N` values of `λ`.
pub(super) struct PredictiveEvidence<const N: usize> {
    pseudo_duels: [f64; N],
    ln: [f64; N],
    /// Probabilities whose logarithms are not yet in `ln`.
    product: [f64; N],
    /// By number of outcomes `n`: 1 over the product of `2 + λ`, `3 + λ`, … with `n` factors.
    denominators: Vec<[f64; N]>,
}

impl<const N: usize> PredictiveEvidence<N> {
    /// No outcomes yet. The values of `λ` are at most 128.
    pub fn new(pseudo_duels: [f64; N]) -> Self {
        let mut denominators = vec![[1.0; N]];
        for n in 0..FEW {
            let mut next = denominators[n];
            for (product, pseudo_duels) in next.iter_mut().zip(pseudo_duels) {
                *product /= 2.0 + pseudo_duels + n as f64;
            }
            denominators.push(next);
        }
        Self { pseudo_duels, ln: [0.0; N], product: [1.0; N], denominators }
    }

    /// Add the outcomes of one pair, for which wins are predicted with probability `p`. Wins and
    /// losses may be halves.
    pub fn add(&mut self, p: f64, wins: f64, losses: f64) {
        let a = self.pseudo_duels.map(|pseudo_duels| 1.0 + pseudo_duels * p);
        let b = self.pseudo_duels.map(|pseudo_duels| 1.0 + pseudo_duels * (1.0 - p));
        let few = wins + losses <= FEW as f64;
        if !few || wins.fract() != 0.0 || losses.fract() != 0.0 {
            for (ln, (a, b)) in self.ln.iter_mut().zip(a.into_iter().zip(b)) {
                *ln += ln_beta(a + wins, b + losses) - ln_beta(a, b);
            }
            return;
        }
        let (wins, losses) = (wins as usize, losses as usize);
        let mut product = self.denominators[wins + losses];
        for (begin, count) in [(a, wins), (b, losses)] {
            for n in 0..count {
                for (product, begin) in product.iter_mut().zip(begin) {
                    *product *= begin + n as f64;
                }
            }
        }
        for ((all, ln), own) in self.product.iter_mut().zip(&mut self.ln).zip(product) {
            *all *= own;
            if *all < SMALL {
                *ln += libm::log(*all);
                *all = 1.0;
            }
        }
    }

    /// The logarithm of the probability of all outcomes, for each value of `λ`.
    pub fn ln(&self) -> [f64; N] {
        std::array::from_fn(|at| self.ln[at] + libm::log(self.product[at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_the_same_as_gamma_functions() {
        let pseudo_duels = [0.0, 2.0, 16.0, 128.0];
        let mut evidence = PredictiveEvidence::new(pseudo_duels);
        let mut expected = [0.0; 4];
        for n in 0..2000 {
            let (p, wins) = (f64::from(n % 97 + 1) / 98.0, f64::from(n % 65));
            let losses = f64::from(n % 7) + f64::from(n % 2) / 2.0;
            evidence.add(p, wins, losses);
            for (expected, pseudo_duels) in expected.iter_mut().zip(pseudo_duels) {
                let (a, b) = (1.0 + pseudo_duels * p, 1.0 + pseudo_duels * (1.0 - p));
                *expected += ln_beta(a + wins, b + losses) - ln_beta(a, b);
            }
        }
        for (found, expected) in evidence.ln().into_iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-12, "{found}, expected {expected}");
        }
    }
}
