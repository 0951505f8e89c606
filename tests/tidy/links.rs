//! Relative links, anchors, file names and commands of installers in the documentation lead
//! somewhere.

use std::path::{Component, Path, PathBuf};

use crate::tree::{self, File};
use crate::{Finding, check};

/// Folders whose files are named by their path from the root in documentation and comments.
const FOLDERS: [&str; 11] = [
    "clients",
    "conformance",
    "crates",
    "deploy",
    "docs",
    "fuzz",
    "migrations",
    "packaging",
    "scripts",
    "src",
    "tests",
];

#[test]
fn links_anchors_and_paths_lead_somewhere() {
    check(findings());
}

pub fn findings() -> Vec<Finding> {
    let files = tree::files("");
    let mut findings = Vec::new();
    for file in &files {
        if file.is("md") {
            // the page of a package is read where it is published
            if !file.path.starts_with("packaging/python") {
                findings.extend(unpublished(file));
            }
            findings.extend(dead_links(file, &files));
            findings.extend(dead_paths(file, tree::prose(file.lines())));
        } else if file.is("rs") {
            let is_comment = |line: &str| line.trim_start().starts_with("//");
            findings.extend(dead_paths(file, file.lines().filter(|(_, line)| is_comment(line))));
        }
    }
    findings
}

/// Commands that install what is not published yet, without saying so. The README begins with
/// commands that work in a clone.
fn unpublished(file: &File) -> Vec<Finding> {
    const INSTALLERS: [&str; 6] =
        ["cargo add", "composer require", "gem install", "go get", "npm install", "pip install"];
    /// What such a command installs from a clone.
    const MADE_THERE: [&str; 5] = [".whl", ".gem", ".tgz", "$CLONE", ":@dev"];
    const SAYS_SO: &str = "nothing is published yet";
    let is_ours = |line: &str| {
        let Some(rest) = INSTALLERS.iter().find_map(|it| line.strip_prefix(it)) else {
            return false;
        };
        ["rankduel", "dueling-bandits", "interleaving"].iter().any(|name| rest.contains(name))
            && !MADE_THERE.iter().any(|it| rest.contains(it))
    };
    let fails = file.lines().filter(|(_, line)| is_ours(line) && !line.contains(SAYS_SO));
    let mut findings: Vec<_> =
        fails.map(|(line, _)| Finding::new(&file.path, line, "nothing is published yet")).collect();
    if file.path == Path::new("README.md") {
        let mut lines = file.lines().skip_while(|(_, line)| !tree::is_fence(line)).skip(1);
        for (line, command) in lines.by_ref().take_while(|(_, line)| !tree::is_fence(line)) {
            let program = command.split(' ').next().unwrap_or_default();
            if program != "cargo" && !tree::root().join(program).is_file() {
                findings.push(Finding::new(&file.path, line, "this does not work in a clone"));
            }
        }
    }
    findings
}

fn dead_links(file: &File, files: &[File]) -> Vec<Finding> {
    let folder = file.path.parent().expect("a folder");
    let mut findings = Vec::new();
    for (line, text) in tree::prose(file.lines()) {
        for target in targets(&without_code(text)) {
            let (path, anchor) = match target.split_once('#') {
                Some((path, anchor)) => (path, Some(anchor)),
                None => (target.as_str(), None),
            };
            let path = if path.is_empty() { file.path.clone() } else { normal(&folder.join(path)) };
            if !tree::root().join(&path).exists() {
                findings.push(Finding::new(&file.path, line, format!("no file {target}")));
            } else if let Some(anchor) = anchor
                && let Some(page) = files.iter().find(|other| other.path == path && other.is("md"))
                && !anchors(page).iter().any(|known| known == anchor)
            {
                findings.push(Finding::new(&file.path, line, format!("no anchor {target}")));
            }
        }
    }
    findings
}

/// The targets of the links in a line: Markdown links, definitions of references, and HTML
/// attributes. Addresses on other hosts are omitted.
fn targets(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, end) in [("](", ')'), ("href=\"", '"'), ("src=\"", '"')] {
        for after in line.split(start).skip(1) {
            found.extend(after.split(end).next());
        }
    }
    if line.starts_with('[')
        && let Some((_, target)) = line.split_once("]: ")
    {
        found.push(target);
    }
    found
        .into_iter()
        .filter_map(|target| target.split_whitespace().next())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .map(str::to_owned)
        .collect()
}

/// The line with the content of its code spans blanked.
fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    let text = parts.map(|(index, part)| if index % 2 == 0 { part } else { "" });
    text.collect::<Vec<_>>().join("`")
}

/// The anchors of a page: its headings as GitHub names them, and explicit ids.
fn anchors(page: &File) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in tree::prose(page.lines()) {
        for attribute in ["id=\"", "name=\""] {
            let ids = line.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
            anchors.extend(ids.map(str::to_owned));
        }
        let heading = line.trim_start_matches('#');
        if line.starts_with('#') && heading.starts_with(' ') {
            let name = heading_anchor(heading.trim());
            let repeated = (1..).map(|number| format!("{name}-{number}"));
            let free = std::iter::once(name.clone()).chain(repeated);
            let anchor = free.into_iter().find(|anchor| !anchors.contains(anchor));
            anchors.extend(anchor);
        }
    }
    anchors
}

fn heading_anchor(heading: &str) -> String {
    let mut text = heading.to_owned();
    while let Some(start) = text.find("](") {
        let end = text[start..].find(')').map_or(text.len(), |end| start + end + 1);
        text.replace_range(start..end, "");
    }
    text.to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// Code spans that are a path below one of [`FOLDERS`] without a file there.
fn dead_paths<'a>(file: &File, lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in lines {
        let parts: Vec<_> = text.split('`').collect();
        // a span that continues on the next line is omitted
        let spans = parts.iter().skip(1).step_by(2).take((parts.len() - 1) / 2);
        for span in spans {
            let is_path = span.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
            let folder = span.split_once('/').map(|(folder, _)| folder);
            let is_ours = folder.is_some_and(|folder| FOLDERS.contains(&folder));
            if is_path && is_ours && !exists_for(file, span) {
                findings.push(Finding::new(&file.path, line, format!("no file {span}")));
            }
        }
    }
    findings
}

/// Paths start at the root of the repository or of the file's own crate or client.
fn exists_for(file: &File, path: &str) -> bool {
    let own: PathBuf = file.path.components().take(2).collect();
    tree::root().join(path).exists() || tree::root().join(own).join(path).exists()
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[test]
fn headings_have_the_anchors_that_github_gives_them() {
    for (heading, anchor) in [
        ("One duel, step by step", "one-duel-step-by-step"),
        ("`next-duel` and *feedback*", "next-duel-and-feedback"),
        ("The [log](log.md): what it is", "the-log-what-it-is"),
        ("max_width", "max_width"),
    ] {
        assert_eq!(heading_anchor(heading), anchor);
    }
}
