//! The draft, and the score of clicks on it.

use super::instance::Instance;
use super::parameters::{Optimized, RankCredit};
use super::plans::Plans;
use crate::coins::Coins;
use crate::credit::{ClickedSlot, Score};
use crate::draft::{Draft, Drafted, Note, Team};
use crate::lists::Lists;
use crate::methods::team_draft::{self, Shared};
use crate::share::BoundedScore;

/// Drafts `length` documents, or fewer if there are not enough.
pub fn draft(
    lists: &Lists,
    parameters: Optimized,
    length: usize,
    coins: &mut impl Coins,
    plans: &dyn Plans,
) -> Draft {
    let (instance, documents) = Instance::of(lists.left(), lists.right(), parameters);
    let exchanged = Instance::of(lists.right(), lists.left(), parameters);
    let (sign, (instance, documents)) = if instance.stands_for(&exchanged.0) {
        (1.0, (instance, documents))
    } else {
        (-1.0, exchanged)
    };
    let plan = plans.plan(&instance);
    // A score is fair only if the page is drawn from an unbiased distribution.
    let usable = plan.filter(|plan| parameters.verdict.is_sign() || !plan.is_biased());
    let Some(plan) = usable else {
        let draft = team_draft::draft(lists, Shared::Collapse, length, coins);
        return Draft { note: Some(Note::FellBack), ..draft };
    };
    let chosen = &plan.lists[coins.choose(&plan.probabilities)];
    let mut slots: Vec<Drafted> = chosen
        .iter()
        .map(|&label| {
            let credit = sign * instance.credit(label);
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

/// The score of clicked documents, exactly. `most` is the weight that a score of full size has;
/// `depths` are the lengths of the lists after the cut.
pub(crate) fn bounded(
    clicked: &[ClickedSlot],
    credit: RankCredit,
    depths: [u32; 2],
    most: i128,
) -> BoundedScore {
    let value = clicked
        .iter()
        .map(|click| i128::from(click.weight) * credit.exact(click.ranks[0], click.ranks[1]))
        .sum();
    let deepest = depths[0].max(depths[1]) + 1;
    BoundedScore { value, bound: most * credit.exact(1, deepest) }
}
