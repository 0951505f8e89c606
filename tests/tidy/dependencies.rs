//! The dependencies that the pure crates must not have. Each crate's graph is resolved separately,
//! so features that another crate of the workspace enables do not count.

use std::process::Command;

use crate::tree;

const PURE: [&str; 4] = ["comparators", "dueling-bandits", "interleaving", "lab"];

/// Crates of servers, databases and runtimes. One that ends in `*` is a prefix.
const REFUSED: [&str; 16] = [
    "async-*",
    "axum*",
    "diesel*",
    "futures*",
    "http",
    "hyper*",
    "mio",
    "prometheus-*",
    "rankduel",
    "reqwest",
    "rusqlite",
    "sqlx*",
    "tokio*",
    "tower*",
    "tracing*",
    "utoipa*",
];

fn is_refused(name: &str) -> bool {
    REFUSED.iter().any(|refused| match refused.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *refused,
    })
}

/// The names of all dependencies of `package`, direct or not, except build and test dependencies.
fn dependencies(package: &str) -> Vec<String> {
    let arguments = "tree --offline --locked --edges normal --prefix none --format {p} --package";
    let output = Command::new(env!("CARGO"))
        .args(arguments.split(' '))
        .arg(package)
        .current_dir(tree::root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn pure_crates_depend_on_no_server_database_or_runtime() {
    for package in PURE {
        let found = dependencies(package);
        assert!(found.len() > 5, "cargo tree names the dependencies of {package}: {found:?}");
        let refused: Vec<_> = found.iter().filter(|name| is_refused(name)).collect();
        assert!(refused.is_empty(), "crates/{package}/Cargo.toml:0: depends on {refused:?}");
    }
}

#[test]
fn libraries_do_not_depend_on_the_lab() {
    for package in ["dueling-bandits", "interleaving"] {
        assert!(!dependencies(package).iter().any(|name| name == "lab"), "{package}");
    }
}
