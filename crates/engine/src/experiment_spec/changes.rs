//! How often the log of an experiment changes each part of its spec.

/// Changes of a spec, by their part. Those of the rankers are
/// [`RosterChanges`](super::RosterChanges).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    pub control: usize,
    pub settings: u64,
    /// Entries that exclude units.
    pub exclusions: usize,
}

impl Changes {
    fn named(self) -> [(&'static str, u64); 3] {
        [
            ("the control", self.control as u64),
            ("settings", self.settings),
            ("the excluded units", self.exclusions as u64),
        ]
    }

    /// Whether a part was changed more often than in `known`.
    pub fn go_beyond(self, known: Self) -> bool {
        self.named().into_iter().zip(known.named()).any(|((_, own), (_, known))| own > known)
    }

    /// The parts that the log changes more or less often than this record, a sentence each.
    pub fn differences(self, in_log: Self) -> impl Iterator<Item = String> {
        let both = self.named().into_iter().zip(in_log.named());
        both.filter(|(own, logged)| own != logged).map(|((part, own), (_, logged))| {
            format!("its record has {own} changes of {part}, and its log has {logged}")
        })
    }
}
