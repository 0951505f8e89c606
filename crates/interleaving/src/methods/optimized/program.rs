//! The linear program over the lists that may be shown.

use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOptions};

/// A mean credit of a position below this is rounding.
pub(super) const ROUNDING: f64 = 1e-7;

/// The largest absolute mean credit of a position.
pub(super) fn largest_bias(credits: &[Vec<f64>], probabilities: &[f64]) -> f64 {
    mean_credits(credits, probabilities).fold(0.0, |most, mean| f64::max(most, mean.abs()))
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

/// How much a list reveals about the preference of a searcher who looks at position `k` with a
/// probability proportional to `1/k`.
pub(super) fn sensitivity(credits: &[f64]) -> f64 {
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

/// The bias that is allowed at each position.
#[derive(Clone, Copy)]
enum Bias {
    None,
    AtMost(f64),
    /// The bias is minimized, and sensitivity is ignored.
    Least,
}

/// The best unbiased distribution over lists with these credits by position; if there is none, the
/// best distribution among those with the least bias.
pub(super) fn distribution(credits: &[Vec<f64>]) -> Option<Vec<f64>> {
    if let [_] = credits {
        return Some(vec![1.0]);
    }
    let fair = optimum(credits, Bias::None)
        .filter(|probabilities| largest_bias(credits, probabilities) <= ROUNDING);
    fair.or_else(|| {
        let least = largest_bias(credits, &optimum(credits, Bias::Least)?);
        optimum(credits, Bias::AtMost(least + 1e-9))
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
