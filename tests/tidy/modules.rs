//! Every source file is a module of its crate: the compiler passes over a file that no `mod` names.

use std::path::Path;

use crate::{Finding, check, tree};

#[test]
fn every_source_file_is_a_module() {
    check(findings());
}

fn findings() -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, source) in tree::crates() {
        let files: Vec<_> = tree::files(&source).into_iter().filter(|file| file.is("rs")).collect();
        for file in &files {
            let (Some(folder), Some(stem)) = (file.path.parent(), file.path.file_stem()) else {
                continue;
            };
            let (parent, name) = match (stem.to_str(), folder.parent(), folder.file_stem()) {
                (Some("lib" | "main"), ..) if folder == Path::new(&source) => continue,
                (Some("mod"), Some(above), Some(name)) => (above, name),
                _ => (folder, stem),
            };
            let may_declare = ["mod.rs", "lib.rs", "main.rs"].map(|name| parent.join(name));
            let name = name.to_string_lossy();
            let (declares, path) = (format!("mod {name};"), format!("#[path = \"{name}.rs\"]"));
            let declared = files.iter().any(|other| {
                (may_declare.contains(&other.path) || other.path == parent.with_extension("rs"))
                    && other.lines().any(|(_, line)| line.ends_with(&declares) || line == path)
            });
            if !declared {
                findings.push(Finding::new(&file.path, 0, format!("no `mod {name};` names it")));
            }
        }
    }
    findings
}
