//! Simulations with somebody watching: a progress bar, and Ctrl-C that keeps what is done.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

use lab::simulate::tournament::run_all;
use lab::simulate::{Report, Tournament, Watch};

/// How often the progress bar is redrawn.
const REDRAW: Duration = Duration::from_millis(200);

/// Threads to run on, and Ctrl-C to stop with: one for each call of the program.
pub(super) struct Watched {
    pool: rayon::ThreadPool,
    watch: Arc<Watch>,
}

impl Watched {
    /// `threads` threads (default: one a core). From now on the first Ctrl-C ends the work after
    /// the current step, and the second ends the program.
    pub fn start(threads: Option<NonZeroUsize>) -> anyhow::Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.map_or(0, NonZeroUsize::get))
            .build()
            .context("starting threads")?;
        let watch = Arc::new(Watch::new());
        stop_on_ctrl_c(watch.clone());
        Ok(Self { pool, watch })
    }

    /// Whether Ctrl-C has ended the work early.
    pub fn is_interrupted(&self) -> bool {
        self.watch.is_stopped()
    }

    /// Run tournaments; one report each, `None` where it was interrupted before anything could be
    /// said.
    pub fn run(&self, tournaments: &[Tournament]) -> Vec<Option<Report>> {
        let steps =
            tournaments.iter().fold(0_u64, |steps, t| steps.saturating_add(t.total_steps()));
        self.work(steps, |watch| run_all(tournaments, watch))
    }

    /// Do other work of `steps` steps on the threads.
    pub fn work<T: Send>(&self, steps: u64, work: impl FnOnce(&Watch) -> T + Send) -> T {
        with_progress(steps, &self.watch, || self.pool.install(|| work(&self.watch)))
    }
}

/// Do `work` while a bar shows how far `watch` says it is. Draws nothing unless standard error is a
/// terminal.
fn with_progress<T>(steps: u64, watch: &Watch, work: impl FnOnce() -> T) -> T {
    let bar = ProgressBar::new(steps);
    let before = watch.steps();
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
                    bar.set_position(watch.steps() - before);
                }
                bar.finish_and_clear();
            }
        });
        let result = work();
        drop(finished);
        result
    })
}

fn stop_on_ctrl_c(watch: Arc<Watch>) {
    std::thread::spawn(move || {
        let listening = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .and_then(|runtime| {
                runtime.block_on(async {
                    tokio::signal::ctrl_c().await?;
                    watch.stop();
                    eprintln!(
                        "\nrankduel: stopping after the current steps; Ctrl-C again to give up"
                    );
                    tokio::signal::ctrl_c().await
                })
            });
        match listening {
            // as a shell reports a program that SIGINT has ended
            Ok(()) => std::process::exit(130),
            Err(error) => eprintln!("rankduel: Ctrl-C will lose what is done: {error}"),
        }
    });
}
