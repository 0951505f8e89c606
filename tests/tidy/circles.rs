//! The files of a crate do not import each other in a circle: each can be read after those that it
//! imports. A file that declares others may import from them, and they from it. Comments do not
//! count.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Finding, check, tree};

/// The path of a module in its crate.
type Module = Vec<String>;

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    check(tree::crates().iter().flat_map(|(_, source)| findings(source)).collect());
}

fn findings(source: &str) -> Vec<Finding> {
    let mut files = BTreeMap::new();
    for file in tree::files(source).into_iter().filter(|file| file.is("rs")) {
        let below = file.path.strip_prefix(source).expect("below the source").with_extension("");
        let names = below.iter().filter_map(|name| name.to_str());
        let names = names.filter(|name| !["lib", "main", "mod"].contains(name));
        files.insert(names.map(str::to_owned).collect::<Module>(), file);
    }
    let all: Vec<_> = files.keys().cloned().collect();
    files.retain(|own, _| !all.iter().any(|it| it.len() > own.len() && it.starts_with(own)));
    let imports: BTreeMap<&Module, BTreeSet<&Module>> = files
        .iter()
        .map(|(own, file)| {
            let paths = paths(own, &file.text);
            let of = |path: &Module| files.keys().rfind(|it| path.starts_with(it));
            (own, paths.iter().filter_map(of).filter(|it| *it != own).collect())
        })
        .collect();
    let leads_to = |from: &&&Module, to: &Module| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![**from]);
        while let Some(next) = open.pop() {
            open.extend(imports[next].iter().filter(|it| reached.insert(**it)));
        }
        reached.contains(to)
    };
    let mut findings = Vec::new();
    for (own, file) in &files {
        let back = imports[own].iter().filter(|next| leads_to(next, own));
        let back: Vec<_> = back.map(|next| next.join("::")).collect();
        if !back.is_empty() {
            let message = format!("imports that lead back to it: {back:?}");
            findings.push(Finding::new(&file.path, 0, message));
        }
    }
    findings
}

/// The paths from the root of the crate that the text of a module has.
fn paths(own: &Module, text: &str) -> Vec<Module> {
    let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let starts = code.match_indices("crate::").chain(code.match_indices("super::"));
    let starts = starts.filter(|(at, _)| !code[..*at].ends_with(|c| is_name(c) || c == ':'));
    let mut paths = Vec::new();
    for (at, _) in starts {
        let end = code[at..].find(|c| !is_name(c) && c != ':').map_or(code.len(), |end| at + end);
        let (path, rest) = code[at..].split_at(end - at);
        let group = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        for item in group.map_or("", |(items, _)| items).split(',') {
            let mut names = own.clone();
            for name in path.split("::").chain(item.trim().split("::")) {
                match name {
                    "crate" => names.clear(),
                    "super" => drop(names.pop()),
                    name => names.push(name.to_owned()),
                }
            }
            names.retain(|name| !name.is_empty());
            paths.push(names);
        }
    }
    paths
}
