//! The processor time of a step (select and fold one outcome) for policy × K, next to that of the
//! policy's reference implementation in the same state.
//!
//! ```text
//! cargo bench --bench step                    # all of it
//! cargo bench --bench step -- '^ccb/'         # one policy
//! cargo bench --bench step -- 'steady/1000$'  # one size, without the reference implementations
//! ```
//!
//! `crates/lab/notes/performance.md` explains the names.

mod subjects;

use std::cell::OnceCell;
use std::time::Duration;

use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, measurement::WallTime};
use dueling_bandits::InFlight;
use rustix::time::{ClockId, clock_gettime};
use subjects::{Phase, Scene};

const RANKERS: &[usize] = &[5, 16, 64, 100, 136, 500, 1000];
/// Sizes for policies without a goal: enough to see how the cost of a step grows.
const SOME_RANKERS: &[usize] = &[16, 100, 1000];
/// Sizes with a verdict before [`Phase::Late`].
const LATE_RANKERS: &[usize] = &[5, 16, 64, 100];

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .nresamples(1_000)
        .without_plots()
        .configure_from_args();
    for &(kind, reference) in subjects::WITH_REFERENCE {
        // the default policy is to be compared with D-TS+
        let early = if kind == "d-ts-plus" { RANKERS } else { SOME_RANKERS };
        for (phase, sizes) in [(Phase::Steady, RANKERS), (Phase::Early, early)] {
            sizes
                .iter()
                .for_each(|&rankers| bench(&mut criterion, kind, rankers, phase, Some(reference)));
        }
    }
    for kind in subjects::other_kinds() {
        let phases: &[_] = match kind {
            "d-ts-verdict" => &[(Phase::Steady, RANKERS), (Phase::Early, RANKERS)],
            _ => &[(Phase::Steady, SOME_RANKERS)],
        };
        for &(phase, sizes) in phases {
            for &rankers in sizes.iter().filter(|&&rankers| subjects::takes(kind, rankers)) {
                bench(&mut criterion, kind, rankers, phase, None);
            }
        }
    }
    for kind in ["d-ts-plus", "d-ts-verdict:margin=0.01"] {
        for &rankers in LATE_RANKERS {
            bench(&mut criterion, kind, rankers, Phase::Late, None);
        }
    }
    criterion.final_summary();
}

fn bench(
    criterion: &mut Criterion,
    kind: &str,
    rankers: usize,
    phase: Phase,
    reference: Option<subjects::MakeReference>,
) {
    let mut group: BenchmarkGroup<'_, WallTime> = criterion.benchmark_group(kind);
    group.sampling_mode(SamplingMode::Flat);
    let (name, reference_name) = match phase {
        Phase::Early => ("early", "early-reference"),
        Phase::Steady => ("steady", "steady-reference"),
        Phase::Late => ("late", "late-reference"),
    };
    let played = OnceCell::new();
    // not before a bench is known to pass the filter
    let scene = || played.get_or_init(|| Scene::of(kind, rankers, phase));
    let (mut rng, idle) = (subjects::rng(), InFlight::new());
    group.bench_function(BenchmarkId::new(name, rankers), |bencher| {
        let scene = scene();
        let start = || scene.run();
        bencher.iter_custom(|steps| {
            timed(steps, scene.lasts, start, |policy| {
                subjects::step(policy, &idle, &scene.matrix, &mut rng);
            })
        });
    });
    if let Some(reference) = reference {
        group.bench_function(BenchmarkId::new(reference_name, rankers), |bencher| {
            let scene = scene();
            let start = || reference(scene.run().policy());
            bencher.iter_custom(|steps| {
                timed(steps, scene.lasts, start, |form| {
                    subjects::reference_step(form.as_mut(), &scene.matrix, &mut rng);
                })
            });
        });
    }
    group.finish();
}

/// The processor time of `steps` steps. Unlike elapsed time, other work on the machine changes it
/// little. After every `lasts` steps the state starts over, which is not timed.
fn timed<S>(
    steps: u64,
    lasts: usize,
    mut start: impl FnMut() -> S,
    mut step: impl FnMut(&mut S),
) -> Duration {
    let mut spent = Duration::ZERO;
    let mut left = steps;
    while left > 0 {
        let now = left.min(lasts as u64);
        let mut state = start();
        let begun = processor_time();
        for _ in 0..now {
            step(&mut state);
        }
        spent += processor_time() - begun;
        left -= now;
    }
    spent
}

/// The processor time of this thread so far.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime))
        .expect("no time before the thread's start")
}
