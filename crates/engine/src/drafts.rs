//! Which ranker of a pair drafts first on pages, counted when the page is made. Counted on answered
//! pages it would depend on which pages get a click.

/// Pages of one lifetime that are remembered: one page of a duel counts, and not its repeats.
const PAGES: usize = 1024;

/// Counts of the pages that this process made.
#[derive(Debug, Default)]
pub struct Drafts {
    /// Nonce and expiry of a duel whose page was counted, by its nonce; empty before the first.
    seen: Vec<Option<(u128, i64)>>,
    counts: DraftCounts,
}

/// Pages by who drafted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DraftCounts {
    /// The ranker with the lower index.
    pub lower: u64,
    /// The other one.
    pub higher: u64,
}

impl Drafts {
    /// Count the page of a duel that can be answered until `expires_ms`, once. While the place of
    /// another duel is taken, pages are left out, whoever drafts first.
    pub fn count(&mut self, nonce: u128, expires_ms: i64, now_ms: i64, lower_first: bool) {
        if self.seen.is_empty() {
            self.seen = vec![None; PAGES];
        }
        // the low half of a nonce counts the duels of a process
        let place = (nonce as u64 % PAGES as u64) as usize;
        if self.seen[place].is_some_and(|(_, until_ms)| now_ms <= until_ms) {
            return;
        }
        self.seen[place] = Some((nonce, expires_ms));
        let count = if lower_first { &mut self.counts.lower } else { &mut self.counts.higher };
        *count += 1;
    }

    /// The counts so far.
    pub fn counts(&self) -> DraftCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_counts_once_however_often_it_is_requested() {
        let mut drafts = Drafts::default();
        for repeat in 0..5 {
            drafts.count(77, 1000, repeat, true);
        }
        drafts.count(78, 1000, 10, false);
        assert_eq!(drafts.counts(), DraftCounts { lower: 1, higher: 1 });
        drafts.count(77 + 1024, 2000, 1000, true);
        assert_eq!(drafts.counts().lower, 1, "its place is taken");
        drafts.count(77 + 1024, 2000, 1001, true);
        assert_eq!(drafts.counts().lower, 2);
    }
}
