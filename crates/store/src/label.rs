//! The text of ids, names and labels, which people compare by eye.

use unicode_normalization::UnicodeNormalization as _;

/// Why a text is no label: `None` if it is one. What people cannot see must not tell two labels
/// apart. Marks of the writing direction are allowed, and a page isolates them; see
/// [`as_seen`].
pub fn label_fault(text: &str) -> Option<String> {
    let at = |place: usize, what: &str, c: char| {
        format!("character {} is {what}, U+{:04X}: remove it", place + 1, u32::from(c))
    };
    let unseen = text.chars().enumerate().find_map(|(place, c)| match c {
        c if c.is_control() => Some(at(place, "a control character", c)),
        c if is_invisible(c) => Some(at(place, "an invisible character", c)),
        '`' => Some(at(place, "a backtick, which quotes names in sentences", c)),
        c if is_blank(c) && c != ' ' => Some(at(place, "a blank that looks like a space", c)),
        _ => None,
    });
    let at_end = || match (text.starts_with(' '), text.ends_with(' ')) {
        (true, _) => Some("it starts with a blank: remove it".to_owned()),
        (_, true) => Some("it ends with a blank: remove it".to_owned()),
        _ => None,
    };
    unseen.or_else(at_end)
}

/// A text that two labels share if they look the same: with composed letters, and without the marks
/// of the writing direction.
pub fn as_seen(label: &str) -> String {
    let is_mark = |c: &char| {
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}')
    };
    label.nfc().filter(|c| !is_mark(c)).collect()
}

/// Characters that show nothing and take no place. From the property `Default_Ignorable_Code_Point`
/// of Unicode, without the marks of the writing direction, and with what else has no shape.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The last one is a letter of braille without dots.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{2800}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_cannot_see_is_named() {
        for (text, part) in [
            ("a\u{feff}", "character 2 is an invisible character, U+FEFF"),
            ("\u{200b}a", "character 1 is an invisible character, U+200B"),
            ("a\tb", "character 2 is a control character, U+0009"),
            ("a\u{a0}b", "character 2 is a blank that looks like a space, U+00A0"),
            ("a`b", "character 2 is a backtick, which quotes names in sentences, U+0060"),
            (" a", "starts with a blank"),
            ("a ", "ends with a blank"),
        ] {
            let fault = label_fault(text).unwrap_or_default();
            assert!(fault.contains(part), "{text:?}: {fault}");
        }
        for text in ["", "a b", "größe", "検索", "\u{202e}abc", "בדיקה", "😀"] {
            assert_eq!(label_fault(text), None, "{text:?}");
        }
    }
}
