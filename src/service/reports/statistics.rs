//! Statistics of interleaved pages, by method version and pair. Computed from the counts of the
//! fold, never by scanning the log.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::error::ServiceError;
use crate::service::reports::alarms::LOG_EVIDENCE;
use crate::service::reports::pair_tests::{DescriptiveInterval, Power, power, sign_test, wilson};
use crate::service::reports::pool::ReportPool;
use crate::service::reports::single_flight::{Computed, newest};
use dueling_bandits::evidence::balance::coin_evidence;
use interleaving;
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
    /// As sentences. Chance raises each of them in at most one of a thousand experiments without a
    /// defect. The alarm about a low share of competitive slots is not a test.
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
    /// For Δ.
    pub interval: Option<DescriptiveInterval>,
    /// p-value of the two-sided sign test of wins against losses; `null` without either.
    /// Descriptive, like the interval.
    pub sign_test_p: Option<f64>,
    /// `null` while wins and losses are equal.
    pub power: Option<Power>,
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
    /// Of every version and including reported outcomes.
    pub wins: u64,
    pub losses: u64,
    /// Likelihood ratio of an unequal pair against an equal one, which reaches 1000 in at most one
    /// of a thousand experiments.
    pub evidence_against: f64,
    /// Whether it has reached 1000.
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
        position: fold.position(),
        open_pages: fold.open_pages().pages().len() as u64,
        methods: fold.methods().to_vec(),
        page_counts: fold.page_counts().clone(),
        counts: fold.counts().clone(),
    };
    let compute = move |loaded: &LoadedExperiment, input| statistics_of(loaded, &input, ranker);
    newest(reports, loaded, ranker, copy, compute).await
}

fn statistics_of(
    loaded: &LoadedExperiment,
    input: &StatisticsInput,
    ranker: Option<usize>,
) -> Statistics {
    let mut alarms = Vec::new();
    let of_methods = (1..)
        .zip(&input.methods)
        .map(|(version, method)| version_of(loaded, input, version, &method.method, &mut alarms));
    let mut versions: Vec<_> =
        std::iter::once(reported(loaded, input, ranker)).chain(of_methods).collect();
    versions.retain(|version| version.pages.pages > 0);
    let id = ranker.map(|ranker| &loaded.spec.rankers[ranker].id);
    versions.iter_mut().for_each(|version| trim(&mut version.pairs, id));
    let canary = canary_of(loaded, &input.counts);
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

fn version_of(
    loaded: &LoadedExperiment,
    input: &StatisticsInput,
    version: u32,
    method: &interleaving::Spec,
    alarms: &mut Vec<String>,
) -> VersionStatistics {
    let mut all = PairPages::default();
    let mut pairs = Vec::new();
    for (pair, pages) in input.page_counts.version(version) {
        all.add(pages);
        pairs.push(pair_row(loaded, *pair, pages));
    }
    let pages = balance(&all);
    // the versions share the error of this check
    let needed = LOG_EVIDENCE * f64::from(version) * f64::from(version + 1);
    if coin_evidence(all.lower_left, all.pages() - all.lower_left) >= needed {
        alarms.push(format!(
            "version {version}: of the answered pages, one ranker of a pair was left on too many"
        ));
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
        pairs_total: pairs.len(),
        pairs,
    }
}

/// The outcomes that callers reported themselves: all counts minus those of settled pages. With
/// the pairs of `ranker`, or of all, that have most pages.
fn reported(
    loaded: &LoadedExperiment,
    input: &StatisticsInput,
    ranker: Option<usize>,
) -> VersionStatistics {
    let rankers = loaded.spec.rankers.len();
    let mut of_pages = std::collections::HashMap::<_, PairPages>::new();
    for (pair, pages) in input.page_counts.all() {
        of_pages.entry(*pair).or_default().add(pages);
    }
    let rest = |pair: (u16, u16)| {
        let total = input.counts.pair(pair.0.into(), pair.1.into());
        let known = of_pages.get(&pair).copied().unwrap_or_default();
        PairPages {
            wins: total.wins.saturating_sub(known.wins),
            losses: total.losses.saturating_sub(known.losses),
            ties: total.ties.saturating_sub(known.ties),
            no_click: total.no_signal.saturating_sub(known.no_signal()),
            ..PairPages::default()
        }
    };
    let (mut all, mut pairs_total) = (PairPages::default(), 0);
    let mut kept = Vec::new();
    for pair in (1..rankers as u16).flat_map(|higher| (0..higher).map(move |lower| (lower, higher)))
    {
        let pages = rest(pair);
        if pages.pages() == 0 {
            continue;
        }
        all.add(&pages);
        pairs_total += 1;
        let is_of = |ranker| usize::from(pair.0) == ranker || usize::from(pair.1) == ranker;
        if ranker.is_none_or(is_of) {
            kept.push((pages.pages(), pair));
        }
    }
    keep_most_pages(&mut kept, |(pages, _)| *pages);
    let unknown = |pages: PageBalance| PageBalance { left_share: None, ..pages };
    let pairs = kept.into_iter().map(|(_, pair)| {
        let row = pair_row(loaded, pair, &rest(pair));
        PairStatistics { balance: unknown(row.balance), ..row }
    });
    VersionStatistics {
        version: None,
        method: None,
        pages: unknown(balance(&all)),
        pairs_total,
        pairs: pairs.collect(),
    }
}

fn pair_row(
    loaded: &LoadedExperiment,
    (lower, higher): (u16, u16),
    pages: &PairPages,
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
        interval: mean.map(|mean| wilson(mean, with_signal)),
        sign_test_p: sign_test(wins, losses),
        power: power(wins, losses, pages.pages()),
        balance: balance(pages),
    }
}

fn canary_of(loaded: &LoadedExperiment, counts: &Counts) -> Option<Canary> {
    let [ranker, against] = loaded.spec.pages.canary.clone()?;
    let pair = counts.pair(loaded.spec.ranker_index(&ranker)?, loaded.spec.ranker_index(&against)?);
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

/// Leave the pairs of the ranker with this id, or of all, and of these the ones with most pages.
fn trim(pairs: &mut Vec<PairStatistics>, ranker: Option<&String>) {
    if let Some(id) = ranker {
        pairs.retain(|pair| pair.ranker == *id || pair.against == *id);
    }
    keep_most_pages(pairs, |pair| pair.balance.pages);
}

/// If there are too many rows, leave those with most pages, and these come first.
fn keep_most_pages<T>(rows: &mut Vec<T>, pages: impl Fn(&T) -> u64) {
    if rows.len() > PAIRS_MAX {
        // The sort is stable, so pairs with as many pages stay in order.
        rows.sort_by_key(|row| std::cmp::Reverse(pages(row)));
        rows.truncate(PAIRS_MAX);
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
