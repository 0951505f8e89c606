//! The files of the repository.

use std::path::{Path, PathBuf};

/// A text file. Lines are numbered from 1 in findings.
pub struct File {
    /// Relative to the root of the repository.
    pub path: PathBuf,
    pub text: String,
}

impl File {
    pub fn is(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }

    /// The lines, each with its number.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file below a folder of the repository, in the order of their paths. `""` is the whole
/// repository. Build output and installed packages are left out.
pub fn files(below: &str) -> Vec<File> {
    let mut files = Vec::new();
    collect(&root().join(below), &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!files.is_empty(), "{below:?} has no files");
    files
}

fn collect(folder: &Path, files: &mut Vec<File>) {
    const LEFT_OUT: [&str; 6] = [".git", "target", "node_modules", "dist", "__pycache__", ".venv"];
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a UTF-8 name");
        if path.is_dir() {
            if !LEFT_OUT.contains(&name) {
                collect(&path, files);
            }
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            let path = path.strip_prefix(root()).expect("below the root").to_owned();
            files.push(File { path, text });
        }
    }
}

/// Whether a line of Markdown starts or ends a code block.
pub fn is_fence(line: &str) -> bool {
    let line = line.trim_start_matches(['>', ' ']);
    line.starts_with("```") || line.starts_with("~~~")
}

/// The lines of a Markdown text that are not in code blocks.
pub fn prose<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
) -> impl Iterator<Item = (usize, &'a str)> {
    let mut in_block = false;
    lines.filter(move |(_, line)| {
        if is_fence(line) {
            in_block = !in_block;
            return false;
        }
        !in_block
    })
}

/// The name of each crate of the workspace and the folder of its sources.
pub fn crates() -> Vec<(String, String)> {
    let mut crates = vec![("rankduel".to_owned(), "src".to_owned())];
    let folder = root().join("crates");
    for entry in std::fs::read_dir(folder).expect("the folder of crates") {
        let name = entry.expect("an entry").file_name().into_string().expect("a UTF-8 name");
        let source = format!("crates/{name}/src");
        crates.push((name, source));
    }
    crates.sort();
    crates
}
