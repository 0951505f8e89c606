//! The linear program over the lists that may be shown.

use std::collections::HashMap;

use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOptions};

use super::Optimized;

/// A mean credit of a position that is smaller is rounding.
const ROUNDING: f64 = 1e-7;

/// Two lists with their documents called by labels: those of the left list by their rank (from 0),
/// the others as they come on the right. Two pairs of lists that are permuted alike are one
/// question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Question {
    /// Length of the left list.
    left: u8,
    /// The right list.
    right: Vec<u8>,
    /// By label: rank on the right from 1, 0 where it is missing.
    right_ranks: Vec<u8>,
    /// What is optimized.
    parameters: Optimized,
}

/// A distribution over lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Labels of the lists that are shown at all.
    pub lists: Vec<Vec<u8>>,
    /// How often each is shown; adds up to 1.
    pub probabilities: Vec<f64>,
    /// The largest mean credit of a position, without its sign: 0 up to rounding where the program
    /// could be solved.
    pub bias: f64,
    /// How much a page is expected to tell, from 0 to 1 (`S` of the paper).
    pub sensitivity: f64,
}

impl Plan {
    /// Whether no distribution is free of bias.
    pub fn is_biased(&self) -> bool {
        self.bias > ROUNDING
    }
}

impl Question {
    /// The question of two lists, each without repeats and not longer than the depth, and the
    /// documents by label.
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

    /// What a click on a label is worth to the left.
    pub fn credit(&self, label: u8) -> f64 {
        let left = if label < self.left { label + 1 } else { self.left + 1 };
        let right = match self.right_ranks[usize::from(label)] {
            0 => self.right.len() as u8 + 1,
            rank => rank,
        };
        self.parameters.credit.of(u32::from(left), u32::from(right))
    }

    /// The answer; `None` where there are too many lists or the solver fails.
    ///
    /// Often several distributions are best. The mean of what the program answers to the question
    /// and to the question with its sides exchanged is best too, and treats both sides alike.
    pub fn solve(&self) -> Option<Plan> {
        let lists = self.allowed_lists(true)?;
        let position: HashMap<&[u8], usize> =
            lists.iter().enumerate().map(|(i, list)| (&list[..], i)).collect();
        let exchanged = self.allowed_lists(false)?;
        let weights = distribution(&lists, |label| self.credit(label))?;
        let mut probabilities = weights;
        for (list, weight) in
            exchanged.iter().zip(distribution(&exchanged, |label| -self.credit(label))?)
        {
            probabilities[position[&list[..]]] += weight;
        }
        let total: f64 = probabilities.iter().sum();
        let (lists, probabilities): (Vec<_>, Vec<_>) = lists
            .into_iter()
            .zip(probabilities.into_iter().map(|probability| probability / total))
            .filter(|(_, probability)| *probability > 1e-12)
            .unzip();
        let credits: Vec<Vec<f64>> = self.credits(&lists);
        let bias = mean_credits(&credits, &probabilities)
            .fold(0.0, |most, mean| f64::max(most, mean.abs()));
        let sensitivity =
            credits.iter().zip(&probabilities).map(|(credits, p)| p * sensitivity(credits)).sum();
        Some(Plan { lists, probabilities, bias, sensitivity })
    }

    fn credits(&self, lists: &[Vec<u8>]) -> Vec<Vec<f64>> {
        lists.iter().map(|list| list.iter().map(|&label| self.credit(label)).collect()).collect()
    }

    /// Every list whose next document is always the top remaining one of either side; those that go
    /// on with the left side first, or those that go on with the right side.
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

/// The mean credit of each position.
fn mean_credits<'a>(
    credits: &'a [Vec<f64>],
    probabilities: &'a [f64],
) -> impl Iterator<Item = f64> + 'a {
    let positions = credits.first().map_or(0, Vec::len);
    (0..positions)
        .map(move |k| credits.iter().zip(probabilities).map(|(credits, p)| p * credits[k]).sum())
}

