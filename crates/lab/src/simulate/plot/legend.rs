//! The words and the look of a policy in a plot: the same in all figures.

use super::style::{Look, sentence};

/// The name, colour and dashes of the policies of the figures. Two policies that share a colour
/// differ in their dashes.
const POLICIES: &[(&str, &str, Look)] = &[
    ("d-ts", "D-TS", Look { colour: 0, dash: 0 }),
    ("d-ts-plus", "D-TS+", Look { colour: 1, dash: 0 }),
    ("ecw-rmed", "ECW-RMED", Look { colour: 2, dash: 0 }),
    ("rmed1", "RMED1", Look { colour: 3, dash: 0 }),
    ("rcs", "RCS", Look { colour: 4, dash: 0 }),
    ("ccb", "CCB", Look { colour: 5, dash: 0 }),
    ("rucb", "RUCB", Look { colour: 6, dash: 0 }),
    ("scb", "SCB", Look { colour: 0, dash: 1 }),
    ("sparring", "Sparring", Look { colour: 1, dash: 1 }),
    ("savage", "SAVAGE", Look { colour: 2, dash: 1 }),
    ("pbr", "PBR", Look { colour: 3, dash: 1 }),
    ("btm", "BTM", Look { colour: 4, dash: 1 }),
    ("pcomp", "PCOMP", Look { colour: 5, dash: 1 }),
    ("interleaved-filter", "Interleaved filter", Look { colour: 6, dash: 1 }),
    ("scomp2", "SCOMP2", Look { colour: 0, dash: 2 }),
    ("self-sparring", "Self-Sparring", Look { colour: 1, dash: 2 }),
    ("scomp", "SCOMP", Look { colour: 2, dash: 2 }),
    ("merge-rucb", "MergeRUCB", Look { colour: 3, dash: 2 }),
    ("uniform", "Uniform pairs", Look { colour: 4, dash: 2 }),
    ("rank-el", "RankEl", Look { colour: 5, dash: 2 }),
    ("d-ts-verdict", "D-TS, verdict", Look { colour: 6, dash: 2 }),
];

/// The legend of a policy in its text form: `scomp2:elimination=kl-published,batches=8` is "SCOMP2,
/// KL as published, B = 8".
pub fn words(policy: &str) -> String {
    let (kind, parameters) = policy.split_once(':').unwrap_or((policy, ""));
    let name = POLICIES.iter().find(|known| known.0 == kind).map_or(kind, |known| known.1);
    let parts = parameters.split(',').filter(|part| !part.is_empty()).map(parameter);
    std::iter::once(name.to_string()).chain(parts).collect::<Vec<_>>().join(", ")
}

fn parameter(part: &str) -> String {
    match part {
        "elimination=kl" => return "KL".into(),
        "elimination=kl-published" => return "KL as published".into(),
        "elimination=hoeffding" => return "Hoeffding".into(),
        "self_pairs=false" => return "no self-pairs".into(),
        "literal=true" => return "to the letter".into(),
        _ => {}
    }
    let Some((name, value)) = part.split_once('=') else { return part.into() };
    let symbol = match name {
        "winner" => return format!("{} winner", sentence(value)),
        "alpha" => "α",
        "gamma" => "γ",
        "kappa" => "κ",
        "delta" => "δ",
        "epsilon" => "ε",
        "batches" => "B",
        "horizon" => "T",
        other => return format!("{} = {value}", other.replace('_', " ")),
    };
    format!("{symbol} = {value}")
}

/// The looks of the policies of one figure. The second and later of a kind have its colour with
/// other dashes. A policy without a look of its own gets one by its position.
pub fn looks<'a>(policies: impl Iterator<Item = &'a str>) -> Vec<Look> {
    let mut seen: Vec<&str> = Vec::new();
    policies
        .enumerate()
        .map(|(at, policy)| {
            let kind = policy.split(':').next().unwrap_or(policy);
            let before = seen.iter().filter(|&&other| other == kind).count();
            seen.push(kind);
            let own = POLICIES.iter().find(|known| known.0 == kind).map(|known| known.2);
            let look = own.unwrap_or(Look::at(at));
            Look { dash: look.dash + before, ..look }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legends_are_words() {
        for (policy, legend) in [
            ("scomp2:elimination=kl-published,batches=8", "SCOMP2, KL as published, B = 8"),
            ("btm:gamma=1.3,kappa=1,self_pairs=false", "BTM, γ = 1.3, κ = 1, no self-pairs"),
            ("savage:winner=copeland", "SAVAGE, Copeland winner"),
            ("uniform", "Uniform pairs"),
            ("winner-stays:some_thing=3", "winner-stays, some thing = 3"),
        ] {
            assert_eq!(words(policy), legend);
        }
    }

    #[test]
    fn every_policy_of_the_figures_has_a_look_of_its_own() {
        for (at, one) in POLICIES.iter().enumerate() {
            assert!(POLICIES[..at].iter().all(|other| other.2 != one.2), "{}", one.0);
        }
        use crate::simulate::figures::{Content, FIGURES};
        for figure in FIGURES {
            let (Content::Regret(f) | Content::Spread(f) | Content::Delay(_, f)) = figure.content
            else {
                continue;
            };
            let policies = || f.lines.iter().map(|line| line.policy);
            let looks = looks(policies());
            for (at, policy) in policies().enumerate() {
                let kind = policy.split(':').next().unwrap_or(policy);
                assert!(POLICIES.iter().any(|known| known.0 == kind), "{kind}");
                assert!(!looks[..at].contains(&looks[at]), "{policy} in {}", figure.name);
            }
        }
    }
}
