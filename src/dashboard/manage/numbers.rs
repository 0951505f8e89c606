//! Numbers as people write them.

use serde_json::Number;

use crate::http::extract::with_integers;

const NO_NUMBER: &str = "write a number with digits, such as 7 or 0.95";

/// The number in a field. A share can be written in percent. What can be read in two ways is
/// refused.
pub(super) fn read(text: &str, is_share: bool) -> Result<Number, String> {
    let none = || format!("`{text}` is no number: {NO_NUMBER}");
    let (number, is_percent) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), true),
        None => (text, false),
    };
    if is_percent && !is_share {
        return Err(format!("`{text}` is a percentage, which is none here: {NO_NUMBER}"));
    }
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let digits = decimal(digits, is_share).map_err(|ambiguous| match ambiguous {
        Some([one, other]) => {
            format!("`{text}` can be read as {one} and as {other}: write `{one}` or `{other}`")
        }
        None => none(),
    })?;
    let percent = if is_percent { "e-2" } else { "" };
    let text = format!("{sign}{digits}{percent}");
    // an integer with an exponent is read as one
    let written = with_integers(text.as_bytes()).filter(|_| digits.contains(['e', 'E']));
    serde_json::from_slice(written.as_deref().unwrap_or(text.as_bytes())).map_err(|_| none())
}

/// The digits with a point and without groups; else the two ways to read them, if there are two.
fn decimal(text: &str, is_share: bool) -> Result<String, Option<[String; 2]>> {
    let is_gap = |c: char| c.is_whitespace() || matches!(c, '\'' | '’');
    if text.contains(is_gap) {
        let (whole, rest) = match text.split_once(['.', ',']) {
            Some((whole, rest)) => (whole, format!(".{rest}")),
            None => (text, String::new()),
        };
        return Ok(ungrouped(whole, is_gap).ok_or(None)? + &rest);
    }
    let marks: Vec<char> = text.chars().filter(|c| matches!(c, '.' | ',')).collect();
    match marks[..] {
        [] => Ok(text.to_owned()),
        [mark] => {
            let (whole, part) = text.split_once(mark).unwrap_or_default();
            let decimal = format!("{}.{part}", if whole.is_empty() { "0" } else { whole });
            let is_group = ungrouped(text, |c| c == mark).is_some() && !whole.starts_with('0');
            if !is_group || is_share {
                return Ok(decimal);
            }
            let short = decimal.trim_end_matches('0').trim_end_matches('.');
            let has_three = short.len() == decimal.len();
            Err(Some([
                format!("{whole}{part}"),
                format!("{short}{}", if has_three { "0" } else { "" }),
            ]))
        }
        [group, .., last] => {
            if marks.iter().all(|mark| *mark == group) {
                return ungrouped(text, |c| c == group).ok_or(None);
            }
            let (whole, part) = text.rsplit_once(last).unwrap_or_default();
            let is_clean = !whole.contains(last);
            let whole = ungrouped(whole, |c| c == group).filter(|_| is_clean).ok_or(None)?;
            Ok(format!("{whole}.{part}"))
        }
    }
}

/// The digits of a number in groups of three; `None` if these are no such groups.
fn ungrouped(text: &str, is_gap: impl Fn(char) -> bool) -> Option<String> {
    let groups: Vec<&str> = text.split(is_gap).collect();
    let are_digits = groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_digit()));
    let (first, rest) = groups.split_first()?;
    let is_grouped = (1..=3).contains(&first.len()) && rest.iter().all(|group| group.len() == 3);
    (are_digits && is_grouped).then(|| groups.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_people_write_it_or_refused() {
        for (text, is_share, wanted) in [
            ("95 %", true, "0.95"),
            ("95%", true, "0.95"),
            ("7 %", true, "0.07"),
            ("2,5 %", true, "0.025"),
            ("0,95", true, "0.95"),
            ("0.950", true, "0.950"),
            ("1.000", true, "1.0"),
            ("9 000", false, "9000"),
            ("9\u{202f}000", false, "9000"),
            ("9'000", false, "9000"),
            ("1 234 567,5", false, "1234567.5"),
            ("1.234.567", false, "1234567"),
            ("1,234.5", false, "1234.5"),
            ("1.234,5", false, "1234.5"),
            ("0.040", false, "0.040"),
            ("1,5", false, "1.5"),
            (".5", false, "0.5"),
            ("-1", false, "-1"),
            ("1e3", false, "1000"),
        ] {
            let wanted: Number = serde_json::from_str(wanted).expect("a number");
            assert_eq!(read(text, is_share), Ok(wanted), "{text}");
        }
        for (text, is_share, part) in [
            ("10.000", false, "can be read as 10000 and as 10:"),
            ("10,000", false, "can be read as 10000 and as 10:"),
            ("2.125", false, "can be read as 2125 and as 2.1250:"),
            ("9 00", false, "`9 00` is no number"),
            ("1.23.4", false, "is no number"),
            ("1,234,5", false, "is no number"),
            ("50 %", false, "`50 %` is a percentage"),
            ("much", true, "`much` is no number: write a number with digits"),
            ("%", true, "is no number"),
            ("1e400", false, "is no number"),
        ] {
            let error = read(text, is_share).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
