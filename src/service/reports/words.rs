//! Numbers for people.

/// The digits in groups of three: `12000` is `12,000` with the separator `,`.
pub(crate) fn grouped(number: u64, separator: char) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * separator.len_utf8());
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// A margin as a difference of shares.
pub(crate) fn points(margin: f64) -> String {
    let points = margin * 100.0;
    let unit = if points == 1.0 { "point" } else { "points" };
    format!("{} {unit}", short(points))
}

/// The lead of a ranker that wins this share of its duels with another one, as the start of a
/// sentence about it: `is 3.2 points ahead of`.
pub(super) fn ahead(share: f64) -> String {
    match (1000.0 * (share - 0.5)).round() / 1000.0 {
        0.0 => "is level with".into(),
        lead if lead > 0.0 => format!("is {} ahead of", points(lead)),
        lead => format!("is {} behind", points(-lead)),
    }
}

/// A proven bound of a lead in points. It is rounded towards zero, so that the text claims no more
/// than the proof.
pub(crate) fn proven_points(lead: f64) -> String {
    points((1000.0 * lead + 1e-9).floor() / 1000.0)
}

/// The claim that a ranker is better than the control, as text: better by the margin.
pub(crate) fn better_by(margin: f64) -> String {
    if margin > 0.0 { format!("better by {}", points(margin)) } else { "better".into() }
}

/// The share of experiments with a wrong verdict, as text: `5 %` for a confidence of 0.95.
pub(super) fn error(confidence: f64) -> String {
    format!("{} %", short(100.0 * (1.0 - confidence)))
}

/// A share of answers, as text.
pub(crate) fn share(share: f64) -> String {
    format!("{} %", short((1000.0 * share).round() / 10.0))
}

/// At most three digits after the point, and none that is not needed.
fn short(number: f64) -> String {
    format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number of the magnitude of a forecast.
pub(super) fn two_digits(number: f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    // the text has the digits, without the rounding errors of powers of ten
    format!("{number:.1e}").parse().unwrap_or(number)
}

/// A time, to the minute.
pub(super) fn moment(unix_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(unix_ms).map_or_else(
        |_| unix_ms.to_string(),
        |it| it.strftime("%H:%M UTC on %a %-d %b").to_string(),
    )
}

/// A number of days, in hours or minutes if it is a small part of them.
pub(super) fn days_in_words(days: f64) -> String {
    let (hours, minutes) = (two_digits(24.0 * days), (1440.0 * days).round());
    match days {
        1.0 => "1 day".into(),
        _ if minutes == 1.0 => "1 minute".into(),
        _ if minutes < 60.0 => format!("{minutes} minutes"),
        _ if hours == 1.0 => "1 hour".into(),
        _ if hours < 24.0 => format!("{hours} hours"),
        days if days >= 1000.0 => format!("{} days", grouped(days.round() as u64, ',')),
        days => format!("{days} days"),
    }
}
