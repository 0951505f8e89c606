//! Drafting a list with the method of a spec.

use crate::coins::Coins;
use crate::credit::{CreditSheet, CreditSlot};
use crate::draft::{Draft, Note};
use crate::lists::Lists;
use crate::methods::optimized::Plans;
use crate::methods::{balanced, optimized, probabilistic, team_draft};
use crate::spec::{Method, Spec};

/// Drafts the first `length` documents of the shown list, or fewer if there are not enough.
pub fn draft(
    spec: &Spec,
    lists: &Lists,
    length: usize,
    coins: &mut impl Coins,
    plans: &dyn Plans,
) -> Draft {
    match spec.method {
        Method::TeamDraft(parameters) => team_draft::draft(lists, parameters.shared, length, coins),
        Method::Balanced(parameters) => balanced::draft(lists, parameters.credit, length, coins),
        Method::Probabilistic(parameters) => {
            probabilistic::draft(lists, parameters.tau, length, coins)
        }
        Method::Optimized(parameters) => optimized::draft(lists, parameters, length, coins, plans),
    }
}

impl CreditSheet {
    /// The sheet of a draft that is shown without changes.
    pub fn of(spec: &Spec, lists: &Lists, draft: &Draft) -> Self {
        // Probabilistic interleaving can show documents from far below the end of the page.
        let depth = match spec.method {
            Method::Probabilistic(_) => usize::MAX,
            _ => draft.slots.len(),
        };
        let [left, right] =
            [lists.left(), lists.right()].map(|list| &list[..depth.min(list.len())]);
        let fell_back = draft.note == Some(Note::FellBack);
        let credited = match spec.method {
            Method::Optimized(optimized) if !fell_back => optimized.depth as usize,
            _ => usize::MAX,
        };
        Self {
            depths: [lists.left(), lists.right()].map(|list| list.len().min(credited) as u32),
            informative: left != right && draft.slots.iter().any(|slot| slot.competitive),
            fell_back,
            slots: draft
                .slots
                .iter()
                .enumerate()
                .map(|(at, slot)| CreditSlot {
                    ranks: lists.ranks(slot.document),
                    team: (at < credited).then_some(slot.team),
                    competitive: slot.competitive,
                })
                .collect(),
        }
    }
}
