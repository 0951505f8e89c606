//! Whether duels are answered equally often whichever rankers they show.
//!
//! This is the sample-ratio check for adaptive allocation. How often a pair is shown depends on
//! earlier answers, so the number of shown duels proves nothing. But the share of answered duels
//! should be the same for all pairs. The test is Pearson's chi-squared test of homogeneity over
//! pairs, answered against expired.

use special::Gamma as _;

use crate::engine::traffic::EndedDuels;

/// A pair with fewer ended duels is left out of the test.
const DUELS_MIN: u64 = 30;

/// Whether the share of answered duels is the same for all pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvenAnswers {
    /// Share of ended duels that were answered; `None` before the first.
    pub answered_share: Option<f64>,
    /// Result of the test; `None` while there are too few duels.
    pub test: Option<EvenTest>,
}

/// Result of Pearson's chi-squared test of homogeneity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvenTest {
    /// Probability of answers at least this uneven if all pairs have the same share.
    pub p_value: f64,
    /// Indices of the pair with the smallest share of answered duels.
    pub worst: (u16, u16),
    /// Its share of answered duels.
    pub worst_share: f64,
}

/// Test the ended duels of each pair.
pub(super) fn even_answers(ended: &[((u16, u16), EndedDuels)]) -> EvenAnswers {
    let row = |ended: &EndedDuels| (ended.answered as f64, (ended.answered + ended.expired) as f64);
    let sums = |rows: &[(_, EndedDuels)]| {
        let answered: u64 = rows.iter().map(|(_, ended)| ended.answered).sum();
        let expired: u64 = rows.iter().map(|(_, ended)| ended.expired).sum();
        row(&EndedDuels { answered, expired })
    };
    let (answered, duels) = sums(ended);
    let answered_share = (duels > 0.0).then(|| answered / duels);
    let rows: Vec<_> = ended
        .iter()
        .filter(|(_, ended)| ended.answered + ended.expired >= DUELS_MIN)
        .copied()
        .collect();
    let (answered, duels) = sums(&rows);
    let share = answered / duels;
    let fewest = rows.iter().map(|(_, ended)| row(ended).1).fold(f64::INFINITY, f64::min);
    let least = fewest * share.min(1.0 - share);
    // the smallest expected count must be at least 5 (Cochran 1954)
    if rows.len() < 2 || !least.is_finite() || least < 5.0 {
        return EvenAnswers { answered_share, test: None };
    }
    let square = |ended: &EndedDuels| {
        let (answered, duels) = row(ended);
        (answered - duels * share).powi(2) / (duels * share * (1.0 - share))
    };
    let statistic: f64 = rows.iter().map(|(_, ended)| square(ended)).sum();
    let freedom = (rows.len() - 1) as f64;
    let rate = |ended: &EndedDuels| row(ended).0 / row(ended).1;
    let worst = rows.iter().min_by(|(_, one), (_, other)| rate(one).total_cmp(&rate(other)));
    let test = worst.map(|(pair, ended)| EvenTest {
        p_value: (1.0 - (statistic / 2.0).inc_gamma(freedom / 2.0)).clamp(0.0, 1.0),
        worst: *pair,
        worst_share: rate(ended),
    });
    EvenAnswers { answered_share, test }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_answers_of_one_pair_are_found_and_even_losses_are_not() {
        let rows = |rows: &[(u64, u64)]| -> EvenAnswers {
            let ended = |&(answered, expired)| EndedDuels { answered, expired };
            let rows: Vec<_> = (0..).map(|pair| (pair, 9)).zip(rows.iter().map(ended)).collect();
            even_answers(&rows)
        };
        let even = rows(&[(900, 100), (450, 50), (90, 10)]);
        assert!(even.test.is_some_and(|test| test.p_value > 0.99), "{even:?}");
        assert_eq!(even.answered_share, Some(0.9));
        let uneven = rows(&[(900, 100), (450, 50), (60, 40)]).test.expect("enough for a test");
        assert!(uneven.p_value < 1e-12, "{uneven:?}");
        assert_eq!((uneven.worst, uneven.worst_share), ((2, 9), 0.6));
        // 10 of 100 against 20 of 100: chi-squared 3.92 with 1 degree of freedom, p = 0.0477
        let near = rows(&[(90, 10), (80, 20)]).test.expect("enough for a test");
        assert!((near.p_value - 0.0477).abs() < 1e-4, "{near:?}");
        for too_little in
            [rows(&[(20, 5), (20, 0)]), rows(&[(500, 0), (500, 0)]), rows(&[(90, 10)]), rows(&[])]
        {
            assert_eq!(too_little.test, None);
        }
    }
}
