//! Optimized interleaving (Radlinski and Craswell, "Optimized interleaving for online retrieval
//! evaluation", WSDM 2013).
//!
//! Every list whose next document is always the top remaining one of either side may be shown. A
//! linear program finds the distribution over them under which a searcher who clicks at a random
//! position prefers nobody, at every single position, and which tells the most of what a searcher
//! prefers ([`program`]). It depends on how the two lists are permuted and not on what is in them,
//! so that its solutions can be kept ([`plans`]).
//!
//! Only the first [`Optimized::depth`] positions are optimized and earn credit; both lists are cut
//! to that depth for it. What follows on later pages is a team draft without credit. The depth
//! belongs to the method and not to a page, so that all pages of a duel belong to one list.

use serde::{Deserialize, Serialize};

use super::coins::Coins;
use super::credit::{ClickedSlot, Score};
use super::draft::{Draft, Drafted, Note, Team};
use super::lists::Lists;
use super::team_draft::{self, Shared};
use plans::Plans;
use program::Question;

pub mod plans;
pub mod program;

/// Most positions that can be optimized: 1024 lists.
pub const MAX_DEPTH: u32 = 10;
/// Most lists that a linear program may weigh.
pub const MAX_LISTS: u32 = 1024;

/// Parameters of the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Optimized {
    /// What a click on a document is worth.
    pub credit: RankCredit,
    /// Positions that are optimized and credited, from the top.
    pub depth: u32,
    /// Lists that the linear program may weigh; where there are more, team draft is taken.
    pub max_lists: u32,
}

impl Default for Optimized {
    fn default() -> Self {
        Self { credit: RankCredit::default(), depth: MAX_DEPTH, max_lists: MAX_LISTS }
    }
}

/// What a click on a document is worth to the left, from its two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankCredit {
    /// `1/left - 1/right`.
    #[default]
    Inverse,
    /// `right - left`.
    Linear,
    /// The sign of `right - left`.
    Binary,
}

impl RankCredit {
    /// The credit of a document with these ranks on the left and on the right; positive is for the
    /// left.
    pub fn of(self, left: u32, right: u32) -> f64 {
        let difference = f64::from(right) - f64::from(left);
        match self {
            RankCredit::Inverse => 1.0 / f64::from(left) - 1.0 / f64::from(right),
            RankCredit::Linear => difference,
            RankCredit::Binary if difference == 0.0 => 0.0,
            RankCredit::Binary => difference.signum(),
        }
    }
}

/// Draft `length` documents, or as many as there are.
pub fn draft(
    lists: &Lists,
    parameters: Optimized,
    length: usize,
    coins: &mut impl Coins,
    plans: &dyn Plans,
) -> Draft {
    let depth = parameters.depth as usize;
    let (left, right) = (
        &lists.left()[..depth.min(lists.left().len())],
        &lists.right()[..depth.min(lists.right().len())],
    );
    let (question, documents) = Question::of(left, right, parameters);
    let Some(plan) = plans.plan(&question) else {
        let draft = team_draft::draft(lists, Shared::Collapse, length, coins);
        return Draft { note: Some(Note::FellBack), ..draft };
    };
    let chosen = &plan.lists[coins.choose(&plan.probabilities)];
    let mut slots: Vec<Drafted> = chosen
        .iter()
        .map(|&label| {
            let credit = question.credit(label);
            let team = if credit > 0.0 {
                Team::Left
            } else if credit < 0.0 {
                Team::Right
            } else {
                Team::Both
            };
            Drafted {
                document: documents[usize::from(label)],
                team,
                competitive: team != Team::Both,
            }
        })
        .collect();
    slots.truncate(length);
    let mut draft = Draft::of(team_draft::continued(lists, slots, length, coins));
    draft.append_tail(lists, length);
    draft.note = plan.is_biased().then_some(Note::Relaxed { bias: plan.bias });
    draft
}

/// The sum of the credits of the clicked documents, those of each side apart.
pub(super) fn score(clicked: &[ClickedSlot], credit: RankCredit) -> Score {
    let mut score = Score::default();
    for click in clicked {
        let worth = f64::from(click.weight) * credit.of(click.ranks[0], click.ranks[1]);
        if worth > 0.0 {
            score.left += worth;
        } else {
            score.right -= worth;
        }
    }
    score
}
