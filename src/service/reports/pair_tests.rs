//! Intervals and tests for the pages of one pair.

use serde::Serialize;
use special::Beta;
use utoipa::ToSchema;

/// 97.5 % and 80 % quantiles of the normal distribution.
const Z_TWO_SIDED: f64 = 1.959_963_984_540_054;
const Z_POWER: f64 = 0.841_621_233_572_914_3;

/// An interval that describes these counts. Do not use it for stopping: the policy chooses pairs by
/// earlier answers, and repeated checks find differences by chance. The intervals of the verdict
/// hold at all times at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct DescriptiveInterval {
    #[schema(example = "descriptive")]
    pub kind: &'static str,
    /// Level of Wilson's score interval, with a tie as half a win.
    #[schema(example = 0.95)]
    pub level: f64,
    pub low: f64,
    pub high: f64,
}

/// Pages needed to find a difference as large as the observed one with a sign test at 5 % and 80 %
/// power.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Power {
    /// Total number of decided pages.
    pub decided_needed: u64,
    /// Total number of pages, at the observed share of decided pages.
    pub pages_needed: u64,
    /// Number of pages still missing.
    pub more_pages: u64,
}

/// Wilson's score interval for the mean of `n` scores from 0 to 1, minus 1/2.
pub(super) fn wilson(mean: f64, n: u64) -> DescriptiveInterval {
    let (n, z2) = (n as f64, Z_TWO_SIDED * Z_TWO_SIDED);
    let centre = (mean + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z_TWO_SIDED / (1.0 + z2 / n)
        * (mean * (1.0 - mean) / n + z2 / (4.0 * n * n)).max(0.0).sqrt();
    DescriptiveInterval {
        kind: "descriptive",
        level: 0.95,
        low: (centre - half).max(0.0) - 0.5,
        high: (centre + half).min(1.0) - 0.5,
    }
}

/// p-value of the exact two-sided sign test: twice the probability of a result at least this uneven
/// with fair coins.
pub(super) fn sign_test(wins: u64, losses: u64) -> Option<f64> {
    let (more, fewer) = (wins.max(losses) as f64, wins.min(losses) as f64);
    if more == fewer {
        return (more > 0.0).then_some(1.0);
    }
    // P(X ≥ more) of Binomial(more + fewer, 1/2)
    let (a, b) = (more, fewer + 1.0);
    Some((2.0 * 0.5_f64.inc_beta(a, b, a.ln_beta(b))).min(1.0))
}

/// Pages needed for 80 % power at 5 % two-sided, if the observed share of wins is the true one.
pub(super) fn power(wins: u64, losses: u64, pages: u64) -> Option<Power> {
    let decided = (wins + losses) as f64;
    if wins == losses {
        return None;
    }
    let p = wins as f64 / decided;
    let root = (Z_TWO_SIDED * 0.5 + Z_POWER * (p * (1.0 - p)).sqrt()) / (p - 0.5);
    let decided_needed = root * root;
    let pages_needed = (decided_needed * pages as f64 / decided).ceil() as u64;
    Some(Power {
        decided_needed: decided_needed.ceil() as u64,
        pages_needed,
        more_pages: pages_needed.saturating_sub(pages),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64, within: f64) -> bool {
        (one - other).abs() <= within
    }

    #[test]
    fn sign_tests_are_exact() {
        for (wins, losses, p) in
            [(60, 40, 0.0569), (530, 470, 0.0620), (7, 3, 0.3438), (3, 7, 0.3438)]
        {
            let found = sign_test(wins, losses).unwrap();
            assert!(near(found, p, 5e-5), "{wins} to {losses}: {found}");
        }
        assert_eq!(
            (sign_test(0, 0), sign_test(5, 5), sign_test(1, 0)),
            (None, Some(1.0), Some(1.0))
        );
        // by adding up: 2 (1 + 10 + 45) / 2^10
        assert!(near(sign_test(8, 2).unwrap(), 112.0 / 1024.0, 1e-12));
    }

    #[test]
    fn wilson_is_as_published_for_decided_pages() {
        let interval = wilson(0.6, 100);
        assert!(near(interval.low + 0.5, 0.5020, 5e-5) && near(interval.high + 0.5, 0.6906, 5e-5));
    }

    #[test]
    fn power_is_that_of_the_normal_approximation() {
        for (wins, losses, needed) in
            [(51, 49, 19_620), (52, 48, 4904), (55, 45, 783), (60, 40, 194), (40, 60, 194)]
        {
            let found = power(wins, losses, 200).unwrap();
            assert!(found.decided_needed.abs_diff(needed) <= 1, "{wins}: {found:?}");
            assert!(
                found.pages_needed.abs_diff(2 * needed) <= 2,
                "half of the pages are decided: {found:?}"
            );
            assert_eq!(found.more_pages, found.pages_needed - 200);
        }
        assert_eq!((power(5, 5, 20), power(0, 0, 20)), (None, None));
    }
}
