//! Figures of cumulative regret over time.

use serde_json::Value;

use super::matrix_source::{FoundMatrix, MatrixSource};
use crate::simulate::plot::{Plot, Scale, Series, legend};
use crate::simulate::report::Report;
use crate::simulate::tournament::{Entrant, Tournament};
use comparators::Spec;
use dueling_bandits::InvalidPolicy;
use dueling_bandits::preference::{NoCondorcetWinner, RegretKind};

/// A policy in a figure.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// The policy, as on the command line.
    pub policy: &'static str,
    /// Whether each point comes from separate runs with that horizon, and is drawn as a marker. The
    /// papers do this for policies that explore first and then exploit.
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
    pub x_scale: Scale,
    pub y_scale: Scale,
    /// The frame ends at a multiple of the regret of this policy at the horizon, and higher curves
    /// leave it, as in the papers.
    pub frame: Option<(&'static str, f64)>,
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
    /// The simulations of the figure: first the curves, then the separate runs for each marker,
    /// with horizons from a hundredth of the figure's horizon to the whole horizon.
    pub fn tournaments(
        &self,
        found: &FoundMatrix,
        size: Size,
        seed: u64,
    ) -> Result<Vec<Tournament>, InvalidFigure> {
        let curves = || self.lines.iter().filter(|line| !line.each_horizon);
        let markers = || self.lines.iter().filter(|line| line.each_horizon);
        let mut tournaments = Vec::new();
        if curves().next().is_some() {
            tournaments.push(self.tournament(found, curves(), size, seed)?);
        }
        if markers().next().is_some() {
            let shortest = found.matrix.rankers() as u64;
            let mut horizons: Vec<u64> = [100, 50, 20, 10, 5, 2, 1]
                .iter()
                .map(|divisor| (size.horizon / divisor).max(shortest))
                .collect();
            horizons.dedup();
            for (number, horizon) in (1..).zip(horizons) {
                // runs of different horizons are independent, so that the markers are too
                let seed = seed.wrapping_add(number << 40);
                let size = Size { horizon, ..size };
                tournaments.push(self.tournament(found, markers(), size, seed)?);
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

    /// The plot of the reports of [`RegretFigure::tournaments`].
    pub fn plot(&self, title: String, reports: &[Report]) -> Option<Plot> {
        let first = reports.first()?;
        let horizon = reports.iter().map(|report| report.horizon).max()?;
        let first_step = match self.x_scale {
            Scale::Log => horizon / 1000,
            Scale::Linear => 1,
        };
        let mut series: Vec<Series> = Vec::new();
        let looks = legend::looks(self.lines.iter().map(|line| line.policy));
        for (line, look) in self.lines.iter().zip(looks) {
            let curves: Vec<_> = reports
                .iter()
                .flat_map(|report| &report.policies)
                .filter(|curve| curve.policy == line.policy)
                .collect();
            let label = legend::words(line.policy);
            if line.each_horizon {
                let ends = curves.iter().filter_map(|curve| curve.checkpoints.last());
                let points = ends.map(|point| point.plotted()).collect();
                series.push(Series::marks(label, look, points));
            } else {
                series.extend(curves.iter().map(|curve| curve.series(first_step, look)));
            }
        }
        let top = self.frame.and_then(|(policy, multiple)| {
            let of_policy = self.lines.iter().position(|line| line.policy == policy)?;
            Some(multiple * series.get(of_policy)?.points.last()?.y)
        });
        let leave = |series: &Series| series.points.iter().any(|point| Some(point.y) > top);
        let outside = if top.is_some() && series.iter().any(leave) {
            "; higher curves leave the frame"
        } else {
            ""
        };
        let base = first.plot(self.y_scale);
        let markers = self.lines.iter().any(|line| line.each_horizon);
        let legend = if markers {
            "; marks without a line: separate runs with that horizon, moved sideways so that \
                 they do not cover each other"
        } else {
            ""
        };
        let skewed = series.iter().any(|series| !series.medians.is_empty());
        let medians = match (skewed, self.matrix.drawn) {
            (false, _) => "",
            (true, None) => "; thin line: median, where a few bad runs make the mean",
            (true, Some(_)) => {
                "; thin line: median, where the gap that each run draws makes the mean"
            }
        };
        Some(Plot {
            title,
            x_scale: self.x_scale,
            top,
            series,
            note: base.note.clone() + legend + medians + outside,
            ..base
        })
    }
}
