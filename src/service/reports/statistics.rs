//! What interleaved pages came to, by method and pair. Counts of the fold and what follows from
//! them; never a scan.

use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::fold::Fold;
use crate::engine::fold::page_counts::PairPages;
use crate::engine::loaded::LoadedExperiment;
use crate::service::error::ServiceError;
use crate::service::reports::pair_tests::{
    DescriptiveInterval, Power, evidence_against_even, power, sign_test, wilson,
};
use interleaving::{self, Method};

/// An alarm is raised where chance alone would not in so many experiments, however often one looks.
const ALARM_ODDS: f64 = 1000.0;
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
