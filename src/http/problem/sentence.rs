//! Error messages as sentences.

/// Error messages start in lower case, as parts of a line on a terminal. In a problem they are
/// sentences.
pub(crate) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    match letters.next() {
        Some(first) => {
            format!("{}{}.", first.to_uppercase(), letters.as_str().trim_end_matches('.'))
        }
        None => String::new(),
    }
}
