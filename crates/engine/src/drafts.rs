//! Which ranker of a pair drafts first on pages, counted when the page is made. Counted on answered
//! pages it would depend on which pages get a click.

/// Number of slots in [`Drafts::occupied_until`].
const SLOTS: usize = 1024;

/// Counts of the pages that this process made.
#[derive(Debug, Default)]
pub struct Drafts {
    /// Unix milliseconds at which the duel that occupies a slot expires; empty before the first
    /// page. A slot stays occupied until then, so a page that is requested again is not counted
    /// again. After that, a request for the page of this duel is refused.
    occupied_until: Vec<i64>,
    counts: DraftCounts,
}

/// Number of pages by the ranker of the pair that drafted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DraftCounts {
    /// Pages on which the ranker with the lower index drafted first.
    pub lower: u64,
    /// Pages on which the other ranker did.
    pub higher: u64,
}

impl Drafts {
    /// Count the page of a duel that expires at `expires_ms`, once. A page whose slot another
    /// unexpired duel occupies is not counted, whichever ranker drafts first.
    pub fn count(&mut self, nonce: u128, expires_ms: i64, now_ms: i64, lower_first: bool) {
        if self.occupied_until.is_empty() {
            self.occupied_until = vec![i64::MIN; SLOTS];
        }
        // the low half of a nonce counts the duels of a process
        let slot = &mut self.occupied_until[(nonce as u64 % SLOTS as u64) as usize];
        if now_ms <= *slot {
            return;
        }
        *slot = expires_ms;
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
        assert_eq!(drafts.counts().lower, 1, "its slot is occupied");
        drafts.count(77 + 1024, 2000, 1001, true);
        assert_eq!(drafts.counts().lower, 2);
    }
}
