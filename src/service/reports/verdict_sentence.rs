//! The verdict as a sentence for people.

use crate::service::reports::claim::ClaimKind;
use crate::service::reports::claims::ControlView;
use crate::service::reports::orders::range;
use crate::service::reports::verdict_basis::VerdictBasis;
use crate::service::reports::verdict_report::{Verdict, VerdictState};
use crate::service::reports::words::{error, grouped, points};

/// The headline of the answer, the claim with its error, and what speaks against it. `is_own` says
/// whether the target is that of the experiment, which the headline is about.
pub(super) fn sentence(verdict: &Verdict, is_own: bool) -> String {
    let VerdictBasis { doubts, remark, .. } = &verdict.rests_on;
    let would_conclude = verdict.conclude_at.is_some() && verdict.concluded.is_none();
    let therefore = (!doubts.is_empty() && would_conclude)
        .then_some("While this is so, the experiment does not conclude by itself.");
    let headline = is_own.then_some(&*verdict.answer.headline);
    let claim = claim_with_error(verdict);
    let said = headline.into_iter().chain([&*claim]);
    let said = said.chain(doubts.iter().map(String::as_str)).chain(*remark).chain(therefore);
    said.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

fn claim_with_error(verdict: &Verdict) -> String {
    let error = error(verdict.confidence);
    match verdict.state {
        VerdictState::Decided => format!("{} {}", verdict.claim, error_of_claim(verdict)),
        VerdictState::NothingKnown if verdict.concluded.is_none() => String::new(),
        VerdictState::Open if verdict.concluded.is_none() => to_go(verdict),
        VerdictState::Open | VerdictState::NothingKnown => {
            let without = match verdict.rests_on.excluded_units {
                0 => "The",
                _ => "Without the answers of the excluded units, the",
            };
            format!(
                "{without} evidence is not enough for a verdict with a margin of {} that is wrong \
                 in at most {error} of experiments.",
                points(verdict.margin)
            )
        }
    }
}

/// How much longer an open verdict takes.
fn to_go(verdict: &Verdict) -> String {
    match verdict.duels_to_go.map(|to_go| to_go.estimate) {
        Some(0) => {
            "The answers that wait are enough for the verdict: it comes when they count.".into()
        }
        Some(more) if verdict.orders.is_some() => {
            let more = grouped(more, ',');
            format!("The verdict takes about {more} more people who order what they clicked.")
        }
        Some(1) => "The verdict takes about one more page.".into(),
        Some(pages) => format!("The verdict takes about {} more pages.", grouped(pages, ',')),
        None if verdict.orders.is_some() => {
            "There is no estimate yet of how many more orders the verdict takes.".into()
        }
        None => "There is no estimate yet of how many more pages the verdict takes.".into(),
    }
}

/// Number of active rankers.
fn active(verdict: &Verdict) -> usize {
    verdict.rankers.iter().filter(|row| !row.retired).count()
}

/// The rivals of a winner, in words.
fn all_others(verdict: &Verdict) -> String {
    match active(verdict) - 1 {
        1 => "the other one".into(),
        2 => "both others".into(),
        others => format!("all {others} others"),
    }
}

/// The claim of a verdict, without its error; empty while it is open.
pub(super) fn claim(verdict: &Verdict) -> String {
    let Some((winner, equal)) = verdict.winners.split_first() else { return String::new() };
    let (margin, all) = (points(verdict.margin), all_others(verdict));
    let but = match verdict.margin > 0.0 {
        true => format!(", if differences below {margin} do not count"),
        false => String::new(),
    };
    let by = verdict.orders.as_ref().map(|orders| format!(" {}", orders.by)).unwrap_or_default();
    let claimed = match (equal, verdict.condorcet) {
        ([], true) => {
            let or =
                if but.is_empty() { but } else { format!(", or is less than {margin} behind") };
            format!("`{winner}` is the best ranker{by}: it beats {all}{or}.")
        }
        ([], false) => format!(
            "`{winner}` is the best ranker{by}: no other ranker beats more of the others than it does{but}."
        ),
        ([most @ .., last], _) => {
            let most: String = most.iter().map(|id| format!(", `{id}`")).collect();
            format!(
                "`{winner}`{most} and `{last}` are equally good{by}: no other ranker beats more \
                 of the others than they do{but}. Choose any of them."
            )
        }
    };
    claimed + &credit_of_orders(verdict).unwrap_or_default()
}

/// The share of the credit for orders that the winner has.
fn credit_of_orders(verdict: &Verdict) -> Option<String> {
    let orders = verdict.orders.as_ref().filter(|_| verdict.winners.len() == 1)?;
    let low = verdict.effects.iter().map(|effect| effect.low).reduce(f64::min)?;
    let high = verdict.effects.iter().map(|effect| effect.high).reduce(f64::max)?;
    let against = if active(verdict) > 2 { "Against each of them, it" } else { "It" };
    Some(format!(
        " {against} has {} of the credit for what people order within {} of their first page.",
        range(low, high),
        orders.within
    ))
}

fn error_of_claim(verdict: &Verdict) -> String {
    let confidence = verdict.confidence;
    // that the winner also beats every other ranker is a second claim with an error of its own
    let beats_all = verdict.winners.len() == 1 && verdict.condorcet && active(verdict) > 2;
    let beats_all = beats_all.then(|| format!("the claim that it beats {}", all_others(verdict)));
    let is_better = |of: &&ControlView| of.proven == Some(ClaimKind::Better);
    let control = verdict.control.as_ref().filter(is_better);
    let own = 1.0 - confidence;
    let all = own
        + beats_all.as_ref().map_or(0.0, |_| own)
        + control.map_or(0.0, |control| control.error);
    let control = control.map(|_| "the comparison with what you run now".to_owned());
    let others: Vec<_> = beats_all.into_iter().chain(control).collect();
    let counting = match others.is_empty() {
        true => String::new(),
        false => {
            let all = error(1.0 - all.min(1.0));
            format!("; counting {}, in at most {all}", others.join(" and "))
        }
    };
    format!("A wrong verdict comes up in at most {} of experiments{counting}.", error(confidence))
}
