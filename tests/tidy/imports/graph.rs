//! The graph of imports: reading it, and finding its cycles.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::source::{code, is_name};
use crate::tree::File;

/// A module by its path from the crate's root; `crate` itself has no names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Module(Vec<String>);

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("the crate's root")
        } else {
            f.write_str(&self.0.join("::"))
        }
    }
}

impl Module {
    fn of_file(path: &Path) -> Self {
        let mut names: Vec<String> = path
            .with_extension("")
            .components()
            .map(|component| component.as_os_str().to_string_lossy().into_owned())
            .collect();
        if names.last().is_some_and(|name| ["mod", "lib"].contains(&name.as_str())) {
            names.pop();
        }
        Self(names)
    }

    fn child(&self, name: &str) -> Self {
        Self(self.0.iter().cloned().chain([name.to_owned()]).collect())
    }

    fn parent(&self) -> Self {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    /// The top-level module that is this module or contains it.
    pub fn top(&self) -> Option<&str> {
        self.0.first().map(String::as_str)
    }
}

/// An import of one file by another.
#[derive(Debug)]
pub struct Import {
    pub from: Module,
    pub to: Module,
    pub line: usize,
}

#[derive(Debug)]
pub struct Graph {
    pub files: BTreeMap<Module, PathBuf>,
    pub imports: Vec<Import>,
    /// The names that a module re-exports, each with its path.
    exports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

impl Graph {
    /// The graph of a crate with these files, whose sources are in the folder `source`.
    pub fn read(files: Vec<File>, source: &str) -> Self {
        let mut graph =
            Self { files: BTreeMap::new(), imports: Vec::new(), exports: BTreeMap::new() };
        let mut codes = Vec::new();
        for file in files.into_iter().filter(|file| file.is("rs")) {
            let path = file.path.strip_prefix(source).expect("below the sources").to_owned();
            // the binary is a crate of its own
            if path != Path::new("main.rs") {
                let module = Module::of_file(&path);
                codes.push((module.clone(), code(&file.text)));
                graph.files.insert(module, file.path);
            }
        }
        let mut names = Vec::new();
        for (module, code) in &codes {
            let (uses, rest) = split_uses(code);
            for item in uses {
                for (path, name) in item.paths {
                    if item.is_public {
                        graph.exports.entry(module.clone()).or_default().insert(name, path);
                    } else {
                        names.push((module.clone(), item.line, path));
                    }
                }
            }
            let inline = inline_paths(&rest);
            names.extend(inline.into_iter().map(|(line, path)| (module.clone(), line, path)));
        }
        let mut seen = BTreeSet::new();
        for (from, line, path) in names {
            if let Some(to) = graph.resolve(&from, &path, 0)
                && to != from
                && graph.files.contains_key(&to)
                && seen.insert((from.clone(), to.clone()))
            {
                graph.imports.push(Import { from, to, line });
            }
        }
        graph
    }

    /// The module whose file a path leads to, if it stays in the crate.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let mut names = path.iter().map(String::as_str).peekable();
        let mut module = from.clone();
        match *names.peek()? {
            "crate" => {
                names.next();
                module = Module(Vec::new());
            }
            "self" => drop(names.next()),
            "super" => {
                while names.next_if_eq(&"super").is_some() {
                    module = module.parent();
                }
            }
            name if self.files.contains_key(&from.child(name)) => {}
            _ => return None,
        }
        while let Some(child) = names.peek().map(|name| module.child(name))
            && self.files.contains_key(&child)
        {
            names.next();
            module = child;
        }
        let exported = names.peek().and_then(|name| self.exports.get(&module)?.get(*name));
        let definition = exported.filter(|_| depth < 8);
        definition.and_then(|path| self.resolve(&module, path, depth + 1)).or(Some(module))
    }

    /// Sets of files that import each other, directly or indirectly.
    pub fn cycles(&self) -> Vec<BTreeSet<Module>> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.files.keys().map(|module| (module, self.reached_from(module))).collect();
        let mut cycles: Vec<BTreeSet<Module>> = Vec::new();
        for (module, others) in &reached {
            let with = others.iter().filter(|other| reached[**other].contains(*module));
            let cycle: BTreeSet<Module> = with.map(|other| (*other).clone()).collect();
            if !cycle.is_empty() && !cycles.contains(&cycle) {
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// Every module that can be reached by one or more imports.
    fn reached_from<'a>(&'a self, module: &Module) -> BTreeSet<&'a Module> {
        let mut reached = BTreeSet::new();
        let mut open = vec![module];
        while let Some(next) = open.pop() {
            for import in self.imports.iter().filter(|import| import.from == *next) {
                if reached.insert(&import.to) {
                    open.push(&import.to);
                }
            }
        }
        reached
    }
}

struct Use {
    line: usize,
    is_public: bool,
    /// The paths, each with the name under which it is used.
    paths: Vec<(Vec<String>, String)>,
}

/// The `use` items of a file, and its code without them.
fn split_uses(code: &str) -> (Vec<Use>, String) {
    let mut uses = Vec::new();
    let mut rest = String::with_capacity(code.len());
    let mut at = 0;
    while let Some(start) = code[at..].find("use").map(|found| at + found) {
        let before = code[..start].chars().next_back();
        let after = code[start + 3..].chars().next();
        let is_item =
            !before.is_some_and(is_name) && after.is_some_and(|letter| letter.is_whitespace());
        let end = if is_item {
            code[start..].find(';').map_or(code.len(), |length| start + length)
        } else {
            start + 3
        };
        if is_item {
            rest.push_str(&code[at..start]);
            rest.extend(code[start..end].chars().filter(|letter| *letter == '\n'));
            uses.push(Use {
                line: line_of(code, start),
                is_public: is_public(code[..start].trim_end()),
                paths: expand(&code[start + 3..end]),
            });
        } else {
            rest.push_str(&code[at..end]);
        }
        at = end;
    }
    rest.push_str(&code[at..]);
    (uses, rest)
}

/// Whether the text ends in `pub` or `pub(…)`.
fn is_public(text: &str) -> bool {
    let without_scope = text.strip_suffix(')').and_then(|text| text.rsplit_once('('));
    without_scope.map_or(text, |(before, _)| before).trim_end().ends_with("pub")
}

/// The paths of `a::{b, c::{d, e as f}}`, each with the name under which it is used.
fn expand(tree: &str) -> Vec<(Vec<String>, String)> {
    let Some((prefix, group)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let names = names(path);
        let name = if alias.is_empty() { names.last().cloned() } else { Some(alias.trim().into()) };
        return vec![(names, name.unwrap_or_default())];
    };
    let group = group.trim_end().strip_suffix('}').unwrap_or(group);
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    let inner = parts.into_iter().filter(|part| !part.trim().is_empty()).flat_map(expand);
    inner.map(|(path, name)| (names(prefix).into_iter().chain(path).collect(), name)).collect()
}

fn names(path: &str) -> Vec<String> {
    let names = path.split("::").map(|name| name.trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// Every `a::b::c` with its line.
fn inline_paths(code: &str) -> Vec<(usize, Vec<String>)> {
    let mut paths = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let is_path = |letter: char| is_name(letter) || letter == ':';
        for word in line.split(|letter| !is_path(letter)).filter(|word| word.contains("::")) {
            paths.push((index + 1, names(word)));
        }
    }
    paths
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}
