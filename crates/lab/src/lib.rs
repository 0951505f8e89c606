//! Experiments with dueling bandits and interleaving, without a service.
//!
//! - [`simulate`]: policies on known preference matrices, the figures of the papers, and the
//!   calibration of the service's estimates.
//! - [`estimate`]: the preference matrix of rankers, estimated from judged documents with a click
//!   model and an interleaving method.
//! - [`letor`]: learning-to-rank data sets.
//! - [`values`]: parsers of values on a command line.
//!
//! The program `lab` is a thin layer over this library.
//!
//! ```
//! use comparators::Spec;
//! use dueling_bandits::preference::{PreferenceMatrix, RegretKind};
//! use lab::simulate::{Entrant, Progress, Tournament, report, run_all};
//!
//! let matrix = PreferenceMatrix::load("arxiv-6")?;
//! let entrants = ["uniform", "d-ts-plus"]
//!     .map(|text| Spec::from_text(text).map(|spec| Entrant { text: text.into(), spec }));
//! let entrants = entrants.into_iter().collect::<Result<Vec<_>, _>>()?;
//! let mut tournament =
//!     Tournament::new("arxiv-6", matrix, RegretKind::Copeland, entrants, 10_000)?;
//! tournament.runs = 2;
//!
//! let reports = run_all(&[tournament], &Progress::new());
//! let report = reports[0].as_ref().expect("not stopped");
//! println!("{}", report::table(report));
//! # let regret = |at: usize| report.policies[at].checkpoints.last().unwrap().mean;
//! # assert!(regret(1) < regret(0) / 2.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod estimate;
pub mod letor;
pub mod simulate;
pub mod values;
