//! `rankduel completions`, in the shells that are installed, and `rankduel man`.

use std::path::Path;
use std::process::Command;

use super::rankduel;

/// The commands that `rankduel --help` lists.
fn commands() -> Vec<String> {
    let help = String::from_utf8(rankduel(&["--help"]).stdout).unwrap();
    let list = help.split("Commands:").nth(1).expect("a list of commands");
    let commands: Vec<String> = list
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect();
    assert!(commands.contains(&"serve".to_owned()), "{help}");
    commands
}

/// The completions that bash offers for a line.
fn completed(line: &[&str]) -> Vec<String> {
    let script = String::from_utf8(rankduel(&["completions", "bash"]).stdout).unwrap();
    let last = line.len() - 1;
    let ask = format!(
        "COMP_WORDS=({}) COMP_CWORD={last}\n_rankduel rankduel '{}' '{}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        line.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        line[last],
        line[last - 1],
    );
    let output = Command::new("bash")
        .args(["--norc", "-c", &format!("{script}\n{ask}")])
        .output()
        .expect("bash");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    for command in commands() {
        assert_eq!(completed(&["rankduel", &command]), std::slice::from_ref(&command));
    }
    assert_eq!(completed(&["rankduel", "serve", "--drain"]), ["--drain-seconds"]);
    assert_eq!(completed(&["rankduel", "serve", "--log-format", "j"]), ["json"]);
}

#[test]
fn every_shell_gets_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = rankduel(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        let script = String::from_utf8(output.stdout).unwrap();
        for command in commands() {
            assert!(script.contains(&command), "{shell}: {command}");
        }
    }
    assert_eq!(rankduel(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("deep/man1");
    let written = rankduel(&["man", "--output", output.to_str().unwrap()]);
    assert_eq!(written.status.code(), Some(0));
    let page = |name: &str| {
        let path = output.join(format!("{name}.1"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
    };
    let top = page("rankduel");
    for command in commands() {
        let page = page(&format!("rankduel-{command}"));
        assert!(page.contains(".TH"), "{page}");
        // roff escapes hyphens
        let name = format!("rankduel-{command}").replace('-', "\\-");
        assert!(top.contains(&name), "{name} is missing in rankduel.1");
    }
    assert!(page("rankduel-serve").contains("RANKDUEL_LISTEN"));
    assert!(page("rankduel-keys-create").contains("scope"));
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let inside: &Path = &file.path().join("man1");
    let output = rankduel(&["man", "--output", inside.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains(inside.to_str().unwrap()), "{stderr}");
}
