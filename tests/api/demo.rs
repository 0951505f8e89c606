//! `rankduel demo` as a process: simulated users over HTTP, and a report of their pages.

use std::process::Command;

use crate::support::TestDatabase;

on_sqlite! {
    the_demo_accounts_for_every_page
}

async fn the_demo_accounts_for_every_page(database: TestDatabase) {
    let url = database.url.clone();
    let run = move || {
        Command::new(env!("CARGO_BIN_EXE_rankduel"))
            .args(["demo", "--duels", "400", "--users", "8", "--lost", "0.2", "--repeated", "0.5"])
            .args(["--database-url", &url])
            .output()
            .expect("the program starts")
    };
    let output = tokio::task::spawn_blocking(run).await.expect("no panic");
    let printed = String::from_utf8_lossy(&output.stdout);
    // The command itself fails if the log differs from the acknowledged answers.
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let of = |label: &str| -> Vec<u64> {
        let line = printed.lines().find_map(|line| line.strip_prefix(label));
        let line = line.unwrap_or_else(|| panic!("`{label}` is missing: {printed}"));
        line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
    };
    let [pages, alone] = of("pages  ")[..] else { panic!("{printed}") };
    let [recorded, repeats] = of("answers acknowledged")[..] else { panic!("{printed}") };
    let [lost, late] = of("pages never answered")[..] else { panic!("{printed}") };
    assert_eq!((pages, late), (400, 0), "{printed}");
    assert_eq!(pages, recorded + lost + alone, "{printed}");
    assert!(lost > 0 && repeats > 0, "{printed}");
    assert_eq!(of("answers in the log"), [recorded], "{printed}");
}
