//! Figures of regret with late feedback: delivered in batches, with many duels in flight, or with
//! several servers.

use super::matrix_source::FoundMatrix;
use super::regret::{InvalidFigure, RegretFigure, Size};
use crate::simulate::tournament::Tournament;
use comparators::feedback::{Delay, Feedback};

/// The reason for late feedback, which the values of the axis count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// Feedback is delivered in batches; the axis is the number of steps between two deliveries.
    InBatches,
    /// Several duels are outstanding at once; the axis is their number.
    InFlight,
    /// Several servers share 100 duels in flight, and each lags 100 steps behind the others; the
    /// axis is the number of servers.
    Replicas,
}

impl Late {
    /// The values on the axis.
    pub fn values(self) -> &'static [u64] {
        match self {
            Self::InBatches => &[1, 10, 30, 100, 300, 1000, 3000],
            Self::InFlight => &[1, 10, 30, 100, 300, 1000],
            Self::Replicas => &[1, 2, 4, 8, 16, 32],
        }
    }

    fn feedback(self, value: u64) -> Feedback {
        let most = |duels: u64| Delay::Outstanding(usize::try_from(duels).unwrap_or(usize::MAX));
        match self {
            Self::InBatches => Feedback { batch_steps: value, ..Feedback::default() },
            Self::InFlight => Feedback { delay: most(value), ..Feedback::default() },
            Self::Replicas => Feedback {
                delay: most(100),
                replicas: value as usize,
                lag: 100,
                ..Feedback::default()
            },
        }
    }

    fn name(self, value: u64) -> String {
        match self {
            Self::InBatches => format!("every {value} steps"),
            Self::InFlight => format!("{value} in flight"),
            Self::Replicas => format!("{value} servers"),
        }
    }
}

/// One simulation for each value on the axis.
pub fn tournaments(
    late: Late,
    figure: &RegretFigure,
    found: &FoundMatrix,
    size: Size,
    seed: u64,
) -> Result<Vec<Tournament>, InvalidFigure> {
    let mut all = Vec::new();
    for &value in late.values() {
        for tournament in figure.tournaments(found, size, seed)? {
            let feedback = late.feedback(value);
            let name = format!("{} {}", found.name, late.name(value));
            all.push(Tournament { name, feedback, ..tournament });
        }
    }
    Ok(all)
}
