//! The verdict as a sentence for people.

use crate::service::reports::conclusion::Conclusion;
use crate::service::reports::duels_to_go::DuelsToGo;
use crate::service::reports::grouped::grouped;
use dueling_bandits::evidence::Target;

/// The content of a verdict, before it is put into words.
pub(super) struct Finding<'a> {
    /// Number of active rankers.
    pub rankers: usize,
    /// Whether any pair has been compared.
    pub compared: bool,
    /// The most probable winner.
    pub leader: usize,
    pub leader_probability: f64,
    /// The certified winners.
    pub winners: &'a [usize],
    /// Whether the first winner is certified to beat every other ranker.
    pub condorcet: bool,
    /// Number of rankers that can still be the best.
    pub possible: usize,
    pub forecast: Option<&'a DuelsToGo>,
    pub target: Target,
    /// Whether that is the target of the experiment.
    pub is_own: bool,
    pub concluded: Option<&'a Conclusion>,
    /// Whether units are excluded, maybe since it was concluded.
    pub excluded: bool,
    pub doubts: &'a [String],
    pub remark: Option<&'a str>,
    /// Whether the experiment would conclude by itself without doubts.
    pub would_conclude: bool,
}

impl Finding<'_> {
    /// The verdict, and what speaks against it.
    pub fn with_doubts<'n>(&self, id: impl Fn(usize) -> &'n String) -> String {
        let therefore = (!self.doubts.is_empty() && self.would_conclude)
            .then_some("The experiment therefore does not conclude by itself.");
        let said = self.doubts.iter().map(String::as_str).chain(self.remark).chain(therefore);
        said.fold(self.sentence(id), |text, next| format!("{text} {next}"))
    }

    /// One to three sentences, with rankers named by `id`.
    pub fn sentence<'n>(&self, id: impl Fn(usize) -> &'n String) -> String {
        let rankers = self.rankers;
        if !self.winners.is_empty() {
            let verdict = format!("{} {}", self.claim(&id), self.error());
            return match self.concluded {
                Some(Conclusion { winner: Some(other), .. })
                    if self.winners.iter().all(|&winner| id(winner) != other) =>
                {
                    format!("{verdict} The experiment was concluded on `{other}` nevertheless.")
                }
                _ => verdict,
            };
        }
        if let Some(Conclusion { winner: Some(winner), .. }) = self.concluded
            && self.excluded
        {
            return format!(
                "The experiment was concluded on `{winner}`. Without the answers of the excluded units, the evidence is not \
                 enough for a verdict that is wrong in at most {} of experiments.",
                error(self.target.confidence)
            );
        }
        if let Some(Conclusion { winner: Some(winner), .. }) = self.concluded
            && !self.is_own
        {
            return format!(
                "The experiment was concluded on `{winner}`. The evidence is not enough for a verdict with a margin of {} that is \
                 wrong in at most {} of experiments.",
                points(self.target.margin),
                error(self.target.confidence)
            );
        }
        if let Some(Conclusion { winner: Some(winner), .. }) = self.concluded {
            return format!(
                "The experiment was concluded on `{winner}` without a verdict: the evidence was not yet enough for one that is \
                 wrong in at most {} of experiments.",
                error(self.target.confidence)
            );
        }
        if !self.compared {
            return format!(
                "Nothing is known yet: no duel of the {rankers} rankers has had a winner."
            );
        }
        let unproven = match (self.possible - 1, rankers - 1) {
            (_, 1) => String::new(),
            // each was ruled out once, but not yet all of them at one time
            (0, rivals) => format!(" against all of its {rivals} rivals at once"),
            (open, rivals) if open == rivals => format!(" against any of its {rivals} rivals"),
            (open, rivals) => format!(" against {open} of its {rivals} rivals"),
        };
        let end = match self.forecast {
            Some(DuelsToGo { estimate: 0, .. }) => {
                "The answers that wait are enough for the verdict: it comes when they count.".into()
            }
            Some(DuelsToGo { estimate: 1, .. }) => "The verdict takes about one more page.".into(),
            Some(DuelsToGo { estimate, .. }) => {
                format!("The verdict takes about {} more pages.", grouped(*estimate, ','))
            }
            None => "There is no estimate yet of how many more pages the verdict takes.".into(),
        };
        format!(
            "`{}` leads, but it is not yet proven to be a best ranker{unproven}. A model of the preferences gives it a probability \
             of about {}; the proof assumes no model and takes longer. {end}",
            id(self.leader),
            percent(self.leader_probability),
        )
    }

    /// The rivals of a winner, in words.
    fn all_others(&self) -> String {
        match self.rankers - 1 {
            1 => "the other one".into(),
            2 => "both others".into(),
            others => format!("all {others} others"),
        }
    }

    /// The claim of the verdict, without its error; empty without one.
    pub fn claim<'n>(&self, id: impl Fn(usize) -> &'n String) -> String {
        let Some((&winner, equal)) = self.winners.split_first() else { return String::new() };
        let (margin, all, winner) = (self.target.margin, self.all_others(), id(winner));
        let equal: Vec<_> = equal.iter().map(|&equal| id(equal)).collect();
        match (&equal[..], self.condorcet, margin > 0.0) {
            ([], true, false) => format!("`{winner}` is the best ranker: it beats {all}."),
            ([], true, true) => format!(
                "`{winner}` is the best ranker: it beats {all}, or is less than {} behind.",
                points(margin)
            ),
            ([], false, false) => format!(
                "`{winner}` is the best ranker: no other ranker beats more of the others than it does."
            ),
            ([], false, true) => format!(
                "`{winner}` is the best ranker: no other ranker beats more of the others than it does, if differences below {} \
                 do not count.",
                points(margin)
            ),
            (equal, _, _) => {
                let names: Vec<_> = equal.iter().map(|id| format!("`{id}`")).collect();
                let but = if margin > 0.0 {
                    format!(", if differences below {} do not count", points(margin))
                } else {
                    String::new()
                };
                let names = match &names[..] {
                    [] => String::new(),
                    [only] => format!(" and {only}"),
                    [most @ .., last] => format!(", {} and {last}", most.join(", ")),
                };
                format!(
                    "`{winner}`{names} are equally good: no other ranker beats more of the others than they do{but}. Choose any \
                     of them."
                )
            }
        }
    }

    /// The error of the claim.
    fn error(&self) -> String {
        let confidence = self.target.confidence;
        // the second claim has an error of its own where no ranker beats all others
        let both = if self.winners.len() == 1 && self.condorcet && self.rankers > 2 {
            let all = self.all_others();
            let twice = error(1.0 - (2.0 * (1.0 - confidence)).min(1.0));
            format!("; counting the claim that it beats {all}, in at most {twice}")
        } else {
            String::new()
        };
        let wrong = error(confidence);
        format!("A wrong verdict comes up in at most {wrong} of experiments{both}.")
    }
}

