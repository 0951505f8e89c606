//! Worker threads of simulations, with a progress bar and Ctrl-C.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::output::Format;
use lab::simulate::{Progress, Report, Tournament, run_all};

/// Interval between two updates of the progress bar.
const REDRAW: Duration = Duration::from_millis(200);

/// The arguments of commands that run experiments of a kind.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Seed of the experiments
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// The threads of a command, and the state of their work. Each call of the program has one.
pub(super) struct Workers {
    pool: rayon::ThreadPool,
    progress: Arc<Progress>,
}

impl Workers {
    /// Starts `threads` threads (default: one per core). From then on, the first Ctrl-C stops the
    /// work after the current step, and the second one stops the program.
    pub fn start(threads: Option<NonZeroUsize>) -> anyhow::Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.map_or(0, NonZeroUsize::get))
            .build()
            .context("the threads cannot be started")?;
        let progress = Arc::new(Progress::new());
        stop_on_ctrl_c(progress.clone());
        Ok(Self { pool, progress })
    }

    /// Whether Ctrl-C has stopped the work early.
    pub fn is_interrupted(&self) -> bool {
        self.progress.is_stopped()
    }

    /// Runs tournaments. Returns one report for each; `None` if it was interrupted before its first
    /// checkpoint.
    pub fn run(&self, tournaments: &[Tournament]) -> Vec<Option<Report>> {
        let steps =
            tournaments.iter().fold(0_u64, |steps, t| steps.saturating_add(t.total_steps()));
        self.work(steps, |progress| run_all(tournaments, progress))
    }

    /// Does other work of `steps` steps on the threads.
    pub fn work<T: Send>(&self, steps: u64, work: impl FnOnce(&Progress) -> T + Send) -> T {
        with_progress_bar(steps, &self.progress, || self.pool.install(|| work(&self.progress)))
    }
}

/// Does `work` while a bar displays `progress`. The bar is hidden unless standard error is a
/// terminal.
fn with_progress_bar<T>(steps: u64, progress: &Progress, work: impl FnOnce() -> T) -> T {
    let bar = ProgressBar::new(steps);
    let before = progress.steps();
    if let Ok(style) =
        ProgressStyle::with_template("{wide_bar} {percent:>3} %  {eta} left  {human_pos} steps")
    {
        bar.set_style(style);
    }
    std::thread::scope(|scope| {
        let (finished, until_finished) = channel::<()>();
        scope.spawn({
            let bar = &bar;
            move || {
                while let Err(RecvTimeoutError::Timeout) = until_finished.recv_timeout(REDRAW) {
                    bar.set_position(progress.steps() - before);
                }
                bar.finish_and_clear();
            }
        });
        let result = work();
        drop(finished);
        result
    })
}

fn stop_on_ctrl_c(progress: Arc<Progress>) {
    std::thread::spawn(move || {
        let listening = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .and_then(|runtime| {
                runtime.block_on(async {
                    tokio::signal::ctrl_c().await?;
                    progress.stop();
                    eprintln!("\nlab: stopping after the current steps; Ctrl-C again to abort");
                    tokio::signal::ctrl_c().await
                })
            });
        match listening {
            // The exit code that shells use for SIGINT.
            Ok(()) => std::process::exit(130),
            Err(error) => eprintln!("lab: Ctrl-C will abort without a result: {error}"),
        }
    });
}
