//! Coins that take every branch in turn: they give the exact distribution of the results of the
//! same code that serves pages.

use interleaving::{Coins, Outcome, Share};
use num_rational::Ratio;

/// The probability of one branch: an exact factor from fair coins, and a rounded factor from
/// weighted choices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probability {
    pub exact: Ratio<i64>,
    pub rounded: f64,
}

impl Probability {
    pub fn value(self) -> f64 {
        *self.exact.numer() as f64 / *self.exact.denom() as f64 * self.rounded
    }
}

/// One path through all choices.
pub struct Branch {
    /// The option taken at each choice, and the number of options.
    path: Vec<(usize, usize)>,
    at: usize,
    probability: Probability,
}

impl Branch {
    fn take(&mut self, options: usize) -> usize {
        if self.at == self.path.len() {
            self.path.push((0, options));
        }
        let (taken, expected) = self.path[self.at];
        assert_eq!(options, expected, "the choices are deterministic");
        self.at += 1;
        taken
    }
}

impl Coins for Branch {
    fn left(&mut self) -> bool {
        self.probability.exact /= 2;
        self.take(2) == 0
    }

    fn choose(&mut self, weights: &[f64]) -> usize {
        let possible: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
        let index = possible[self.take(possible.len())];
        self.probability.rounded *= weights[index] / weights.iter().sum::<f64>();
        index
    }

    fn happens(&mut self, numerator: u32) -> bool {
        let rest = Share::ONE - numerator;
        let options: Vec<(bool, u32)> =
            [(true, numerator), (false, rest)].into_iter().filter(|(_, n)| *n > 0).collect();
        let (taken, numerator) = options[self.take(options.len())];
        self.probability.exact *= Ratio::new(i64::from(numerator), i64::from(Share::ONE));
        taken
    }
}

/// The result of `act` for every sequence of coins, with its probability.
pub fn every_branch<T>(mut act: impl FnMut(&mut Branch) -> T) -> Vec<(T, Probability)> {
    let mut results = Vec::new();
    let mut path = Vec::new();
    loop {
        let one = Probability { exact: Ratio::from_integer(1), rounded: 1.0 };
        let mut branch = Branch { path, at: 0, probability: one };
        results.push((act(&mut branch), branch.probability));
        path = branch.path;
        // Go back to the last choice with an untried option.
        while let Some((taken, options)) = path.pop() {
            if taken + 1 < options {
                path.push((taken + 1, options));
                break;
            }
        }
        if path.is_empty() {
            return results;
        }
    }
}

/// The name of an outcome in the vectors.
pub fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Left => "left",
        Outcome::Right => "right",
        Outcome::Tie => "tie",
        Outcome::None => "none",
    }
}
