//! Coins that fall every way in turn: the exact distribution of what the very code that serves
//! pages can do.

use interleaving::Coins;
use num_rational::Ratio;

/// The probability of one way: an exact factor from fair coins and a rounded one from weighted
/// choices.
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

/// One way through all choices.
pub struct Branch {
    /// Which option was taken at each choice, and how many there are.
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
        assert_eq!(options, expected, "the same choices come the same way");
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
}

/// What `act` gives for every way the coins can fall, with its probability.
pub fn every_way<T>(mut act: impl FnMut(&mut Branch) -> T) -> Vec<(T, Probability)> {
    let mut results = Vec::new();
    let mut path = Vec::new();
    loop {
        let one = Probability { exact: Ratio::from_integer(1), rounded: 1.0 };
        let mut branch = Branch { path, at: 0, probability: one };
        results.push((act(&mut branch), branch.probability));
        path = branch.path;
        // the last choice that has another option
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
