//! How an experiment divides its error among the claims.

use serde::{Deserialize, Serialize};

use super::conclude_at::ConcludeAt;
use dueling_bandits::evidence::Target;
use dueling_bandits::run::Targets;

/// How the claims divide one minus `confidence`, which is then the error of all of them together. A
/// part that is left out is an equal share of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// The error of the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.0001, maximum = 0.5, example = 0.02, nullable = false)]
    pub best: Option<f64>,
    /// The error of the claims against the control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.0001, maximum = 0.5, example = 0.02, nullable = false)]
    pub control: Option<f64>,
    /// The error of the claims about segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.0001, maximum = 0.5, example = 0.01, nullable = false)]
    pub segments: Option<f64>,
    /// The error of the claims about metrics: half for `harm`, half for `safe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.0001, maximum = 0.5, example = 0.01, nullable = false)]
    pub metrics: Option<f64>,
}

impl Errors {
    pub(super) fn named(self) -> [(&'static str, Option<f64>); 4] {
        [
            ("best", self.best),
            ("control", self.control),
            ("segments", self.segments),
            ("metrics", self.metrics),
        ]
    }

    /// The parts of `best`, `control`, `segments` and `metrics`.
    pub(super) fn parts(self, whole: f64) -> [f64; 4] {
        let named = self.named().map(|(_, part)| part);
        let absent = named.iter().filter(|part| part.is_none()).count();
        let rest = (whole - named.iter().flatten().sum::<f64>()).max(0.0);
        named.map(|part| part.unwrap_or_else(|| rest / absent as f64))
    }

    /// The targets of an experiment that divides its error like this and concludes `at`. Without a
    /// division, each has the whole error.
    pub fn targets(division: Option<Self>, at: Option<ConcludeAt>) -> Targets {
        let whole = ConcludeAt::target(at);
        let Some(division) = division else { return whole.into() };
        let parts = division.parts(1.0 - whole.confidence);
        let [verdict, control, segments, _] =
            parts.map(|part| Target { confidence: 1.0 - part, ..whole });
        Targets { verdict, control, segments }
    }

    /// The error of all claims of harm together, which is also that of all claims of safety.
    /// Without a division, each of the two has the whole error.
    pub fn of_metrics(division: Option<Self>, at: Option<ConcludeAt>) -> f64 {
        let whole = 1.0 - ConcludeAt::target(at).confidence;
        division.map_or(whole, |division| {
            let [.., metrics] = division.parts(whole);
            metrics / 2.0
        })
    }
}
