//! The commands of the documents: the program accepts each of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A URL that is refused once the command line is understood, so that no command does anything.
const NO_DATABASE: &str = "nowhere";

/// A command line of a document, from `rankduel` on.
struct Line {
    place: String,
    text: String,
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<_> =
        ["README.md", "SECURITY.md", "CONTRIBUTING.md"].map(|it| root.join(it)).into();
    for folder in ["docs", "clients", "examples", "packaging"] {
        add_documents(&root.join(folder), &mut found);
    }
    found
}

fn add_documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of documents") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() && !path.ends_with("node_modules") {
            add_documents(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// The commands in the fenced blocks of a document. Continued lines are joined; a pipe, a
/// redirection and a comment end the command.
fn commands(path: &Path) -> Vec<Line> {
    let document = fs::read_to_string(path).expect("a document").replace("\\\n", " ");
    let mut in_block = false;
    let lines = document.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        in_block && !is_fence
    });
    lines
        .filter_map(|line| {
            let words = format!(" {line}");
            let (before, text) = words.split_once(" rankduel ")?;
            let starts_a_command = before.ends_with("&&")
                || before
                    .split_whitespace()
                    .all(|word| word.contains('=') || ["sudo", "-u"].contains(&word));
            // two blanks: a table of what some command prints
            let starts_a_command = starts_a_command && !text.starts_with(' ');
            // `sudo -u rankduel rankduel …`
            let text = text.strip_prefix("rankduel ").unwrap_or(text);
            let end = text.find(['|', '>', '#', ';']).unwrap_or(text.len());
            // a file of a package is not here
            let text = text[..end].trim().replace("@/etc/rankduel/database-url", NO_DATABASE);
            let place = format!("{}: {line}", path.display());
            starts_a_command.then_some(Line { place, text })
        })
        .collect()
}

#[test]
fn the_program_understands_each_command_of_the_documents() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines: Vec<_> = documents().iter().flat_map(|path| commands(path)).collect();
    assert!(lines.len() >= 25, "only {} commands were found", lines.len());
    for Line { place, text } in lines {
        // it takes no database: its arguments are understood, and it would run
        if text == "demo" {
            continue;
        }
        let program = env!("CARGO_BIN_EXE_rankduel");
        let output = Command::new("sh")
            .args(["-c", &format!("exec '{program}' {text}")])
            .current_dir(&folder)
            .env("RANKDUEL_DATABASE_URL", NO_DATABASE)
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("Usage:") && !said.starts_with("error:"), "{place}\n{said}");
    }
    assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 0, "a command wrote a file");
}
