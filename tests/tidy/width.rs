//! Comments and prose wrap at 100 columns. The formatter checks code.

use std::path::Path;

use crate::tree::{self, File};
use crate::{Finding, check};

const COLUMNS: usize = 100;

#[test]
fn comments_and_prose_wrap_at_100_columns() {
    check(findings());
}

pub fn findings() -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree::files("") {
        let long = if file.is("md") { long_prose(&file) } else { long_comments(&file) };
        findings.extend(long.into_iter().map(|(line, columns)| {
            Finding::new(&file.path, line, format!("{columns} columns, at most {COLUMNS}"))
        }));
    }
    findings
}

/// Lines of Markdown outside code blocks, tables and headings.
fn long_prose(file: &File) -> Vec<(usize, usize)> {
    tree::prose(file.lines())
        .filter(|(_, line)| !line.trim_start().starts_with(['|', '#', '<']))
        .filter_map(too_long)
        .collect()
}

/// Lines that contain only a comment, except tables and code blocks in doc comments.
fn long_comments(file: &File) -> Vec<(usize, usize)> {
    let Some(mark) = comment_mark(file) else { return Vec::new() };
    let comments = file.lines().filter(|(_, line)| line.trim_start().starts_with(mark));
    let text = |line: &str| -> String {
        line.trim_start().trim_start_matches(['/', '!', '#', '-']).trim_start().to_owned()
    };
    let mut in_block = false;
    comments
        .filter(|(_, line)| {
            let text = text(line);
            in_block ^= tree::is_fence(&text);
            !in_block && !text.starts_with('|')
        })
        .filter_map(too_long)
        .collect()
}

fn comment_mark(file: &File) -> Option<&'static str> {
    // A migration that has run must never change: the database keeps its checksum.
    if file.path.starts_with("migrations") {
        return None;
    }
    let extension = file.path.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("rs" | "ts" | "js" | "c" | "java" | "go" | "php") => Some("//"),
        Some("py" | "rb" | "toml" | "yml" | "env" | "cfg") => Some("#"),
        None if is_script(file) || file.path == Path::new("Dockerfile") => Some("#"),
        _ => None,
    }
}

fn is_script(file: &File) -> bool {
    file.text.starts_with("#!")
}

/// The columns of a line that is too long. Link targets, addresses and long code spans cannot be
/// wrapped, so they do not count.
fn too_long((number, line): (usize, &str)) -> Option<(usize, usize)> {
    let whole = line.chars().count();
    if whole <= COLUMNS {
        return None;
    }
    let columns = without_addresses(line).chars().count();
    (columns > COLUMNS).then_some((number, columns))
}

fn without_addresses(line: &str) -> String {
    let mut text = line.to_owned();
    while let Some(start) = text.find("](") {
        let end = text[start..].find(')').map_or(text.len(), |end| start + end + 1);
        text.replace_range(start + 1..end, "");
    }
    let spans = text.split('`').enumerate();
    let is_wrapped = |(index, span): &(usize, &str)| index % 2 == 0 || span.len() < COLUMNS / 2;
    let text: String = spans.filter(is_wrapped).map(|(_, span)| span).collect();
    let words = text.split(' ').filter(|word| !word.contains("://"));
    words.collect::<Vec<_>>().join(" ")
}
