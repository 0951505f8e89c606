//! Replaced names and phrases do not come back. Each meaning has one word.

use crate::tree::{self, File};
use crate::{Finding, check};

/// How a word is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    /// The start of a word or of a part of an identifier, in upper or lower case.
    Start,
    /// An identifier as a whole.
    Identifier,
}

use Match::{Identifier, Start};

/// The refused words, each with its replacement.
const WORDS: &[(&str, Match, &str)] = &[
    ("comings", Start, "roster changes"),
    ("founder", Start, "initial rankers"),
    ("newcomer", Start, "added ranker"),
    ("Teller", Identifier, "notifier"),
    ("deaf", Start, "without notifications"),
    ("Clicker", Identifier, "click model"),
    ("SignOdds", Identifier, "win probabilities"),
    ("AboveHalf", Identifier, "pairwise sampling"),
    ("plain form", Start, "reference implementation"),
    ("plain_form", Start, "reference implementation"),
    ("PlainForm", Start, "reference implementation"),
    ("droppable", Start, "evictable"),
    ("upkeep", Start, "maintenance"),
    ("Glance", Identifier, "peek"),
    ("glance(", Start, "peek"),
    ("outgrown", Start, "stale roster"),
    ("AtOnce", Identifier, "fast path"),
    ("Judged", Identifier, "authorization decision"),
    ("keyring", Start, "signing key set"),
    ("OtherEvent", Identifier, "control event"),
    ("other_event", Start, "control event"),
    ("fold_chance", Start, "step RNG"),
    ("sureness", Start, "confidence"),
    ("is dear", Start, "is expensive"),
    ("are dear", Start, "are expensive"),
    ("too dear", Start, "too expensive"),
    ("dear to", Start, "expensive to"),
    ("hand out", Start, "issue"),
    ("hands out", Start, "issues"),
    ("handed out", Start, "issued"),
    ("handing out", Start, "issuing"),
    ("ask for a duel", Start, "request a duel"),
    ("asks for a duel", Start, "requests a duel"),
    ("asked for a duel", Start, "requested a duel"),
    ("asking for a duel", Start, "requesting a duel"),
    ("as it should be", Start, "say what is invalid"),
    ("hears nothing", Start, "receives no notification"),
    ("hear nothing", Start, "receive no notification"),
    ("what came of", Start, "the result of"),
];

/// Names of source files, without `.rs`, that are refused.
const FILE_NAMES: [&str; 9] =
    ["comings", "following", "glance", "keyring", "live", "ring", "signs", "telling", "upkeep"];

#[test]
fn replaced_words_do_not_come_back() {
    check(findings());
}

pub fn findings() -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree::files("").iter().filter(|file| is_searched(file)) {
        for (line, text) in file.lines() {
            if begins_with_what(text) {
                let message = "a comment begins with the thing that it describes, not with What";
                findings.push(Finding::new(&file.path, line, message.to_owned()));
            }
            for (word, how, instead) in WORDS {
                if contains(text, word, *how) {
                    let message = format!("\"{word}\": write \"{instead}\"");
                    findings.push(Finding::new(&file.path, line, message));
                }
            }
        }
        let stem = file.path.file_stem().and_then(|stem| stem.to_str());
        if file.is("rs") && stem.is_some_and(|stem| FILE_NAMES.contains(&stem)) {
            findings.push(Finding::new(&file.path, 0, "a file name that was replaced"));
        }
    }
    findings
}

/// Sources, scripts and pages. Data, and migrations, which must never change, are left out.
fn is_searched(file: &File) -> bool {
    let is_data = file.path.starts_with("migrations") || file.path.starts_with("tests/fixtures");
    let is_this = file.path.starts_with("tests/tidy");
    let is_text = ["rs", "md", "py", "ts", "js", "java", "go", "php", "rb", "toml", "yml", "yaml"];
    !is_data
        && !is_this
        && (is_text.iter().any(|extension| file.is(extension)) || file.text.starts_with("#!"))
}

/// Whether a line is the start of a Rust comment such as "What is left of it".
fn begins_with_what(line: &str) -> bool {
    let comment = line.trim_start().strip_prefix("//");
    comment.is_some_and(|text| text.trim_start_matches(['/', '!']).starts_with(" What "))
}

fn contains(text: &str, word: &str, how: Match) -> bool {
    let (text, word) = match how {
        Start => (text.to_lowercase(), word.to_lowercase()),
        Identifier => (text.to_owned(), word.to_owned()),
    };
    text.match_indices(&word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let is_name = |c: Option<char>| is_letter(c) || c == Some('_');
        match how {
            Start => !is_letter(before),
            Identifier => !is_name(before) && !is_name(after),
        }
    })
}

#[test]
fn words_are_recognized_at_their_start_and_identifiers_as_a_whole() {
    assert!(contains("let newcomers = 1;", "newcomer", Start));
    assert!(contains("fn fold_comings()", "comings", Start));
    assert!(contains("A Newcomer", "newcomer", Start));
    assert!(!contains("its shortcomings", "comings", Start));
    assert!(contains("impl Teller for X", "Teller", Identifier));
    assert!(!contains("StoryTeller", "Teller", Identifier));
    assert!(!contains("a teller", "Teller", Identifier));
    assert!(begins_with_what("    /// What is left of it.") && !begins_with_what("// Whatever"));
}
