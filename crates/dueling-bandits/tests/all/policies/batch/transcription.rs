//! The policies agree with a plain transcription of the paper that shares no code with them.

use dueling_bandits::preference::PreferenceMatrix;

use super::super::arena::{matrix, rng};
use super::play::{Played, mean, play, shuffled};
use super::{ELIMINATIONS, KINDS};
use crate::reference::comp::{Algorithm, Reading, ReferenceComp, Run, Test};

const HORIZON: u64 = 100_000;
const BATCHES: u32 = 16;

fn ours(kind: &str, elimination: &str, matrix: &PreferenceMatrix, runs: u64) -> Vec<Played> {
    let text = format!("{kind}:horizon={HORIZON},elimination={elimination}");
    (0..runs).map(|seed| play(&text, &shuffled(matrix, seed), HORIZON, seed)).collect()
}

fn transcribed(
    kind: &str,
    elimination: &str,
    reading: Reading,
    matrix: &PreferenceMatrix,
    runs: u64,
) -> Vec<Run> {
    let algorithm = match kind {
        "pcomp" => Algorithm::Pcomp,
        "scomp" => Algorithm::Scomp,
        _ => Algorithm::Scomp2,
    };
    let square = (matrix.rankers() as f64).powi(2);
    let test = match elimination {
        "kl" => Test::Divergence((HORIZON as f64 * square).ln()),
        "kl-published" => Test::Divergence(square.ln()),
        _ => Test::Hoeffding,
    };
    let run = |seed: u64| {
        let matrix = &shuffled(matrix, seed);
        let (horizon, batches) = (HORIZON, BATCHES);
        let run = ReferenceComp { algorithm, test, reading, horizon, batches, matrix };
        // other draws than those of `ours`
        run.run(&mut rng(seed + 1_000_000))
    };
    (0..runs).map(run).collect()
}

#[test]
fn mean_regret_agrees_with_the_transcription() {
    for name in ["arxiv-6", "sst:12:3"] {
        let matrix = matrix(name);
        for (kind, rule) in KINDS.iter().flat_map(|kind| ELIMINATIONS.map(|rule| (*kind, rule))) {
            let ours: Vec<f64> =
                ours(kind, rule, &matrix, 200).iter().map(|run| run.regret).collect();
            let theirs = transcribed(kind, rule, Reading::OURS, &matrix, 200);
            let theirs: Vec<f64> = theirs.iter().map(|run| run.regret).collect();
            let (ours, theirs) = (mean(&ours), mean(&theirs));
            let error = ours.1.hypot(theirs.1);
            assert!(
                (ours.0 - theirs.0).abs() < 3.5 * error,
                "{kind} {rule} on {name}: {ours:.0?}, the transcription {theirs:.0?}"
            );
        }
    }
}

#[test]
fn the_switch_keeps_the_winner() {
    // With c_2 = 10⁵ comparisons a pair the switch is frequent, as it is not at the paper's
    // horizon.
    let matrix = matrix("sst:12:3");
    for (kind, algorithm) in [("scomp", Algorithm::Scomp), ("scomp2", Algorithm::Scomp2)] {
        let mut switches = 0;
        for seed in 0..200 {
            let run = ReferenceComp {
                algorithm,
                test: Test::Hoeffding,
                reading: Reading::PAPER,
                horizon: 1_000_000_000,
                batches: 4,
                matrix: &shuffled(&matrix, seed),
            };
            let run = run.run(&mut rng(seed));
            assert!(!run.lost_at_switch && !run.lost, "{kind} {seed}");
            switches += u32::from(run.switched);
        }
        assert!(switches > 50, "{kind}: {switches} switches");
    }
}

/// Prints how often each rule loses the Condorcet winner. `RANKDUEL_MATRICES` names further
/// matrices, separated by spaces; `RANKDUEL_RUNS` is the number of runs.
#[test]
#[ignore = "a table of 400 runs for crates/lab/notes/papers.md: the command is there"]
fn winners_lost() {
    let set = |name: &str| std::env::var(name).ok();
    let runs = set("RANKDUEL_RUNS").map_or(400, |runs| runs.parse().expect("a number"));
    let more = set("RANKDUEL_MATRICES").unwrap_or_default();
    let names = ["arxiv-6", "btl:100:1", "hard:100:1"].into_iter().chain(more.split_whitespace());
    println!(
        "matrix | policy | rule | regret, the paper's words | regret, our reading transcribed | \
         regret, ours | second phase by the switch | \
         by an empty seed set | winner lost at the switch | winner removed | wrong champion, ours"
    );
    for name in names {
        let matrix = PreferenceMatrix::load(name).expect("a matrix");
        for (kind, rule) in KINDS.iter().flat_map(|kind| ELIMINATIONS.map(|rule| (*kind, rule))) {
            let theirs = transcribed(kind, rule, Reading::PAPER, &matrix, runs);
            let ours_transcribed = transcribed(kind, rule, Reading::OURS, &matrix, runs);
            let ours = ours(kind, rule, &matrix, runs);
            let regret = |values: Vec<f64>| {
                let (mean, error) = mean(&values);
                format!("{mean:.0} ± {error:.0}")
            };
            let count = |of: fn(&Run) -> bool| theirs.iter().filter(|run| of(run)).count();
            println!(
                "{name} | {kind} | {rule} | {} | {} | {} | {} | {} | {} | {} | {}",
                regret(theirs.iter().map(|run| run.regret).collect()),
                regret(ours_transcribed.iter().map(|run| run.regret).collect()),
                regret(ours.iter().map(|run| run.regret).collect()),
                count(|run| run.switched),
                count(|run| run.seeds_gone),
                count(|run| run.lost_at_switch),
                count(|run| run.lost),
                ours.iter().filter(|run| !run.is_right).count(),
            );
        }
    }
}
