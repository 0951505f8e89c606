//! Pages that teach nothing, by cause. Each cause has its own remedy.

use rankduel_engine::fold::Fold;
use rankduel_engine::fold::page_counts::PairPages;

/// Answered pages without a winner or a tie, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SilentPages {
    /// No click, or an outcome `none` that the caller reported.
    pub no_click: u64,
    /// Clicks, but none that earns credit.
    pub no_credit: u64,
    /// Both rankings were the same.
    pub same_rankings: u64,
}

impl SilentPages {
    /// The pages of an experiment so far.
    pub fn of(fold: &Fold) -> Self {
        let mut settled = PairPages::default();
        fold.page_counts().all().for_each(|(_, pages)| settled.add(pages));
        let [.., all] = fold.counts().shown;
        let PairPages { nothing_creditable, not_informative, .. } = settled;
        Self {
            no_click: all.saturating_sub(nothing_creditable + not_informative),
            no_credit: nothing_creditable,
            same_rankings: not_informative,
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.no_click + self.no_credit + self.same_rankings
    }
}
