//! rankduel: online ranker evaluation with dueling bandits, as an HTTP service.
//!
//! The modules, in reading order:
//!
//! 1. [`policy`]: the dueling-bandit policies, pure state machines: select a duel, observe an outcome.
//! 2. [`preference`]: the matrix of `P(i beats j)`, its winners, and regret.
//! 3. [`interleave`]: two rankings become one page, and clicks on it an outcome.
//! 4. [`store`]: the append-only log and its two databases, behind one trait.
//!
//! 5. [`evidence`]: what counts say, and how surely; [`experiment`]: the fold of the log, signed duels, and the use cases.
//! 6. [`http`]: the API over the use cases, and the shell around it.
//! 7. [`telemetry`]: metrics, logs, and what belongs together in them.
//! 8. [`simulate`]: policies on known matrices, many runs, the true regret.
//! 9. [`letor`] and [`users`]: judged documents and who clicks on them; [`estimate`]: the matrix that follows.
//! 10. [`config`] and [`cli`]: what the program can be told, and its commands.
//!
//! [`access`] says who may call; [`clock`] and [`entropy`] are where time and chance come in.
//!
//! `policy`, `preference`, `interleave`, `letor` and `users` know nothing of the rest; nothing points back.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod access;
pub mod cli;
pub mod clock;
pub mod config;
pub mod entropy;
pub mod estimate;
pub mod evidence;
pub mod experiment;
pub mod http;
pub mod interleave;
pub mod letor;
pub mod policy;
pub mod preference;
pub mod simulate;
pub mod store;
pub mod telemetry;
pub mod users;
