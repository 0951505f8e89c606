//! The verdict as a sentence for people.

use crate::service::reports::conclusion::Conclusion;
use crate::service::reports::duels_to_go::DuelsToGo;
use dueling_bandits::evidence::Target;

/// What a verdict says, before it is put into words.
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
    pub concluded: Option<&'a Conclusion>,
}

impl Finding<'_> {
    /// One to three sentences, with rankers named by `id`.
    pub fn sentence<'n>(&self, id: impl Fn(usize) -> &'n String) -> String {
        let rankers = self.rankers;
        if let &[winner, ref equal @ ..] = self.winners {
            let verdict =
                self.decided(id(winner), &equal.iter().map(|&i| id(i)).collect::<Vec<_>>());
            return match self.concluded {
                Some(Conclusion { winner: Some(other), .. })
                    if self.winners.iter().all(|&winner| id(winner) != other) =>
                {
                    format!("{verdict} The experiment was concluded on `{other}` nevertheless.")
                }
                _ => verdict,
            };
        }
        if let Some(Conclusion { winner: Some(winner), .. }) = self.concluded {
            return format!(
                "The experiment was concluded on `{winner}` without a verdict: the evidence was not yet enough to be {} sure.",
                percent(self.target.confidence)
            );
        }
        if !self.compared {
            return format!(
                "Nothing is known yet: none of the {rankers} rankers has been compared."
            );
        }
        let unproven = match (self.possible - 1, rankers - 1) {
            (_, 1) => String::new(),
            (open, rivals) if open == rivals => format!(" against any of its {rivals} rivals"),
            (open, rivals) => format!(" against {open} of its {rivals} rivals"),
        };
        let end = match self.forecast {
            Some(DuelsToGo { estimate, .. }) => {
                format!("The verdict takes about {} more pages.", grouped(*estimate))
            }
            None => "There is no estimate yet of how many more pages the verdict takes.".into(),
        };
        format!(
            "`{}` leads and is a best ranker with a probability of about {}, but this is not yet proven{unproven}. {end}",
            id(self.leader),
            percent(self.leader_probability),
        )
    }

    fn decided(&self, winner: &str, equal: &[&String]) -> String {
        let Target { confidence, margin } = self.target;
        let others = self.rankers - 1;
        let all = if others == 1 { "the other one".into() } else { format!("all {others} others") };
        let claim = match (equal, self.condorcet, margin > 0.0) {
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
                format!(
                    "`{winner}` and {} are equally good: no other ranker beats more of the others than they do{but}. Choose any \
                     of them.",
                    names.join(" and ")
                )
            }
        };
        format!("{claim} That is {} sure.", percent(confidence))
    }
}

/// A margin as a difference of shares.
fn points(margin: f64) -> String {
    let points = margin * 100.0;
    let unit = if points == 1.0 { "percentage point" } else { "percentage points" };
    format!("{points:.3}", points = points).trim_end_matches('0').trim_end_matches('.').to_owned()
        + " "
        + unit
}

/// `12000` as `12,000`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent, never rounded up to 100 %.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 99.0 && percent < 100.0 {
        format!("{:.2} %", (percent * 100.0).floor() / 100.0)
    } else {
        format!("{percent:.0} %")
    }
}
