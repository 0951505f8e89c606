//! `rankduel segments`: writes the results of a ranker, split by segment.

use clap::Args;

use super::error::CommandError;
use super::experiment_file::ExperimentFile;
use crate::service::transfer::{TableFormat, WrittenSegments, write_segments};

/// Write the results of one ranker against the others, split by segment
///
/// A segment is what the callers sent as `segment` with `next-duel`, `interleave` or the feedback.
/// A row has the duels of the ranker with one opponent in one segment: wins, losses, ties, the
/// share of wins, and an interval of the probability to win. All intervals of the table hold
/// together with a probability of 95 %, however often you look. Of each unit, the first answer
/// counts. The command reads the log up to its current end and can run beside servers.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: ExperimentFile,

    /// The ranker [default: the winner, or the leader of an experiment that is not concluded]
    #[arg(long, value_name = "ID")]
    ranker: Option<String>,

    /// How the table is written
    #[arg(long, value_enum, default_value = "csv")]
    format: TableFormat,
}

/// Runs the command.
pub(super) fn run(Arguments { file, ranker, format }: &Arguments) -> Result<(), CommandError> {
    let ranker = ranker.as_deref();
    let WrittenSegments { ranker, rows, waiting } = file
        .write("table", async |store, name, out| {
            write_segments(store, name, ranker, *format, out).await
        })?;
    eprintln!("wrote the results of `{ranker}` in `{}` by segment: {rows} rows", file.name);
    if waiting > 0 {
        eprintln!(
            "answers that do not count yet: {waiting}; others from the same time may still come, until \
             the experiment's `answer_window_seconds` have passed"
        );
    }
    Ok(())
}
