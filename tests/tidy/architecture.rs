//! The architecture page names every crate of the workspace and every module of the service.

use crate::{Finding, check, tree};

const PAGE: &str = "docs/architecture.md";

#[test]
fn the_architecture_page_names_every_crate_and_module() {
    check(findings());
}

pub fn findings() -> Vec<Finding> {
    let page = std::fs::read_to_string(tree::root().join(PAGE)).expect(PAGE);
    let words: Vec<_> =
        page.split(|letter: char| !(letter.is_alphanumeric() || "-_".contains(letter))).collect();
    let crates = tree::crates().into_iter().map(|(name, _)| ("crate", name));
    let modules = modules().into_iter().map(|name| ("module", name));
    crates
        .chain(modules)
        .filter(|(_, name)| !words.contains(&name.as_str()))
        .map(|(kind, name)| Finding::new(PAGE, 0, format!("does not name the {kind} `{name}`")))
        .collect()
}

/// The top-level modules of the service.
fn modules() -> Vec<String> {
    let entries = std::fs::read_dir(tree::root().join("src")).expect("src");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().trim_end_matches(".rs").to_owned());
    names.filter(|name| name != "lib" && name != "main").collect()
}
