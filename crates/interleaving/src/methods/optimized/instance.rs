//! An instance of the linear program, and its solution.

use std::collections::HashMap;

use super::parameters::Optimized;
use super::program::{ROUNDING, distribution, largest_bias, sensitivity};

/// Two lists whose documents are replaced by labels. A document of the left list has its rank there
/// (from 0) as its label; the other documents are labelled in the order of the right list. Two
/// pairs of lists with the same permutation are the same instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Instance {
    /// Length of the left list.
    left: u8,
    /// The right list.
    right: Vec<u8>,
    /// By label: rank on the right from 1, 0 where it is missing.
    right_ranks: Vec<u8>,
    parameters: Optimized,
}

/// A distribution over lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The lists with a positive probability, as labels.
    pub lists: Vec<Vec<u8>>,
    /// The probability of each list; the sum is 1.
    pub probabilities: Vec<f64>,
    /// The largest absolute mean credit of a position: 0 up to rounding if the program has an
    /// unbiased solution.
    pub bias: f64,
    /// The expected sensitivity of a page, from 0 to 1 (`S` of the paper).
    pub sensitivity: f64,
}

impl Plan {
    /// Whether no distribution is unbiased.
    pub fn is_biased(&self) -> bool {
        self.bias > ROUNDING
    }
}

impl Instance {
    /// The instance of two lists, and the documents by label. The lists have no repeats and are not
    /// longer than the depth.
    pub fn of(left: &[u32], right: &[u32], parameters: Optimized) -> (Self, Vec<u32>) {
        let mut documents = left.to_vec();
        let labels: Vec<u8> = right
            .iter()
            .map(|&document| {
                let known = documents.iter().position(|&other| other == document);
                let label = known.unwrap_or_else(|| {
                    documents.push(document);
                    documents.len() - 1
                });
                u8::try_from(label).unwrap_or(u8::MAX)
            })
            .collect();
        let mut right_ranks = vec![0; documents.len()];
        for (rank, &label) in (1..).zip(&labels) {
            right_ranks[usize::from(label)] = rank;
        }
        let left = u8::try_from(left.len()).unwrap_or(u8::MAX);
        (Self { left, right: labels, right_ranks, parameters }, documents)
    }

    /// The credit of a click on a label in favour of the left.
    pub fn credit(&self, label: u8) -> f64 {
        let left = if label < self.left { label + 1 } else { self.left + 1 };
        let right = match self.right_ranks[usize::from(label)] {
            0 => self.right.len() as u8 + 1,
            rank => rank,
        };
        self.parameters.credit.of(u32::from(left), u32::from(right))
    }

    /// The solution; `None` if there are too many lists or the solver fails.
    ///
    /// Often several distributions are optimal. The result is the mean of the solution of this
    /// instance and the solution of the instance with exchanged sides. This mean is optimal too,
    /// and it treats both sides alike.
    pub fn solve(&self) -> Option<Plan> {
        let lists = self.allowed_lists(true)?;
        let position: HashMap<&[u8], usize> =
            lists.iter().enumerate().map(|(i, list)| (&list[..], i)).collect();
        let exchanged = self.allowed_lists(false)?;
        let mut probabilities = distribution(&self.credits(&lists, 1.0))?;
        for (list, weight) in exchanged.iter().zip(distribution(&self.credits(&exchanged, -1.0))?) {
            probabilities[position[&list[..]]] += weight;
        }
        let total: f64 = probabilities.iter().sum();
        let (lists, probabilities): (Vec<_>, Vec<_>) = lists
            .into_iter()
            .zip(probabilities.into_iter().map(|probability| probability / total))
            .filter(|(_, probability)| *probability > 1e-12)
            .unzip();
        let credits = self.credits(&lists, 1.0);
        let bias = largest_bias(&credits, &probabilities);
        let sensitivity =
            credits.iter().zip(&probabilities).map(|(credits, p)| p * sensitivity(credits)).sum();
        Some(Plan { lists, probabilities, bias, sensitivity })
    }

    /// The credit of each position of each list, times `sign`.
    fn credits(&self, lists: &[Vec<u8>], sign: f64) -> Vec<Vec<f64>> {
        let credit = |&label: &u8| sign * self.credit(label);
        lists.iter().map(|list| list.iter().map(credit).collect()).collect()
    }

    /// Every list whose documents are each the highest remaining one of either side. The lists that
    /// continue with the left side come first, or those that continue with the right side. `None`
    /// if there are more than the parameters allow.
    pub fn allowed_lists(&self, left_first: bool) -> Option<Vec<Vec<u8>>> {
        let length = (self.parameters.depth as usize).min(self.right_ranks.len());
        let mut open = vec![Vec::with_capacity(length)];
        for _ in 0..length {
            let mut longer = Vec::with_capacity(2 * open.len());
            for list in open {
                let left = (0..self.left).find(|label| !list.contains(label));
                let right = self.right.iter().copied().find(|label| !list.contains(label));
                let (first, second) = if left_first { (left, right) } else { (right, left) };
                let extended = |label: u8| [&list[..], &[label]].concat();
                longer.extend(first.map(extended));
                longer.extend(second.filter(|_| second != first).map(extended));
            }
            if longer.len() > self.parameters.max_lists as usize {
                return None;
            }
            open = longer;
        }
        Some(open)
    }
}
