//! The verdict as a sentence for people.

use dueling_bandits::evidence::{Certainty, Forecast};

/// What a verdict says, before it is put into words.
pub(super) struct Finding<'a> {
    pub certainty: &'a Certainty,
    /// Whether any pair has been compared.
    pub compared: bool,
    /// The most probable Copeland winner.
    pub leader: usize,
    pub leader_probability: f64,
    pub forecast: Option<&'a Forecast>,
    pub confidence: f64,
}

impl Finding<'_> {
    /// One or two sentences, with rankers named by `id`.
    pub fn sentence<'n>(&self, id: impl Fn(usize) -> &'n String) -> String {
        let certainty = self.certainty;
        let rankers = certainty.roster().active().len();
        let others = rankers - 1;
        let confidence = percent(self.confidence);
        match &certainty.certain()[..] {
            [] if !self.compared => {
                format!("Nothing is known yet: none of the {rankers} rankers has been compared.")
            }
            [] => {
                let possible = certainty.possible().len();
                let end = match self.forecast {
                    Some(forecast) => format!(
                        "About {} more duels at the present rate will decide it.",
                        grouped(rounded(forecast.estimate))
                    ),
                    None => "How many more duels it takes cannot be said yet.".into(),
                };
                format!(
                    "`{}` leads and is a best ranker with a probability of about {}, but {possible} of {rankers} rankers can \
                     still be the best. {end}",
                    id(self.leader),
                    percent(self.leader_probability)
                )
            }
            &[winner] if certainty.certain_wins(winner) == others => {
                let all = match others {
                    1 => "the other one".to_owned(),
                    others => format!("all {others} others"),
                };
                format!(
                    "`{}` is the best ranker: it beats {all}. That is {confidence} sure.",
                    id(winner)
                )
            }
            &[winner] => format!(
                "`{}` is the best ranker: it beats at least {} of the {others} others, and no other ranker beats so many. That \
                 is {confidence} sure.",
                id(winner),
                certainty.certain_wins(winner)
            ),
            winners => format!(
                "{} are equally good: none beats more others than they do. Any of them may be chosen. That is {confidence} \
                 sure.",
                winners
                    .iter()
                    .map(|&winner| format!("`{}`", id(winner)))
                    .collect::<Vec<_>>()
                    .join(" and ")
            ),
        }
    }
}

/// An estimate rounded to two significant digits.
pub(super) fn rounded(estimate: f64) -> u64 {
    if estimate < 100.0 {
        return estimate.ceil() as u64;
    }
    let unit = 10_f64.powf(estimate.log10().floor() - 1.0);
    ((estimate / unit).round() * unit) as u64
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
