//! An instance of the linear program, and its solution.

use super::parameters::{MAX_DEPTH, Optimized};
use super::program::{ROUNDING, distribution, sensitivity};

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

    /// Bytes that it takes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        let lists = self.lists.iter().map(|list| size_of_val(list) + list.capacity());
        size_of::<Self>() + size_of_val(&*self.probabilities) + lists.sum::<usize>()
    }
}

/// The beginning of a list that may be shown.
#[derive(Debug, Clone, Copy, Default)]
struct Prefix {
    labels: [u8; MAX_DEPTH as usize],
    /// For each side, one bit for each of its ranks.
    shown: [u16; 2],
}

impl Instance {
    /// The instance of two lists without repeats, cut to the depth, and the documents by label.
    pub fn of(left: &[u32], right: &[u32], parameters: Optimized) -> (Self, Vec<u32>) {
        let depth = parameters.depth.min(MAX_DEPTH) as usize;
        let [left, right] = [left, right].map(|list| &list[..depth.min(list.len())]);
        let mut documents = left.to_vec();
        let labels: Vec<u8> = right
            .iter()
            .map(|&document| {
                let known = documents.iter().position(|&other| other == document);
                let label = known.unwrap_or_else(|| {
                    documents.push(document);
                    documents.len() - 1
                });
                label as u8
            })
            .collect();
        let mut right_ranks = vec![0; documents.len()];
        for (rank, &label) in (1..).zip(&labels) {
            right_ranks[usize::from(label)] = rank;
        }
        (Self { left: left.len() as u8, right: labels, right_ranks, parameters }, documents)
    }

    /// Bytes that it takes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.right.capacity() + self.right_ranks.capacity()
    }

    /// Whether this instance stands for itself and for that of the exchanged lists. Both pairs then
    /// get the same plan, so that neither side gains from being called left.
    pub(super) fn stands_for(&self, exchanged: &Self) -> bool {
        (self.left, &self.right) <= (exchanged.left, &exchanged.right)
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

    /// The solution; `None` if there are too many lists or the solver fails. If the lists can be
    /// exchanged without a change of the instance, exchanging them mirrors the plan.
    pub fn solve(&self) -> Option<Plan> {
        let lists = self.prefixes()?;
        let length = self.length();
        let by_label: Vec<f64> =
            (0..self.right_ranks.len()).map(|l| self.credit(l as u8)).collect();
        let credit = |&label: &u8| by_label[usize::from(label)];
        let sensitivity = |list: &[u8]| sensitivity(list.iter().map(credit));
        let gain: Vec<f64> = lists.iter().map(|list| sensitivity(&list.labels[..length])).collect();
        let credits: Vec<Vec<f64>> = (0..length)
            .map(|at| lists.iter().map(|list| credit(&list.labels[at])).collect())
            .collect();
        let solution = distribution(&credits, &gain)?;
        let mut plan: Vec<(Vec<u8>, f64)> = solution
            .into_iter()
            .map(|(at, weight)| (lists[at].labels[..length].to_vec(), weight))
            .collect();
        if let Some(mirror) = self.mirror() {
            for (list, weight) in plan.clone() {
                let list = list.into_iter().map(|label| mirror[usize::from(label)]).collect();
                match plan.iter_mut().find(|(other, _)| *other == list) {
                    Some((_, other)) => *other += weight,
                    None => plan.push((list, weight)),
                }
            }
        }
        plan.retain(|(_, weight)| *weight > 1e-12);
        // The order must not depend on the steps of the solver.
        plan.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let total: f64 = plan.iter().map(|(_, weight)| weight).sum();
        let (lists, probabilities): (Vec<_>, Vec<_>) =
            plan.into_iter().map(|(list, weight)| (list, weight / total)).unzip();
        let mean = |value: &dyn Fn(&Vec<u8>) -> f64| -> f64 {
            lists.iter().zip(&probabilities).map(|(list, p)| p * value(list)).sum()
        };
        let bias = (0..length).map(|at| mean(&|list| credit(&list[at])).abs()).fold(0.0, f64::max);
        let sensitivity = mean(&|list| sensitivity(list));
        Some(Plan { lists, probabilities, bias, sensitivity })
    }

    /// Number of positions of a list.
    fn length(&self) -> usize {
        self.parameters.depth.min(MAX_DEPTH).min(self.right_ranks.len() as u32) as usize
    }

    /// By label: the label of the document with exchanged ranks, if each document has one.
    fn mirror(&self) -> Option<Vec<u8>> {
        let labels: Vec<u32> = (0..self.right_ranks.len() as u32).collect();
        let right: Vec<u32> = self.right.iter().map(|&label| label.into()).collect();
        let (exchanged, mirror) =
            Self::of(&right, &labels[..usize::from(self.left)], self.parameters);
        (exchanged == *self).then(|| mirror.into_iter().map(|label| label as u8).collect())
    }

    /// Every list whose documents are each the highest remaining one of either side. `None` if
    /// there are more than the parameters allow.
    pub fn allowed_lists(&self) -> Option<Vec<Vec<u8>>> {
        let length = self.length();
        Some(self.prefixes()?.iter().map(|list| list.labels[..length].to_vec()).collect())
    }

    fn prefixes(&self) -> Option<Vec<Prefix>> {
        let lengths = [self.left, self.right.len() as u8];
        let mut open = vec![Prefix::default()];
        for at in 0..self.length() {
            let mut longer = Vec::with_capacity(2 * open.len());
            for list in open {
                let next = [0, 1].map(|side| {
                    let rank = list.shown[side].trailing_ones() as u8;
                    (rank < lengths[side]).then_some(rank)
                });
                let labels = [next[0], next[1].map(|rank| self.right[usize::from(rank)])];
                let second = labels[1].filter(|_| labels[1] != labels[0]);
                longer.extend(
                    labels[0].into_iter().chain(second).map(|label| self.with(list, at, label)),
                );
            }
            if longer.len() > self.parameters.max_lists as usize {
                return None;
            }
            open = longer;
        }
        Some(open)
    }

    fn with(&self, mut list: Prefix, at: usize, label: u8) -> Prefix {
        list.labels[at] = label;
        if label < self.left {
            list.shown[0] |= 1 << label;
        }
        if let Some(rank) = self.right_ranks[usize::from(label)].checked_sub(1) {
            list.shown[1] |= 1 << rank;
        }
        list
    }
}