/// How much a list tells of what a searcher prefers who looks at position `k` with a probability
/// proportional to `1/k`.
fn sensitivity(credits: &[f64]) -> f64 {
    let (mut left, mut right, mut all) = (0.0, 0.0, 0.0);
    for (k, &credit) in (1..).zip(credits) {
        let attention = 1.0 / f64::from(k);
        all += attention;
        if credit > 0.0 {
            left += attention;
        } else if credit < 0.0 {
            right += attention;
        }
    }
    let decided: f64 = left + right;
    if decided == 0.0 {
        return 0.0;
    }
    let bits = |share: f64| if share > 0.0 { -share * libm::log2(share) } else { 0.0 };
    decided / all * (bits(left / decided) + bits(right / decided))
}

/// How much bias is allowed at each position.
#[derive(Clone, Copy)]
enum Bias {
    None,
    AtMost(f64),
    /// As little as can be; sensitivity does not matter.
    Least,
}

/// The best distribution over `lists`; where none is free of bias, the best of those with the
/// least.
fn distribution(lists: &[Vec<u8>], credit: impl Fn(u8) -> f64) -> Option<Vec<f64>> {
    let credits: Vec<Vec<f64>> =
        lists.iter().map(|list| list.iter().map(|&label| credit(label)).collect()).collect();
    let largest_bias = |probabilities: &[f64]| {
        mean_credits(&credits, probabilities).fold(0.0, |most, mean| f64::max(most, mean.abs()))
    };
    if let [_] = lists {
        return Some(vec![1.0]);
    }
    let fair = optimum(&credits, Bias::None)
        .filter(|probabilities| largest_bias(probabilities) <= ROUNDING);
    fair.or_else(|| {
        let least = largest_bias(&optimum(&credits, Bias::Least)?);
        optimum(&credits, Bias::AtMost(least + 1e-9))
    })
}

fn optimum(credits: &[Vec<f64>], bias: Bias) -> Option<Vec<f64>> {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let weights: Vec<_> = credits
        .iter()
        .map(|credits| {
            let gain = if matches!(bias, Bias::Least) { 0.0 } else { sensitivity(credits) };
            problem.add_var(gain, (0.0, 1.0))
        })
        .collect();
    let slack = matches!(bias, Bias::Least).then(|| problem.add_var(-1.0, (0.0, f64::INFINITY)));
    problem.add_constraint(weights.iter().map(|&weight| (weight, 1.0)), ComparisonOp::Eq, 1.0);
    for k in 0..credits.first().map_or(0, Vec::len) {
        let row: Vec<_> = weights
            .iter()
            .zip(credits)
            .filter(|(_, credits)| credits[k] != 0.0)
            .map(|(&weight, credits)| (weight, credits[k]))
            .collect();
        if row.is_empty() {
            continue;
        }
        match (bias, slack) {
            (_, Some(slack)) => {
                let (mut above, mut below) = (row.clone(), row);
                above.push((slack, -1.0));
                below.push((slack, 1.0));
                problem.add_constraint(above, ComparisonOp::Le, 0.0);
                problem.add_constraint(below, ComparisonOp::Ge, 0.0);
            }
            (Bias::AtMost(most), None) => {
                problem.add_constraint(row.clone(), ComparisonOp::Le, most);
                problem.add_constraint(row, ComparisonOp::Ge, -most);
            }
            (_, None) => problem.add_constraint(row, ComparisonOp::Eq, 0.0),
        }
    }
    let mut options = SolveOptions::default();
    options.tolerances.feasibility = 1e-10;
    let solution = problem.solve_with(options).ok()?.into_solution().ok()?;
    let probabilities: Vec<f64> =
        weights.iter().map(|&weight| solution.var_value(weight).max(0.0)).collect();
    let total: f64 = probabilities.iter().sum();
    (total > 0.5)
        .then(|| probabilities.into_iter().map(|probability| probability / total).collect())
}
