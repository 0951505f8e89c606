//! A Rust file without the parts that must not be read as imports.

/// The text with comments, literals and items under `#[cfg(test)]` blanked. Line breaks stay, so
/// that positions still have their line.
pub fn code(text: &str) -> String {
    without_tests(&without_literals(text))
}

fn without_literals(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < letters.len() {
        let end = literal_end(&letters, at);
        match end {
            Some(end) => {
                let blank = |letter: &char| if *letter == '\n' { '\n' } else { ' ' };
                code.extend(letters[at..end].iter().map(blank));
                at = end;
            }
            None => {
                code.push(letters[at]);
                at += 1;
            }
        }
    }
    code
}

/// The end of the comment, string or character that starts here; `None` if none starts here.
fn literal_end(letters: &[char], start: usize) -> Option<usize> {
    let rest = &letters[start..];
    let find = |from: usize, wanted: &[char]| {
        let found = rest.get(from..)?.windows(wanted.len()).position(|window| window == wanted)?;
        Some(start + from + found + wanted.len())
    };
    let to_end = letters.len();
    match rest {
        ['/', '/', ..] => {
            let line = rest.iter().position(|letter| *letter == '\n');
            Some(line.map_or(to_end, |length| start + length))
        }
        ['/', '*', ..] => Some(find(2, &['*', '/']).unwrap_or(to_end)),
        ['"', ..] => Some(escaped_end(letters, start + 1, '"')),
        ['r', '"' | '#', ..] if !start.checked_sub(1).is_some_and(|i| is_name(letters[i])) => {
            let hashes = rest[1..].iter().take_while(|letter| **letter == '#').count();
            if rest.get(1 + hashes) != Some(&'"') {
                return None; // a raw identifier
            }
            let close: Vec<char> =
                std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            Some(find(2 + hashes, &close).unwrap_or(to_end))
        }
        ['\'', '\\', ..] => Some(escaped_end(letters, start + 1, '\'')),
        ['\'', _, '\'', ..] => Some(start + 3),
        _ => None,
    }
}

/// The end of a literal whose content starts at `at`, with escapes.
fn escaped_end(letters: &[char], mut at: usize, close: char) -> usize {
    while at < letters.len() && letters[at] != close {
        at += if letters[at] == '\\' { 2 } else { 1 };
    }
    letters.len().min(at + 1)
}

pub fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Blank each item that follows `#[cfg(test)]`: to its `;`, or to the end of its braces.
fn without_tests(code: &str) -> String {
    const ATTRIBUTE: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(ATTRIBUTE) {
        let item = &rest[start + ATTRIBUTE.len()..];
        let mut depth = 0_usize;
        let mut length = item.len();
        for (at, letter) in item.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && matches!(letter, ';' | '}') {
                length = at + 1;
                break;
            }
        }
        let (skipped, after) = item.split_at(length);
        kept.push_str(&rest[..start]);
        kept.extend(skipped.chars().filter(|letter| *letter == '\n'));
        rest = after;
    }
    kept + rest
}
