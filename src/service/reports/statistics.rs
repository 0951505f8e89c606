//! What interleaved pages came to, by method and pair. Counts of the fold and what follows from
//! them; never a scan.

use serde::Serialize;
use special::Beta;
use utoipa::ToSchema;

use crate::engine::error::ServiceError;
use crate::engine::fold::Fold;
use crate::engine::fold::page_counts::PairPages;
use crate::engine::loaded::LoadedExperiment;
use interleaving::{self, Method};

/// An alarm is raised where chance alone would not in so many experiments, however often one looks.
const ALARM_ODDS: f64 = 1000.0;
/// 97.5 % and 80 % quantiles of the normal distribution.
const Z_TWO_SIDED: f64 = 1.959_963_984_540_054;
const Z_POWER: f64 = 0.841_621_233_572_914_3;
/// A share of slots that can earn credit below this leaves little to compare.
const FEW_COMPETITIVE: f64 = 0.3;
/// Pages before a low share is said.
const ENOUGH_PAGES: u64 = 100;

/// What pages came to, at a log position.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Statistics {
    /// The experiment's name.
    #[schema(example = "search-ranking")]
    pub experiment: String,
    /// Log position that everything here is at.
    pub position: u64,
    /// Duels whose clicks wait to be settled.
    pub open_pages: u64,
    /// One for each version of the method that has settled pages, and first, without a version,
    /// outcomes that callers reported themselves.
    pub versions: Vec<VersionStatistics>,
    /// The A/A pair of the experiment, where it has one.
    pub canary: Option<Canary>,
    /// What looks wrong, in words; each by chance in at most one of a thousand experiments that are
    /// right, except that a low share of competitive slots is only a low share.
    pub alarms: Vec<String>,
}

/// The pages of one version of the method.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct VersionStatistics {
    /// The version; `null` for outcomes that callers reported themselves.
    pub version: Option<u32>,
    /// Kind of the method; `null` likewise.
    #[schema(example = "team-draft")]
    pub method: Option<&'static str>,
    /// All its pairs together.
    pub pages: PageBalance,
    /// One row a pair that has pages.
    pub pairs: Vec<PairStatistics>,
}

/// How pages were made up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct PageBalance {
    /// Settled pages.
    pub pages: u64,
    /// Share of them that showed the ranker listed first left; should be near 1/2. `null` where it
    /// is not known.
    pub left_share: Option<f64>,
    /// Share of those with a slot that can earn credit on which the first such slot is that
    /// ranker's; should be near 1/2, but for optimized interleaving, where it depends on the
    /// rankings.
    pub first_share: Option<f64>,
    /// Share of slots that can earn credit; pinned ones are not counted.
    pub competitive_share: Option<f64>,
}

/// The pages of one pair.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PairStatistics {
    /// Id of the one: the first of the two in the experiment's order.
    pub ranker: String,
    /// Id of the other.
    pub against: String,
    /// Pages that the one won.
    pub wins: u64,
    /// Pages that the other won.
    pub losses: u64,
    /// Pages with equal credit.
    pub ties: u64,
    /// Pages that said nothing.
    pub no_signal: NoSignalCounts,
    /// Δ = (wins + ties/2) / (wins + losses + ties) − 1/2: positive is for the one. `null` without
    /// such pages.
    pub delta: Option<f64>,
    /// An interval for Δ.
    pub interval: Option<DescriptiveInterval>,
    /// Two-sided sign test of wins against losses; `null` without either. Descriptive, as the
    /// interval is.
    pub sign_test_p: Option<f64>,
    /// How many more pages it takes; `null` while there is no difference to find.
    pub power: Option<Power>,
    /// How its pages were made up.
    pub balance: PageBalance,
}

/// Pages that said nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct NoSignalCounts {
    /// All of them.
    pub total: u64,
    /// No click.
    pub no_click: u64,
    /// Clicks on nothing that can earn credit.
    pub nothing_creditable: u64,
    /// Both lists were the same.
    pub not_informative: u64,
}

/// An interval that describes these counts. It is no basis for stopping: a policy chooses the pairs
/// by what came before, and who looks again and again finds something. The verdict's intervals hold
/// at every time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct DescriptiveInterval {
    /// `descriptive`.
    #[schema(example = "descriptive")]
    pub kind: &'static str,
    /// Wilson's score interval at this level, a tie as half a win.
    #[schema(example = 0.95)]
    pub level: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What it takes to find a difference as large as the one seen, in 80 of 100 cases, with a sign
