//! The environment variables of the program, before its command line is read.

use clap::Command;

use crate::config::{API_KEYS, without_quotes};

/// Prefix of the names of all variables.
const PREFIX: &str = "RANKDUEL_";

/// Check the variables, and take those that are empty as unset. A variable that no command knows
/// is reported on standard error. An error names the variable and never repeats its value, which
/// may be a secret.
pub(super) fn checked(program: Command) -> Result<Command, String> {
    let mut known = vec![API_KEYS.to_owned()];
    names(&program, &mut known);
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        if !known.iter().any(|known| known == name) && !is_of_others(name) {
            let similar = known.iter().find(|known| known.starts_with(name));
            let hint = similar.map_or_else(String::new, |known| format!("; is it {known}?"));
            eprintln!("rankduel: no command reads the environment variable {name}{hint}");
        }
        let value = value.to_string_lossy();
        without_quotes(&value).map_err(|why| format!("{name}: {why}"))?;
        if name != API_KEYS && value.contains(char::is_control) {
            return Err(format!("{name}: its value has a line end or another control character"));
        }
    }
    Ok(without_empty(program))
}

/// Variables that Kubernetes sets in every container for a service with the name `rankduel`, and
/// those of the scripts and examples that start this program.
fn is_of_others(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    rest == "PROGRAM" || ["PORT", "SERVICE_", "TEST_"].iter().any(|start| rest.starts_with(start))
}

fn names(command: &Command, known: &mut Vec<String>) {
    let variables = command.get_arguments().filter_map(|argument| argument.get_env());
    known.extend(variables.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|command| names(command, known));
}

/// The command without the variables that are empty.
fn without_empty(command: Command) -> Command {
    let is_empty = |name: &std::ffi::OsStr| {
        std::env::var_os(name).is_some_and(|value| value.to_string_lossy().trim().is_empty())
    };
    command
        .mut_args(|argument| match argument.get_env().is_some_and(is_empty) {
            true => argument.env(None::<&str>),
            false => argument,
        })
        .mut_subcommands(without_empty)
}
