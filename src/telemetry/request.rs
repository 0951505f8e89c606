//! Plain data about a request: its caller's span, and the duels that it is about.

use std::collections::HashSet;
use std::fmt;

use smallvec::{SmallVec, smallvec};

/// The number of a duel in logs and spans: the nonce of its `duel_id`, as in an exported log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DuelNumber(pub u128);

impl fmt::Display for DuelNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A caller's span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// The trace.
    pub trace: u128,
    /// The caller's span in it.
    pub span: u64,
    /// Whether the caller keeps the trace.
    pub sampled: bool,
}

/// A duel that a request mentions, and whether the request issued it.
pub(super) type Mention = (DuelNumber, bool);

/// The duels that a request is about.
#[derive(Debug, Default)]
pub struct Duels {
    /// Each duel once: those that the request issued, then the others, in the order of mention.
    pub all: SmallVec<[DuelNumber; 1]>,
    /// How many of them, from the start, the request issued.
    pub issued: usize,
}

impl Duels {
    /// The duels of these mentions.
    pub(super) fn of(mentions: &[Mention]) -> Self {
        // the common case needs no comparison
        if let [(duel, issued)] = *mentions {
            return Self { all: smallvec![duel], issued: usize::from(issued) };
        }
        let mut known = HashSet::new();
        let mut of_kind = |kind| {
            let duels =
                mentions.iter().filter(|(_, issued)| *issued == kind).map(|(duel, _)| *duel);
            duels.filter(|duel| known.insert(*duel)).collect::<SmallVec<_>>()
        };
        let mut all = of_kind(true);
        let issued = all.len();
        all.extend(of_kind(false));
        Self { all, issued }
    }
}
