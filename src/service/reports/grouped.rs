//! Large numbers for people.

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
