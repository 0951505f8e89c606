//! What a method makes of two lists: documents in the order they are shown, and whose they are.

use serde::{Deserialize, Serialize};

use super::coins::Coins;
use super::lists::Lists;
use super::optimized::plans::Plans;
use super::spec::{Method, Spec};
use super::{balanced, optimized, probabilistic, team_draft};

/// Whose a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Team {
    /// The left ranker's.
    Left,
    /// The right ranker's.
    Right,
    /// Both wanted it, or both rank it the same: nobody's.
    Both,
}

impl Team {
    /// The other side; both stays both.
    pub fn other(self) -> Self {
        match self {
            Team::Left => Team::Right,
            Team::Right => Team::Left,
            Team::Both => Team::Both,
        }
    }
}

/// One drafted document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Drafted {
    /// Its number.
    pub document: u32,
    /// Whose it is. Balanced and probabilistic interleaving credit by rank and not by team; there
    /// it is the side that the document was taken from.
    pub team: Team,
    /// Whether a click on it can earn credit.
    pub competitive: bool,
}

/// Something about a draft that a log should have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Note {
    /// Optimized interleaving: no distribution over the lists is free of bias; this is the largest
    /// that is left, as the mean credit of a position.
    Relaxed {
        /// Mean credit of the worst position.
        bias: f64,
    },
    /// Optimized interleaving: there were too many lists to weigh, or the linear program was not
    /// solved. Team draft was taken instead.
    FellBack,
}

/// The first documents of a shown list.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// In the order they are shown.
    pub slots: Vec<Drafted>,
    /// Something out of the ordinary.
    pub note: Option<Note>,
}

impl Draft {
    /// A draft of these slots.
    pub fn of(slots: Vec<Drafted>) -> Self {
        Self { slots, note: None }
    }

    /// Append what earns no credit, up to `length` documents in all.
    pub(super) fn append_tail(&mut self, lists: &Lists, length: usize) {
        let missing = length.saturating_sub(self.slots.len());
        self.slots.extend(lists.tail().iter().take(missing).map(|&document| {
            let team = if lists.ranks(document)[0] > 0 { Team::Left } else { Team::Right };
            Drafted { document, team, competitive: false }
        }));
    }
}

/// Draft the first `length` documents of the shown list, or as many as there are.
pub fn draft(
    spec: &Spec,
    lists: &Lists,
    length: usize,
    coins: &mut impl Coins,
    plans: &dyn Plans,
) -> Draft {
    match spec.method {
        Method::TeamDraft(parameters) => team_draft::draft(lists, parameters.shared, length, coins),
        Method::Balanced(_) => balanced::draft(lists, length, coins),
        Method::Probabilistic(parameters) => {
            probabilistic::draft(lists, parameters.tau, length, coins)
        }
        Method::Optimized(parameters) => optimized::draft(lists, parameters, length, coins, plans),
    }
}
