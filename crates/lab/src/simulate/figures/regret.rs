//! Figures of cumulative regret over time.

use serde_json::Value;

use super::matrix_source::{FoundMatrix, MatrixSource};
use crate::simulate::tournament::{Entrant, Tournament};
use comparators::Spec;
use dueling_bandits::InvalidPolicy;
use dueling_bandits::preference::{NoCondorcetWinner, RegretKind};

/// A policy in a figure.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// The policy, as on the command line.
    pub policy: &'static str,
    /// Whether each horizon has runs of its own, as in the papers for policies that explore first
    /// and then exploit.
    pub each_horizon: bool,
}

/// The horizon and the number of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub horizon: u64,
    /// Number of runs of each policy; for winners, number of subsets of each size.
    pub runs: u64,
}

/// A figure of policies on one matrix.
#[derive(Debug, Clone, Copy)]
pub struct RegretFigure {
    pub lines: &'static [Line],
    /// The true preferences.
    pub matrix: MatrixSource,
    pub regret: RegretKind,
    /// A size that takes a minute.
    pub reduced: Size,
    /// The size of the paper.
    pub full: Size,
}

/// Why a figure cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum InvalidFigure {
    /// A policy does not accept the matrix or the horizon.
    #[error("policy `{0}`: {1}")]
    Policy(&'static str, InvalidPolicy),
    /// Condorcet regret needs a Condorcet winner.
    #[error(transparent)]
    Regret(#[from] NoCondorcetWinner),
}

impl RegretFigure {
    /// The simulations of the figure: first the curves, then the separate runs of each horizon,
    /// with horizons from a hundredth of the figure's horizon to the whole horizon.
    pub fn tournaments(
        &self,
        found: &FoundMatrix,
        size: Size,
        seed: u64,
    ) -> Result<Vec<Tournament>, InvalidFigure> {
        let curves = || self.lines.iter().filter(|line| !line.each_horizon);
        let separate = || self.lines.iter().filter(|line| line.each_horizon);
        let mut tournaments = Vec::new();
        if curves().next().is_some() {
            tournaments.push(self.tournament(found, curves(), size, seed)?);
        }
        if separate().next().is_some() {
            let shortest = found.matrix.rankers() as u64;
            let mut horizons: Vec<u64> = [100, 50, 20, 10, 5, 2, 1]
                .iter()
                .map(|divisor| (size.horizon / divisor).max(shortest))
                .collect();
            horizons.dedup();
            for (number, horizon) in (1..).zip(horizons) {
                // runs of different horizons are independent
                let seed = seed.wrapping_add(number << 40);
                let size = Size { horizon, ..size };
                tournaments.push(self.tournament(found, separate(), size, seed)?);
            }
        }
        Ok(tournaments)
    }

    fn tournament(
        &self,
        found: &FoundMatrix,
        lines: impl Iterator<Item = &'static Line>,
        size: Size,
        seed: u64,
    ) -> Result<Tournament, InvalidFigure> {
        let entrants = lines
            .map(|line| {
                let fallbacks = [("horizon", Value::from(size.horizon))];
                let spec = Spec::from_text_with(line.policy, &fallbacks)
                    .and_then(|spec| spec.validate(found.matrix.rankers()).map(|()| spec))
                    .map_err(|error| InvalidFigure::Policy(line.policy, error))?;
                Ok(Entrant { text: line.policy.into(), spec })
            })
            .collect::<Result<Vec<_>, InvalidFigure>>()?;
        let name = found.name.clone();
        let whole =
            Tournament::new(name, found.matrix.clone(), self.regret, entrants, size.horizon)?;
        Ok(Tournament { runs: size.runs, seed, drawn: found.drawn, ..whole })
    }
}