/// test at 5 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Power {
    /// Decided pages in all.
    pub decided_needed: u64,
    /// Pages in all, at the share of decided ones seen.
    pub pages_needed: u64,
    /// Pages more than there are.
    pub more_pages: u64,
}

/// Two ids of one ranker: what looks like a difference is none.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Canary {
    /// Id of the one.
    pub ranker: String,
    /// Id of the other.
    pub against: String,
    /// Duels that the one won, of every version and reported ones.
    pub wins: u64,
    /// Duels that the other won.
    pub losses: u64,
    /// How much better an unequal pair explains these counts than an equal one; for equal ones it
    /// reaches 1000 ever in at most one of a thousand experiments, however often one looks.
    pub evidence_against: f64,
    /// Whether it has.
    pub alarm: bool,
}

impl LoadedExperiment {
    /// What pages came to at the current log position.
    pub fn statistics(&self) -> Result<Statistics, ServiceError> {
        let fold = self.fold()?;
        let mut statistics = self.of_pages(&fold);
        statistics.versions.insert(0, self.reported(&fold));
        statistics.versions.retain(|version| version.pages.pages > 0);
        Ok(statistics)
    }

    /// The same without outcomes that callers reported themselves, which are a row for each pair.
    pub fn page_statistics(&self) -> Result<Statistics, ServiceError> {
        Ok(self.of_pages(&*self.fold()?))
    }

    fn of_pages(&self, fold: &Fold) -> Statistics {
        let mut alarms = Vec::new();
        let mut versions: Vec<_> = (1..)
            .zip(fold.methods())
            .map(|(version, method)| self.version(fold, version, &method.method, &mut alarms))
            .collect();
        versions.retain(|version| version.pages.pages > 0);
        let canary = self.canary(fold);
        if let Some(canary) = canary.as_ref().filter(|canary| canary.alarm) {
            alarms.push(format!(
                "the canary's two ids of one ranker differ: `{}` won {} and `{}` won {}",
                canary.ranker, canary.wins, canary.against, canary.losses
            ));
        }
        Statistics {
            experiment: self.name.clone(),
            position: fold.position(),
            open_pages: fold.open_pages().pages().len() as u64,
            versions,
            canary,
            alarms,
        }
    }

    fn version(
        &self,
        fold: &Fold,
        version: u32,
        method: &interleaving::Spec,
        alarms: &mut Vec<String>,
    ) -> VersionStatistics {
        let mut all = PairPages::default();
        let mut pairs = Vec::new();
        for (pair, pages) in fold.page_counts().version(version) {
            all.add(pages);
            pairs.push(self.pair(*pair, pages));
        }
        let pages = balance(&all);
        let uneven = |share: u64, of: u64| evidence_against_even(share, of - share) >= ALARM_ODDS;
        if uneven(all.lower_left, all.pages()) {
            alarms.push(format!("version {version}: one ranker of a pair is shown left too often"));
        }
        let drafts_evenly = !matches!(method.method, Method::Optimized(_));
        if drafts_evenly && uneven(all.lower_first, all.drafted) {
            alarms.push(format!("version {version}: one ranker of a pair drafts first too often"));
        }
        if let Some(share) = pages.competitive_share.filter(|share| *share < FEW_COMPETITIVE)
            && all.pages() >= ENOUGH_PAGES
        {
            alarms.push(format!(
                "version {version}: only {:.0} % of the slots can earn credit; the rankings hardly differ",
                100.0 * share
            ));
        }
        VersionStatistics {
            version: Some(version),
            method: Some(method.method.kind()),
            pages,
            pairs,
        }
    }

    /// What the counts have beyond all settled pages.
    fn reported(&self, fold: &Fold) -> VersionStatistics {
        let rankers = self.spec.rankers.len();
        let mut of_pages = std::collections::HashMap::<_, PairPages>::new();
        for version in 1..=fold.methods().len() as u32 {
            for (pair, pages) in fold.page_counts().version(version) {
                of_pages.entry(*pair).or_default().add(pages);
            }
        }
        let mut all = PairPages::default();
        let mut pairs = Vec::new();
        for higher in 1..rankers {
            for lower in 0..higher {
                let total = fold.counts().pair(lower, higher);
                let pair = (lower as u16, higher as u16);
                let known = of_pages.get(&pair).copied().unwrap_or_default();
                let rest = PairPages {
                    wins: total.wins.saturating_sub(known.wins),
                    losses: total.losses.saturating_sub(known.losses),
                    ties: total.ties.saturating_sub(known.ties),
                    no_click: total.no_signal.saturating_sub(known.no_signal()),
                    ..PairPages::default()
                };
                if rest.pages() > 0 {
                    all.add(&rest);
                    pairs.push(self.pair(pair, &rest));
                }
            }
        }
        let unknown = |pages: PageBalance| PageBalance { left_share: None, ..pages };
        for pair in &mut pairs {
            pair.balance = unknown(pair.balance);
        }
        VersionStatistics { version: None, method: None, pages: unknown(balance(&all)), pairs }
    }

