//! The words and the look of a policy in a plot: the same in all figures.

use super::style::{DASHES, Look, MARKS, sentence};

/// The name and the colour of the policies of the figures, which are the same in all of them. Their
/// places are those of their dashes and marks, unless another policy of the figure has them.
const POLICIES: &[(&str, &str, usize)] = &[
    ("d-ts", "D-TS", 0),
    ("d-ts-plus", "D-TS+", 1),
    ("ecw-rmed", "ECW-RMED", 2),
    ("rmed1", "RMED1", 3),
    ("rcs", "RCS", 4),
    ("ccb", "CCB", 5),
    ("rucb", "RUCB", 6),
    ("scb", "SCB", 0),
    ("sparring", "Sparring", 1),
    ("savage", "SAVAGE", 2),
    ("pbr", "PBR", 3),
    ("btm", "BTM", 4),
    ("pcomp", "PCOMP", 5),
    ("interleaved-filter", "Interleaved filter", 6),
    ("scomp2", "SCOMP2", 0),
    ("self-sparring", "Self-Sparring", 1),
    ("scomp", "SCOMP", 2),
    ("merge-rucb", "MergeRUCB", 3),
    ("uniform", "Uniform pairs", 4),
    ("rank-el", "RankEl", 5),
    ("d-ts-verdict", "D-TS, verdict", 7),
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

/// The looks of the policies of one figure. The second and later of a kind have its colour. A
/// policy without a colour of its own gets one by its position. Marks differ within a figure, and
/// so do dashes while they last, so that curves can be told apart in grey.
pub fn looks<'a>(policies: impl Iterator<Item = &'a str>) -> Vec<Look> {
    let (mut dashes, mut marks) = (Vec::new(), Vec::new());
    let look = |(at, policy): (usize, &str)| {
        let kind = policy.split(':').next().unwrap_or(policy);
        let known = POLICIES.iter().position(|known| known.0 == kind);
        let place = known.unwrap_or(at);
        Look {
            colour: known.map_or(at, |known| POLICIES[known].2),
            dash: free(&mut dashes, place, DASHES.len()),
            mark: free(&mut marks, place, MARKS),
        }
    };
    policies.enumerate().map(look).collect()
}

/// The first place from this one on, of this many, that is not `taken` yet; this one if all are.
fn free(taken: &mut Vec<usize>, place: usize, of: usize) -> usize {
    let mut places = (place..place + of).map(|place| place % of);
    let free = places.find(|place| !taken.contains(place)).unwrap_or(place % of);
    taken.push(free);
    free
}
