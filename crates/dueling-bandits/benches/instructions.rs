//! The number of instructions of a step for policy × K, next to that of the reference
//! implementation. Valgrind's callgrind counts them, so a busy machine does not change the figures.
//!
//! ```text
//! cargo bench --bench instructions              # all policies that have a reference
//! implementation
//! cargo bench --bench instructions -- ccb scb   # some policies
//! ```
//!
//! The program first plays the policy natively up to the measured state. It then runs itself under
//! callgrind, which counts only inside [`counted_steps`].

mod subjects;

use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Bandit, InFlight, PolicyRng};
use subjects::{MakeReference, Phase, ReferencePolicy, Scene};

const RANKERS: &[usize] = &[5, 16, 64, 136, 500, 1000];
const STEPS: usize = 1_000;
/// Approximate number of pairs that a reference implementation visits in one measurement.
const REFERENCE_PAIRS: usize = 400_000;
/// First argument of the program when it runs under callgrind.
const UNDER_CALLGRIND: &str = "under-callgrind";

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let done = match &arguments[..] {
        [word, kind, rankers, side, state] if word == UNDER_CALLGRIND => {
            run(kind, rankers, side, state)
        }
        kinds => table(kinds),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn table(kinds: &[String]) -> anyhow::Result<()> {
    if let Some(unknown) = kinds.iter().find(|kind| reference(kind).is_none()) {
        bail!("there is no policy `{unknown}` with a reference implementation");
    }
    println!(
        "{:<10} {:>5} {:>12} {:>14} {:>8}",
        "policy", "K", "instructions", "reference", "ratio"
    );
    let wanted = |kind: &str| kinds.is_empty() || kinds.iter().any(|wanted| wanted == kind);
    for &(kind, _) in subjects::WITH_REFERENCE.iter().filter(|(kind, _)| wanted(kind)) {
        for &rankers in RANKERS {
            let scene = Scene::of(kind, rankers, Phase::Steady);
            let directory = tempfile::tempdir().context("a directory for the state")?;
            let state = directory.path().join("state");
            std::fs::write(&state, scene.state())?;
            let count = |side: Side| {
                let rankers_text = rankers.to_string();
                let words = [UNDER_CALLGRIND, kind, &rankers_text, side.name()];
                count(
                    Command::new(std::env::current_exe()?).args(words).arg(&state),
                    side.steps(rankers),
                )
            };
            let (ours, reference) = (count(Side::Policy)?, count(Side::Reference)?);
            println!(
                "{kind:<10} {rankers:>5} {ours:>12.0} {reference:>14.0} {:>8.1}",
                reference / ours
            );
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Policy,
    Reference,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Policy => "policy",
            Side::Reference => "reference",
        }
    }

    fn steps(self, rankers: usize) -> usize {
        match self {
            Side::Policy => STEPS,
            Side::Reference => (REFERENCE_PAIRS / (rankers * rankers)).clamp(3, STEPS),
        }
    }
}

/// Instructions of one of `steps` steps of `program`, run under callgrind.
fn count(program: &Command, steps: usize) -> anyhow::Result<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(["--collect-atstart=no", "--toggle-collect=*counted_steps*"])
        .arg(program.get_program())
        .args(program.get_args())
        .output()
        .context("valgrind cannot be run: install it")?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("valgrind has failed:\n{report}");
    }
    let collected = report.lines().find_map(|line| line.split_once("Collected : "));
    let (_, instructions) = collected.with_context(|| format!("no count in:\n{report}"))?;
    let instructions: f64 = instructions.trim().parse().context("callgrind's count")?;
    if instructions == 0.0 {
        bail!("callgrind did not count the steps: check that the program has its symbols");
    }
    Ok(instructions / steps as f64)
}

fn reference(kind: &str) -> Option<MakeReference> {
    let found = subjects::WITH_REFERENCE.iter().find(|(known, _)| *known == kind);
    found.map(|&(_, reference)| reference)
}

/// The program under callgrind.
fn run(kind: &str, rankers: &str, side: &str, state: &str) -> anyhow::Result<()> {
    let rankers: usize = rankers.parse().context("a number of rankers")?;
    let scene = Scene::in_state(kind, rankers, std::fs::read(state)?);
    let mut run = scene.run();
    let mut rng = subjects::rng();
    if side == Side::Reference.name() {
        let mut form =
            reference(kind).context("a policy with a reference implementation")?(run.policy());
        reference_counted_steps(
            form.as_mut(),
            &scene.matrix,
            &mut rng,
            Side::Reference.steps(rankers),
        );
    } else {
        counted_steps(&mut run, &scene.matrix, &mut rng, Side::Policy.steps(rankers));
    }
    Ok(())
}

#[inline(never)]
fn counted_steps(
    policy: &mut dyn Bandit,
    matrix: &PreferenceMatrix,
    rng: &mut PolicyRng,
    steps: usize,
) {
    let idle = InFlight::new();
    for _ in 0..steps {
        subjects::step(policy, &idle, matrix, rng);
    }
}

#[inline(never)]
fn reference_counted_steps(
    form: &mut dyn ReferencePolicy,
    matrix: &PreferenceMatrix,
    rng: &mut PolicyRng,
    steps: usize,
) {
    for _ in 0..steps {
        subjects::reference_step(form, matrix, rng);
    }
}