    fn pair(&self, (lower, higher): (u16, u16), pages: &PairPages) -> PairStatistics {
        let id = |ranker: u16| self.spec.rankers[usize::from(ranker)].id.clone();
        let PairPages { wins, losses, ties, no_click, nothing_creditable, not_informative, .. } =
            *pages;
        let said = wins + losses + ties;
        let mean = (said > 0).then(|| (wins as f64 + ties as f64 / 2.0) / said as f64);
        PairStatistics {
            ranker: id(lower),
            against: id(higher),
            wins,
            losses,
            ties,
            no_signal: NoSignalCounts {
                total: pages.no_signal(),
                no_click,
                nothing_creditable,
                not_informative,
            },
            delta: mean.map(|mean| mean - 0.5),
            interval: mean.map(|mean| wilson(mean, said)),
            sign_test_p: sign_test(wins, losses),
            power: power(wins, losses, pages.pages()),
            balance: balance(pages),
        }
    }

    fn canary(&self, fold: &Fold) -> Option<Canary> {
        let [ranker, against] = self.spec.pages.canary.clone()?;
        let pair =
            fold.counts().pair(self.spec.ranker_index(&ranker)?, self.spec.ranker_index(&against)?);
        let evidence_against = evidence_against_even(pair.wins, pair.losses);
        Some(Canary {
            ranker,
            against,
            wins: pair.wins,
            losses: pair.losses,
            evidence_against,
            alarm: evidence_against >= ALARM_ODDS,
        })
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn balance(pages: &PairPages) -> PageBalance {
    PageBalance {
        pages: pages.pages(),
        left_share: share(pages.lower_left, pages.pages()),
        first_share: share(pages.lower_first, pages.drafted),
        competitive_share: share(pages.competitive, pages.slots),
    }
}

/// Wilson's score interval of a mean of `n` scores from 0 to 1, less 1/2.
fn wilson(mean: f64, n: u64) -> DescriptiveInterval {
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

/// Exact two-sided sign test: twice the probability that fair coins are as uneven.
fn sign_test(wins: u64, losses: u64) -> Option<f64> {
    let (more, fewer) = (wins.max(losses) as f64, wins.min(losses) as f64);
    if more == fewer {
        return (more > 0.0).then_some(1.0);
    }
    // P(X ≥ more) of Binomial(more + fewer, 1/2)
    let (a, b) = (more, fewer + 1.0);
    Some((2.0 * 0.5_f64.inc_beta(a, b, a.ln_beta(b))).min(1.0))
}

/// For 80 % power at 5 % two-sided, taking the share of wins that was seen for the true one.
fn power(wins: u64, losses: u64, pages: u64) -> Option<Power> {
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

/// How much better a share that may be anything explains these counts than 1/2 does: the likelihood
/// under a uniform prior over that under 1/2. For fair coins it is a martingale from 1, so that it
/// ever reaches `c` with probability 1/c at most (Ville's inequality).
fn evidence_against_even(one: u64, other: u64) -> f64 {
    let (a, b) = (one as f64 + 1.0, other as f64 + 1.0);
    let log = (one + other) as f64 * std::f64::consts::LN_2 + a.ln_beta(b);
    // beyond what a number can say it is only very much
    log.exp().min(f64::MAX)
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

    #[test]
    fn evidence_is_a_martingale_of_fair_coins() {
        // its mean after one more coin is what it was
        for (one, other) in [(0, 0), (3, 1), (40, 60)] {
            let now = evidence_against_even(one, other);
            let next = evidence_against_even(one + 1, other) / 2.0
                + evidence_against_even(one, other + 1) / 2.0;
            assert!(near(next / now, 1.0, 1e-9), "{one}, {other}: {now} then {next}");
        }
        assert!(near(evidence_against_even(0, 0), 1.0, 1e-12));
        assert!(evidence_against_even(60, 40) < 1000.0 && evidence_against_even(90, 30) > 1000.0);
        assert!(evidence_against_even(1_000_000, 0).is_finite());
    }
}
