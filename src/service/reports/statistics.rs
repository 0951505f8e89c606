//! Statistics of interleaved pages, by method version and pair. Computed from the counts of the
//! fold, never by scanning the log.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::error::ServiceError;
use crate::service::reports::alarms::LOG_EVIDENCE;
use crate::service::reports::pool::ReportPool;
use crate::service::reports::single_flight::{Computed, newest};
use dueling_bandits::evidence::balance::coin_evidence;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_engine::fold::counts::Counts;
use rankduel_engine::fold::methods::MethodVersion;
use rankduel_engine::fold::page_counts::{PageCounts, PairPages};
use rankduel_engine::loaded::LoadedExperiment;

/// Below this share of slots that can earn credit, there is little to compare.
const FEW_COMPETITIVE: f64 = 0.3;
/// Fewest pages for an alarm about a low share.
const ENOUGH_PAGES: u64 = 100;

/// Most pairs of a version in a response.
const PAIRS_MAX: usize = 1000;

/// Statistics of pages at a log position.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Statistics {
    #[schema(example = "search-ranking")]
    pub experiment: String,
    pub position: u64,
    /// Duels that have clicks and are not settled.
    pub open_pages: u64,
    /// The versions of the method that have settled pages. The first row, without a version, has
    /// the outcomes that callers reported themselves.
    pub versions: Vec<VersionStatistics>,
    pub canary: Option<Canary>,
    /// Alarms, as sentences. Chance raises each of them in at most one of a thousand experiments
    /// without a defect. The alarm about a low share of competitive slots is not a test.
    pub alarms: Vec<String>,
}

/// The pages of one version of the method.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct VersionStatistics {
    /// `null` for outcomes that callers reported themselves.
    pub version: Option<u32>,
    /// `null` for outcomes that callers reported themselves.
    #[schema(example = "team-draft")]
    pub method: Option<&'static str>,
    /// All pairs together.
    pub pages: PageBalance,
    /// If there are more than 1000, only those with most pages; with `ranker`, only the pairs of
    /// that ranker.
    pub pairs: Vec<PairStatistics>,
    pub pairs_total: usize,
}

/// How balanced pages are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct PageBalance {
    /// Settled pages.
    pub pages: u64,
    /// Share of pages that showed the ranker listed first on the left. Should be near 1/2. `null`
    /// if unknown.
    pub left_share: Option<f64>,
    /// Among pages with a slot that can earn credit, the share on which the first such slot belongs
    /// to the ranker listed first. Near 1/2 if every page is reported, except for optimized
    /// interleaving. If only pages with a click are reported, it leans to the better ranker.
    pub first_share: Option<f64>,
    /// Share of slots that can earn credit, without pinned slots.
    pub competitive_share: Option<f64>,
}

/// The pages of one pair.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PairStatistics {
    /// The ranker that comes first in the order of the experiment.
    pub ranker: String,
    pub against: String,
    pub wins: u64,
    pub losses: u64,
    /// Pages with equal credit.
    pub ties: u64,
    pub no_signal: NoSignalCounts,
    /// Δ = (wins + ties/2) / (wins + losses + ties) − 1/2. Positive values favour `ranker`. `null`
    /// without such pages.
    pub delta: Option<f64>,
    pub balance: PageBalance,
}

/// Pages that show no preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct NoSignalCounts {
    pub total: u64,
    pub no_click: u64,
    /// Only clicks on slots that cannot earn credit.
    pub nothing_creditable: u64,
    /// Both lists were the same.
    pub not_informative: u64,
}

/// The A/A test: two ids of the same ranker, which should show no difference.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Canary {
    /// The first id.
    pub ranker: String,
    /// The other id.
    pub against: String,
    /// Number of duels that `ranker` won, with every version and including reported outcomes.
    pub wins: u64,
    pub losses: u64,
    /// Likelihood ratio of an unequal pair against an equal one. For an equal pair, it reaches 1000
    /// in at most one of a thousand experiments.
    pub evidence_against: f64,
    /// Whether `evidence_against` is 1000 or more.
    pub alarm: bool,
}

struct StatisticsInput {
    position: u64,
    open_pages: u64,
    methods: Vec<MethodVersion>,
    page_counts: PageCounts,
    counts: Counts,
}

/// Statistics of pages at the current log position or later, of the pairs of the ranker with this
/// index or of all.
pub async fn statistics(
    reports: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
    ranker: Option<usize>,
) -> Result<Arc<Computed<Statistics>>, ServiceError> {
    let copy = |fold: &Fold| StatisticsInput {
        position: fold.state().position,
        open_pages: fold.state().open_pages.pages().len() as u64,
        methods: fold.state().methods.all().to_vec(),
        page_counts: fold.state().page_counts.clone(),
        counts: fold.state().counts.clone(),
    };
    let compute = move |loaded: &LoadedExperiment, input| statistics_of(loaded, &input, ranker);
    newest(reports, loaded, ranker, copy, compute).await
}

fn statistics_of(
    loaded: &LoadedExperiment,
    input: &StatisticsInput,
    ranker: Option<usize>,
) -> Statistics {
    let (versions, mut alarms) = versions_of(loaded, input, ranker);
    let canary = canary_of(&loaded.spec, &input.counts);
    if let Some(canary) = canary.as_ref().filter(|canary| canary.alarm) {
        alarms.push(format!(
            "the two ids of the canary differ, although they are one ranker: `{}` won {} and `{}` won {}",
            canary.ranker, canary.wins, canary.against, canary.losses
        ));
    }
    Statistics {
        experiment: loaded.name.clone(),
        position: input.position,
        open_pages: input.open_pages,
        versions,
        canary,
        alarms,
    }
}

