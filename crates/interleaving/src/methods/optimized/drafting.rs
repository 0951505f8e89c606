//! The draft, and the score of clicks on it.

use super::instance::Instance;
use super::parameters::{Optimized, RankCredit};
use super::plans::Plans;
use crate::coins::Coins;
use crate::credit::{ClickedSlot, Score};
use crate::draft::{Draft, Drafted, Note, Team};
use crate::lists::Lists;
use crate::methods::team_draft::{self, Shared};

/// Drafts `length` documents, or fewer if there are not enough.
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
    let (instance, documents) = Instance::of(left, right, parameters);
    let Some(plan) = plans.plan(&instance) else {
        let draft = team_draft::draft(lists, Shared::Collapse, length, coins);
        return Draft { note: Some(Note::FellBack), ..draft };
    };
    let chosen = &plan.lists[coins.choose(&plan.probabilities)];
    let mut slots: Vec<Drafted> = chosen
        .iter()
        .map(|&label| {
            let credit = instance.credit(label);
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
    let mut draft = Draft::of(team_draft::extend_without_credit(lists, slots, length, coins));
    draft.append_tail(lists, length);
    draft.note = plan.is_biased().then_some(Note::Relaxed { bias: plan.bias });
    draft
}

/// The sum of the credits of the clicked documents, separately for each side.
pub(crate) fn score(clicked: &[ClickedSlot], credit: RankCredit) -> Score {
    let mut score = Score::default();
    for click in clicked {
        let credit = f64::from(click.weight) * credit.of(click.ranks[0], click.ranks[1]);
        if credit > 0.0 {
            score.left += credit;
        } else {
            score.right -= credit;
        }
    }
    score
}
