//! For how long no check can find a verdict.

/// What a check has found out about the outcomes that come next: as long as there are no more of
/// certain pairs than the check allows, nothing can be certified.
#[derive(Debug, Clone, Default)]
pub(super) struct Quiet {
    limits: Vec<Limit>,
}

/// Outcomes that may come.
#[derive(Debug, Clone, Copy)]
struct Limit {
    of: Pairs,
    left: u64,
}

/// The pairs whose outcomes matter. Rankers are places in the list of active ones.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pairs {
    /// Those of any of these rankers.
    Of([usize; 2]),
    All,
}

impl Pairs {
    fn contain(self, (x, y): (usize, usize)) -> bool {
        match self {
            Self::Of(rankers) => rankers.contains(&x) || rankers.contains(&y),
            Self::All => true,
        }
    }
}

impl Quiet {
    /// Allow so many outcomes of these pairs, besides the limits so far. Without any limit, the
    /// next check is due at once.
    pub fn allow(&mut self, of: Pairs, outcomes: u64) {
        self.limits.push(Limit { of, left: outcomes });
    }

    /// The next check is due at once.
    pub fn end(&mut self) {
        self.limits.clear();
    }

    /// `count` outcomes came: of the pair of these places, or of any pairs. Returns whether a check
    /// still finds nothing. Once it does not, a check is due until there are new limits.
    pub fn lasts(&mut self, pair: Option<(usize, usize)>, count: u64) -> bool {
        for limit in &mut self.limits {
            if pair.is_some_and(|pair| !limit.of.contain(pair)) {
                continue;
            }
            let Some(left) = limit.left.checked_sub(count) else {
                self.end();
                return false;
            };
            limit.left = left;
        }
        !self.limits.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_the_outcomes_of_its_rankers() {
        let mut quiet = Quiet::default();
        assert!(!quiet.lasts(Some((0, 1)), 1), "without a limit");
        quiet.allow(Pairs::Of([2, 2]), 2);
        quiet.allow(Pairs::Of([0, 3]), 1);
        quiet.allow(Pairs::All, 200);
        assert!(quiet.lasts(Some((1, 4)), 100));
        assert!(quiet.lasts(Some((4, 2)), 1) && quiet.lasts(Some((1, 3)), 1));
        assert!(quiet.lasts(Some((2, 1)), 1));
        assert!(!quiet.lasts(Some((0, 1)), 1));
        assert!(!quiet.lasts(Some((1, 4)), 1), "a check is still due");
    }

    #[test]
    fn outcomes_of_unknown_pairs_count_for_every_limit() {
        let mut quiet = Quiet::default();
        quiet.allow(Pairs::Of([0, 1]), 5);
        assert!(quiet.lasts(None, 5) && quiet.lasts(Some((2, 3)), 9));
        assert!(!quiet.lasts(None, 1));
    }
}