/// A margin as a difference of shares.
pub(super) fn points(margin: f64) -> String {
    let points = margin * 100.0;
    let unit = if points == 1.0 { "percentage point" } else { "percentage points" };
    format!("{} {unit}", short(points))
}

/// The share of experiments with a wrong verdict, as text: `5 %` for a confidence of 0.95.
pub(crate) fn error(confidence: f64) -> String {
    format!("{} %", short(100.0 * (1.0 - confidence)))
}

/// A share of answers, as text.
pub(super) fn share(share: f64) -> String {
    format!("{} %", short((1000.0 * share).round() / 10.0))
}

/// At most three digits after the point, and none that is not needed.
fn short(number: f64) -> String {
    format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share in percent, never rounded up to 100 %.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // all draws together are no certainty
    if percent > 99.0 {
        format!("{:.2} %", ((percent * 100.0).floor() / 100.0).min(99.99))
    } else {
        format!("{percent:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rivals_that_were_ruled_out_at_different_times_are_not_counted_as_open() {
        let ids = ["a", "b", "c", "d"].map(str::to_owned);
        let finding = |possible| Finding {
            rankers: 4,
            compared: true,
            leader: 0,
            leader_probability: 0.9,
            winners: &[],
            condorcet: false,
            possible,
            forecast: None,
            target: Target { confidence: 0.95, margin: 0.0 },
            is_own: true,
            concluded: None,
            excluded: false,
            doubts: &[],
            remark: None,
            would_conclude: true,
        };
        for (possible, expected) in [
            (4, "proven to be a best ranker against any of its 3 rivals."),
            (2, "proven to be a best ranker against 1 of its 3 rivals."),
            (1, "proven to be a best ranker against all of its 3 rivals at once."),
        ] {
            let sentence = finding(possible).sentence(|ranker| &ids[ranker]);
            assert!(sentence.contains(expected), "{sentence}");
        }
    }
}