/// The versions that have settled pages, and alarms about them. The first has the outcomes that
/// callers reported themselves: all counts minus those of settled pages.
fn versions_of(
    loaded: &LoadedExperiment,
    input: &StatisticsInput,
    ranker: Option<usize>,
) -> (Vec<VersionStatistics>, Vec<String>) {
    let mut of_pages = HashMap::<_, PairPages>::new();
    for (pair, pages) in input.page_counts.all() {
        of_pages.entry(*pair).or_default().add(pages);
    }
    let rankers = loaded.spec.rankers.len() as u16;
    let pairs = (1..rankers).flat_map(|higher| (0..higher).map(move |lower| (lower, higher)));
    let reported = pairs.map(|pair| {
        let total = input.counts.pair(pair.0.into(), pair.1.into());
        let known = of_pages.get(&pair).copied().unwrap_or_default();
        let pages = PairPages {
            wins: total.wins.saturating_sub(known.wins),
            losses: total.losses.saturating_sub(known.losses),
            ties: total.ties.saturating_sub(known.ties),
            no_click: total.no_signal.saturating_sub(known.no_signal()),
            ..PairPages::default()
        };
        (pair, pages)
    });
    let mut versions = vec![version_of(loaded, None, ranker, reported).0];
    let mut alarms = Vec::new();
    for (version, method) in (1..).zip(&input.methods) {
        let counted = input.page_counts.version(version).map(|(pair, pages)| (*pair, *pages));
        let named = Some((version, method.method.method.kind()));
        let (row, all) = version_of(loaded, named, ranker, counted);
        // the versions share the error of this check
        let needed = LOG_EVIDENCE * f64::from(version) * f64::from(version + 1);
        if coin_evidence(all.lower_left, all.pages() - all.lower_left) >= needed {
            alarms.push(format!(
                "version {version}: of the answered pages, one ranker of a pair was left on too many"
            ));
        }
        if let Some(share) = row.pages.competitive_share.filter(|share| *share < FEW_COMPETITIVE)
            && all.pages() >= ENOUGH_PAGES
        {
            alarms.push(format!(
                "version {version}: only {:.0} % of the slots can earn credit; the rankings hardly differ",
                100.0 * share
            ));
        }
        versions.push(row);
    }
    versions.retain(|version| version.pages.pages > 0);
    (versions, alarms)
}

/// The statistics of one version, or of reported outcomes, and the counts of all its pairs
/// together. Lists the pairs of `ranker`, or of all, that have most pages.
fn version_of(
    loaded: &LoadedExperiment,
    version: Option<(u32, &'static str)>,
    ranker: Option<usize>,
    counted: impl Iterator<Item = ((u16, u16), PairPages)>,
) -> (VersionStatistics, PairPages) {
    let (mut all, mut pairs_total) = (PairPages::default(), 0);
    let mut listed = Vec::new();
    for (pair, pages) in counted.filter(|(_, pages)| pages.pages() > 0) {
        all.add(&pages);
        pairs_total += 1;
        let is_of = |ranker| usize::from(pair.0) == ranker || usize::from(pair.1) == ranker;
        if ranker.is_none_or(is_of) {
            listed.push((pair, pages));
        }
    }
    if listed.len() > PAIRS_MAX {
        // The sort is stable, so pairs with as many pages stay in order.
        listed.sort_by_key(|(_, pages)| Reverse(pages.pages()));
        listed.truncate(PAIRS_MAX);
    }
    let has_sides = version.is_some();
    let pairs = listed.iter().map(|(pair, pages)| pair_row(loaded, *pair, pages, has_sides));
    let row = VersionStatistics {
        version: version.map(|(version, _)| version),
        method: version.map(|(_, method)| method),
        pages: balance(&all, has_sides),
        pairs: pairs.collect(),
        pairs_total,
    };
    (row, all)
}

fn pair_row(
    loaded: &LoadedExperiment,
    (lower, higher): (u16, u16),
    pages: &PairPages,
    has_sides: bool,
) -> PairStatistics {
    let id = |ranker: u16| loaded.spec.rankers[usize::from(ranker)].id.clone();
    let PairPages { wins, losses, ties, no_click, nothing_creditable, not_informative, .. } =
        *pages;
    let with_signal = wins + losses + ties;
    let mean = (with_signal > 0).then(|| (wins as f64 + ties as f64 / 2.0) / with_signal as f64);
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
        balance: balance(pages, has_sides),
    }
}

pub(super) fn canary_of(spec: &ExperimentSpec, counts: &Counts) -> Option<Canary> {
    let [ranker, against] = spec.pages.canary.clone()?;
    let pair = counts.pair(spec.ranker_index(&ranker)?, spec.ranker_index(&against)?);
    let evidence_against = coin_evidence(pair.wins, pair.losses);
    Some(Canary {
        ranker,
        against,
        wins: pair.wins,
        losses: pair.losses,
        evidence_against,
        alarm: evidence_against >= LOG_EVIDENCE,
    })
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// `has_sides` says whether it is known which ranker was left.
fn balance(pages: &PairPages, has_sides: bool) -> PageBalance {
    PageBalance {
        pages: pages.pages(),
        left_share: share(pages.lower_left, pages.pages()).filter(|_| has_sides),
        first_share: share(pages.lower_first, pages.drafted),
        competitive_share: share(pages.competitive, pages.slots),
    }
}
