//! `rankduel policies`: lists the policies, their assumptions and their parameters.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value, json};

use super::CommandError;
use super::output::{Format, print, print_json};
use dueling_bandits::PolicySpec;
use dueling_bandits::parameters::Description;

/// List the policies with their assumptions and parameters
///
/// Commands with a policy argument accept KIND or KIND:name=value,name=value, for example
/// `d-ts:alpha=0.51`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only these kinds
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    for kind in &arguments.kinds {
        if PolicySpec::KINDS.iter().all(|(known, _)| known != kind) {
            return Err(CommandError::Usage(format!(
                "there is no policy `{kind}`; choose one of: {}",
                PolicySpec::kind_list()
            )));
        }
    }
    let wanted =
        |kind: &str| arguments.kinds.is_empty() || arguments.kinds.iter().any(|k| k == kind);
    let chosen: Vec<_> = PolicySpec::KINDS.iter().filter(|(kind, _)| wanted(kind)).collect();
    match arguments.format {
        Format::Table => {
            print(chosen.iter().map(|(kind, d)| paragraph(kind, d)).collect::<Vec<_>>().join("\n"))
        }
        Format::Json => {
            print_json(&chosen.iter().map(|(kind, d)| object(kind, d)).collect::<Vec<_>>())
        }
    }
}

fn paragraph(kind: &str, description: &Description) -> String {
    let mut text = format!("{kind}\n  {}\n", description.summary);
    let _ = writeln!(text, "  assumes: {}", description.assumes);
    let _ = writeln!(text, "  source:  {}", description.source);
    let _ = match description.fixed_rankers {
        None => writeln!(text, "  rankers: can be added and retired during an experiment"),
        Some(reason) => writeln!(text, "  rankers: fixed: {reason}"),
    };
    for parameter in description.parameters {
        let default =
            parameter.default.map_or("required".into(), |value| format!("default {value}"));
        let _ = writeln!(text, "    {} ({default}): {}", parameter.name, parameter.meaning);
    }
    text
}

fn object(kind: &str, description: &Description) -> Value {
    let parameters: Vec<Value> = description
        .parameters
        .iter()
        .map(|p| json!({ "name": p.name, "meaning": p.meaning, "default": p.default }))
        .collect();
    json!({
        "kind": kind,
        "summary": description.summary,
        "assumes": description.assumes,
        "source": description.source,
        "fixed_rankers": description.fixed_rankers,
        "parameters": parameters,
    })
}
