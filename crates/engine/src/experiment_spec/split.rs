//! Segments that are experiments of their own.

use serde::{Deserialize, Serialize};

use super::conclude_at::ConcludeAt;
use super::field_error::FieldError;
use super::page_rules::PageRules;
use super::spec::{ExperimentSpec, RosterChanges, name_error};
use dueling_bandits::claims::control::Goal;
use rankduel_store::audience::Segment;

/// A segment that is an experiment of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// The segment.
    #[schema(value_type = String, example = "mobile")]
    pub segment: Segment,
    /// The name of its experiment.
    #[schema(example = "search-ranking.mobile")]
    pub experiment: String,
}

/// Where an experiment comes from that was a segment of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitFrom {
    /// The name of the experiment that it was a segment of.
    #[schema(example = "search-ranking")]
    pub experiment: String,
    /// The segment.
    #[schema(value_type = String, example = "mobile")]
    pub segment: Segment,
}

/// The errors of the splits of a spec.
pub(super) fn split_errors(spec: &ExperimentSpec) -> Option<FieldError> {
    let is_wrong = |(place, split): (usize, &Split)| {
        let earlier = spec.splits[..place].iter().any(|it| it.segment == split.segment);
        earlier
            || !spec.segments.contains(&split.segment)
            || name_error(&split.experiment).is_some()
    };
    let nested = spec.split_from.is_some() && !spec.segments.is_empty();
    let found = nested || spec.splits.iter().enumerate().any(is_wrong);
    let wrong = "a segment was split off that is not declared, or twice, or into no experiment, or \
                 has segments of its own";
    found.then(|| FieldError::new("/split", wrong))
}

impl ExperimentSpec {
    /// The split of this segment, if it is an experiment of its own.
    pub fn split_of(&self, segment: Segment) -> Option<&Split> {
        self.splits.iter().find(|split| split.segment == segment)
    }

    /// The spec with a segment split off.
    pub fn with_split(&self, split: Split) -> Self {
        let mut changed = self.clone();
        changed.splits.push(split);
        changed
    }

    /// The spec of the experiment that a segment of this one becomes: the same with the rankers
    /// that take part now, and with the present policy, control, settings and `method`.
    pub fn of_segment(&self, from: SplitFrom, method: interleaving::Spec) -> Self {
        let rankers = self.rankers.iter().enumerate().filter(|(place, _)| !self.is_retired(*place));
        let rankers: Vec<_> = rankers.map(|(_, ranker)| ranker.clone()).collect();
        let takes_part = |id: &String| rankers.iter().any(|ranker| ranker.id == *id);
        let control = self.control.clone().filter(&takes_part);
        let canary = self.pages.canary.clone().filter(|ids| ids.iter().all(&takes_part));
        let canary_share = if canary.is_some() { self.pages.canary_share } else { 0.0 };
        let mut shares = self.shares.clone();
        shares.retain(|id, _| takes_part(id));
        let conclude_at = self.conclude_at.map(|at| ConcludeAt { segments: false, ..at });
        Self {
            goal: if control.is_some() { self.goal } else { Goal::Best },
            control,
            shares,
            conclude_at,
            rankers,
            pages: PageRules { interleaving: method, canary, canary_share, ..self.pages.clone() },
            seed: None,
            initial_settings: None,
            settings_changes: 0,
            former_controls: Vec::new(),
            former_policies: Vec::new(),
            segments: Vec::new(),
            splits: Vec::new(),
            split_from: Some(from),
            roster_changes: RosterChanges::default(),
            exclusions: Vec::new(),
            ..self.clone()
        }
    }
}
