//! Imports between the files of a crate: no cycles, and in the service no import of a higher layer.
//!
//! The graph has a node per file. It is read from the text, without a compiler:
//!
//! - Comments, literals and items under `#[cfg(test)]` are blanked first ([`source`]).
//! - A file imports the targets of its `use` items, and the targets of inline paths that start with
//!   `crate`, `super`, `self` or one of its child modules.
//! - A path is followed from module to module as far as modules go; the file reached is imported.
//!   If that module re-exports the next name (`pub use`), the path continues at its definition. So
//!   `use crate::policy::Duel` imports `policy/duel.rs`, not `policy/mod.rs`.
//! - A re-export is not an import: `mod.rs` may re-export from its children.
//!
//! The graph does not contain imports by macros or glob re-exports.

mod graph;
mod source;

use std::collections::BTreeSet;

use crate::{Finding, check, tree};
use graph::{Graph, Import};

/// The layers of the service, highest first. A module imports from its own layer and lower ones.
const LAYERS: &[&[&str]] = &[
    &["cli"],
    &["config"],
    &["http", "dashboard"],
    &["service"],
    &["engine"],
    &["tokens", "access"],
    &["store"],
    &["events", "audience", "schemas", "telemetry", "clock", "entropy"],
];

#[test]
fn files_do_not_import_each_other_in_circles() {
    check(cycles());
}

#[test]
fn no_module_of_the_service_imports_from_a_higher_layer() {
    check(upward());
}

pub fn cycles() -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, source) in tree::crates() {
        let graph = Graph::read(tree::files(&source), &source);
        for cycle in graph.cycles() {
            let imports = graph.imports.iter();
            findings.extend(
                imports
                    .filter(|import| cycle.contains(&import.from) && cycle.contains(&import.to))
                    .map(|import| {
                        let message =
                            format!("in a cycle of {} files: imports {}", cycle.len(), import.to);
                        Finding::new(&graph.files[&import.from], import.line, message)
                    }),
            );
        }
    }
    findings
}

pub fn upward() -> Vec<Finding> {
    let graph = Graph::read(tree::files("src"), "src");
    let layer = |module: &graph::Module| {
        let name = module.top()?;
        LAYERS.iter().position(|layer| layer.contains(&name))
    };
    let unknown =
        graph.files.iter().filter(|(module, _)| module.top().is_some() && layer(module).is_none());
    let unknown = unknown.map(|(_, path)| {
        Finding::new(path, 0, "add its module to LAYERS in tests/tidy/imports.rs")
    });
    // All modules may use the items of the crate's root, and the root may use all modules.
    let is_upward = |import: &&Import| match (layer(&import.from), layer(&import.to)) {
        (Some(from), Some(to)) => to < from,
        _ => false,
    };
    let upward = graph.imports.iter().filter(is_upward).map(|import| {
        let message = format!("imports {}, of a higher layer", import.to);
        Finding::new(&graph.files[&import.from], import.line, message)
    });
    unknown.chain(upward).collect()
}

#[test]
fn a_cycle_through_a_re_export_is_found() {
    let file = |path: &str, text: &str| tree::File { path: path.into(), text: text.into() };
    let graph = |leaf: &str| {
        let files = vec![
            file("src/lib.rs", "pub mod a;\npub mod b;\npub use a::one::One;\n"),
            file("src/a/mod.rs", "mod one;\npub use one::{One, Other as Two};\n"),
            file("src/a/one.rs", "use crate::b::{\n    c::Third,\n};\npub struct One;\n"),
            file("src/b/mod.rs", "pub mod c;\n"),
            file("src/b/c.rs", leaf),
        ];
        Graph::read(files, "src")
    };
    let named = |leaf: &str| -> Vec<BTreeSet<String>> {
        let cycles = graph(leaf).cycles();
        cycles.iter().map(|cycle| cycle.iter().map(ToString::to_string).collect()).collect()
    };
    let both = [BTreeSet::from(["a::one".to_owned(), "b::c".to_owned()])];
    assert_eq!(named("use crate::a::One;"), both);
    assert_eq!(named("fn f() { super::super::a::Two::new() }"), both);
    assert_eq!(named("// use crate::a::One;\nconst X: &str = \"crate::a::One\";"), []);
    assert_eq!(named("#[cfg(test)]\nmod tests { use crate::a::One; }"), []);
    assert_eq!(named("const QUOTE: char = '\"';\nuse crate::a::One; // \""), both);
    let line = graph("\n\nuse crate::a::One;").imports.iter().map(|import| import.line).max();
    assert_eq!(line, Some(3));
}
