//! Simulations with somebody watching: a progress bar, and Ctrl-C that keeps what is done.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

use crate::simulate::tournament::run_all;
use crate::simulate::{Report, Tournament, Watch};

/// How often the progress bar is redrawn.
const REDRAW: Duration = Duration::from_millis(200);

/// What came of them.
pub(super) struct Watched {
    /// One a tournament; `None` where it was interrupted before anything could be said.
    pub reports: Vec<Option<Report>>,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
}

/// Run tournaments on `threads` threads (default: one a core), with a progress bar when standard error is a terminal.
/// The first Ctrl-C ends them after the current step, the second ends the program.
pub(super) fn run_watched(
    tournaments: &[Tournament],
    threads: Option<NonZeroUsize>,
) -> anyhow::Result<Watched> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(0, NonZeroUsize::get))
        .build()
        .context("starting threads")?;
    let watch = Arc::new(Watch::new());
    stop_on_ctrl_c(watch.clone());
    let steps = tournaments.iter().fold(0_u64, |steps, t| steps.saturating_add(t.total_steps()));
    let reports = with_progress(steps, &watch, || pool.install(|| run_all(tournaments, &watch)));
    Ok(Watched { reports, interrupted: watch.is_stopped() })
}

/// Do `work` while a bar shows how far `watch` says it is. Draws nothing unless standard error is a terminal.
fn with_progress<T>(steps: u64, watch: &Watch, work: impl FnOnce() -> T) -> T {
    let bar = ProgressBar::new(steps);
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
                    bar.set_position(watch.steps());
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
        let listening =
            tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
                runtime.block_on(async {
                    tokio::signal::ctrl_c().await?;
                    watch.stop();
                    eprintln!("\nrankduel: stopping after the current steps; Ctrl-C again to give up");
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
