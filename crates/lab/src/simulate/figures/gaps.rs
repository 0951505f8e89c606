//! Figures of what decides the regret of CCB and SCB, over random subsets of the rankers of a
//! matrix: the number of Copeland winners `C`, the losses of a winner `L_C`, and `Δ²/Δ_min²`.

use std::collections::BTreeMap;

use super::regret::RegretFigure;
use super::subsets;
use crate::simulate::progress::Progress;
use crate::simulate::report::{Point, Report, is_power_of_ten};
use dueling_bandits::preference::{CopelandHardness, PreferenceMatrix, RegretKind};

/// The subsets of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Gaps {
    /// Number of rankers in each subset.
    pub size: usize,
    /// How many subsets have each `C`.
    pub winners: BTreeMap<usize, u64>,
    /// How many subsets have each `L_C`.
    pub losses: BTreeMap<usize, u64>,
    /// Mean of `Δ²/Δ_min²` over the subsets that have it: in which some ranker is no Copeland
    /// winner.
    pub advantage: Option<Point>,
    /// The number of these subsets.
    pub with_advantage: u64,
}

/// The quantities of `subsets` random subsets of each of `sizes`, in the current rayon pool. Sizes
/// below 2 have none. Omits sizes that were not finished when `progress` was stopped.
pub fn measure(
    matrix: &PreferenceMatrix,
    sizes: &[usize],
    subsets: u64,
    seed: u64,
    progress: &Progress,
) -> Vec<Gaps> {
    let sizes: Vec<usize> = sizes.iter().copied().filter(|&size| size >= 2).collect();
    let of = |chosen: &[usize]| {
        let among = matrix.restricted_to(chosen).expect("at least two of its rankers");
        let found = CopelandHardness::of(&among);
        (found.winners, found.most_losses, found.advantage())
    };
    let found = subsets::of_each(matrix.rankers(), &sizes, subsets, seed, progress, of);
    found.into_iter().map(|(size, found)| Gaps::of(size, &found)).collect()
}

impl Gaps {
    fn of(size: usize, found: &[(usize, usize, Option<f64>)]) -> Self {
        let (mut winners, mut losses) = (BTreeMap::new(), BTreeMap::new());
        for (c, l, _) in found {
            *winners.entry(*c).or_insert(0) += 1;
            *losses.entry(*l).or_insert(0) += 1;
        }
        let advantages: Vec<f64> = found.iter().filter_map(|of| of.2).collect();
        let with_advantage = advantages.len() as u64;
        let advantage =
            (with_advantage > 0).then(|| Point::of(size as u64, advantages.into_iter()));
        Self { size, winners, losses, advantage, with_advantage }
    }
}

/// The counts as CSV: one line for each size, quantity and value, with the number of subsets; and
/// for each size the mean of the ratio with its standard error.
pub fn csv(gaps: &[Gaps]) -> String {
    let mut text = String::from("rankers,quantity,value,subsets,standard_error\n");
    for of_size in gaps {
        let size = of_size.size;
        for (quantity, counts) in [("C", &of_size.winners), ("L_C", &of_size.losses)] {
            for (value, subsets) in counts {
                text.push_str(&format!("{size},{quantity},{value},{subsets},\n"));
            }
        }
        if let Some(point) = &of_size.advantage {
            let error = point.standard_error.map(|error| error.to_string()).unwrap_or_default();
            let (mean, subsets) = (point.mean, of_size.with_advantage);
            text.push_str(&format!("{size},mean of D^2/D_min^2,{mean},{subsets},{error}\n"));
        }
    }
    text
}

/// The bounds of Theorems 11 and 13 beside the measured regret, as CSV. Regret is that of the
/// paper, twice ours. Theorem 11 holds with probability 0.95; of Theorem 13 it has only the order
/// of growth, since the paper gives no constant.
pub fn bounds_csv(figure: &RegretFigure, matrix: &PreferenceMatrix, reports: &[Report]) -> String {
    debug_assert_eq!(figure.regret, RegretKind::Copeland);
    let hardness = CopelandHardness::of(matrix);
    let mut text = String::from("policy,steps,measured regret,standard_error,bound,theorem\n");
    for curve in reports.iter().flat_map(|report| &report.policies) {
        for point in
            curve.checkpoints.iter().filter(|point| point.step >= 10 && is_power_of_ten(point.step))
        {
            let steps = point.step as f64;
            let (bound, theorem) = match alpha(&curve.policy) {
                Some(alpha) => (hardness.bound_of_ccb(alpha, 0.05, steps), "11"),
                None => (hardness.order_of_scb(steps), "13 (order)"),
            };
            let error = point.standard_error.map(|e| (2.0 * e).to_string()).unwrap_or_default();
            text.push_str(&format!(
                "{},{},{},{error},{bound:e},{theorem}\n",
                curve.policy,
                point.step,
                2.0 * point.mean
            ));
        }
    }
    text
}

/// `α` of CCB in the text form of a policy; `None` for SCB.
fn alpha(policy: &str) -> Option<f64> {
    policy.strip_prefix("ccb:alpha=")?.parse().ok()
}
